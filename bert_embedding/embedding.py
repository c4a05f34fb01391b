"""Vectors of words and of sentences, from the last layer of BERT.

Sources: the package bert-embedding (imgarylai) and ``scripts/bert/embedding.py`` of GluonNLP 0.10,
whose class has the name and the arguments of this one. They truncate every sentence, by default to
25 pieces, and pad all to that length. Here nothing is truncated by default, and batches have
sentences of similar length.
"""

from __future__ import annotations

import copy
import itertools
import logging
import os
from collections.abc import Iterable, Sized
from typing import Any

import mxnet as mx
import numpy as np

from bert.tokenizer import BertSPTokenizer
from model_zoo.batches.windows import even_windows
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.inference.engines import make_engine
from model_zoo.inference.pipeline_base import Pipeline, Row
from model_zoo.inference.vectors import nearest, sentence_functions, unit_vectors
from model_zoo.layers.precision import PRECISIONS, precision_name
from model_zoo.opening import locate, open_model
from model_zoo.pretrained.sentence_modules import SentenceModules, modules_of, normalized
from model_zoo.util.choices import OOV_WAYS, POOLINGS
from model_zoo.util.display import has_viewer, open_bar

logger = logging.getLogger(__name__)

_SEARCHED_TOGETHER = 4096  # texts of a corpus whose vectors are in memory
_LONG = 1000  # sentences from which on a list has a bar


class BertEmbedding:
    """Vectors of words and of sentences.

    Parameters
    ----------
    model : str
        A model of the zoo ('bert_12_768_12', 'roberta_12_768_12', ...), another name of one
        ('bert-base-cased'), a directory that ``save_pretrained`` wrote, or a model of the hub
        ('owner/name'). For a sentence-transformers model, :meth:`sentence_vectors` returns its
        vectors, and truncates sentences to its length.
    ctx : mx.Context, optional
        Where the model runs; the CPU by default.
    dtype : str, type or numpy.dtype
        Precision of the model: 'float32'; 'bfloat16', which is faster on CPUs that have it;
        'float16', for GPUs; or 'int8', with ONNX Runtime. The vectors are always float32. Their
        cosine with float32's vectors is at least 0.999 in bfloat16, and 0.99999 in float16.
    dataset_name : str, optional
        The data set of the weights; by default the model's usual one, which is
        'book_corpus_wiki_en_uncased' for 'bert_12_768_12' and 'all_minilm_l6_v2' for
        'bert_6_384_12'.
    params_path : str, optional
        A file of weights to use instead of the pretrained ones: this project's or GluonNLP's
        ``.params``, also of a task's model, or safetensors. The vocabulary is the one in the same
        folder, else the data set's.
    max_seq_length : int, optional
        Maximum number of pieces per sentence, including [CLS] and [SEP]; longer ones are truncated,
        and a warning counts them. By default nothing is truncated: a sentence longer than the
        model's context is read in overlapping windows. Each piece takes its vector from the window
        in which it has the most context; [CLS] and [SEP] have the mean over the windows.
    batch_size : int
        Maximum number of sentences per batch. Batches of long sentences are smaller, to save
        memory.
    sentencepiece : str, optional
        A SentencePiece model for both tokens and vocabulary. Needs `params_path`.
    root : str, optional
        Cache of the weights, by default ``$MXNET_HOME/models``.
    engine : str
        'mxnet', 'onnxruntime' (the extra ``onnx``), 'openvino' (the extra ``openvino``) or 'auto';
        see `model_zoo.inference.make_engine`.

    Attributes
    ----------
    bert : bert.BertModel
        Or a variant, such as `bert.RobertaModel`.
    tokenizer : model_zoo.tokenization.Tokenizer
    vocab : gluonnlp.vocab.Vocab

    Examples
    --------
    >>> embedding = BertEmbedding(model='bert_6_384_12')
    >>> tokens, vectors = embedding(['We introduce BERT.'])[0]
    >>> tokens
    ['we', 'introduce', 'bert', '.']
    >>> len(vectors), vectors[0].shape
    (4, (384,))
    """

    def __init__(
        self,
        model: str | os.PathLike | mx.Context | None = 'bert_12_768_12',
        ctx: Any = None,
        dtype: Any = 'float32',
        dataset_name: str | None = None,
        params_path: str | None = None,
        max_seq_length: int | None = None,
        batch_size: int = 256,
        sentencepiece: str | None = None,
        root: str | None = None,
        engine: str = 'mxnet',
    ):
        if model is None or isinstance(model, mx.Context):  # the originals' order
            model, ctx, dtype = _originals_order(model, ctx, dtype)
        self._name, self.dtype = os.fspath(model), precision_name(dtype)
        self.ctx = ctx or mx.cpu()
        tokenizer = BertSPTokenizer(sentencepiece) if sentencepiece else None
        located = locate(
            self._name,
            dataset_name=dataset_name,
            weights=params_path or True,
            vocab=tokenizer is None,
            like='bert',
            root=root,
            exported=True,
        )
        base = located.family.base
        opened = open_model(located, base, tokenizer=tokenizer, ctx=self.ctx, use_pooler=False)
        self.bert, self.tokenizer, files = opened
        self.vocab = self.tokenizer.vocab
        self.sentence_modules = modules_of(files)
        if self.sentence_modules is not None:
            self.sentence_modules.units(self.units)  # they fit together
        longest = self.bert.context_length
        self._given_length = max_seq_length  # the model's own cuts its sentence vectors alone
        if self.sentence_modules is not None and max_seq_length is None:
            max_seq_length = min(self.sentence_modules.max_length or longest, longest)
        if max_seq_length is not None and not 3 <= max_seq_length <= longest:
            problem = f'must be from 3 to {longest}, not {max_seq_length}'
            raise InputError(problem, field='max_seq_length')
        self.max_seq_length = max_seq_length
        self.engine = make_engine(self.bert, engine, self.dtype, self.ctx)
        self.batch_size = batch_size
        self._pieces = _PieceVectors(opened, engine=self.engine)

    def __repr__(self):
        return (
            f'<BertEmbedding {self._name}: {type(self.bert).__name__}, {self.units} units, '
            f'max_seq_length={self.max_seq_length}, engine={self.engine.name!r}>'
        )

    @property
    def units(self):
        """Length of the vectors."""
        return self.bert.config.hidden_size

    def embedding(
        self, sentences: Iterable[str], oov_way: str = 'avg', filter_spec_tokens: bool = True
    ) -> list[tuple[list[str], list[np.ndarray]]]:
        """Return the words of each sentence and their vectors.

        Parameters
        ----------
        sentences : iterable of str
            For example a list; not a single str.
        oov_way : {'avg', 'sum', 'last'}
            How to combine the pieces' vectors into a word's vector.
        filter_spec_tokens : bool
            Whether to leave out the [CLS] and [SEP] that are put around each sentence.

        Returns
        -------
        list of (list of str, list of np.ndarray)
            For each sentence, in order: its words, joined from their pieces (a word that the
            vocabulary can't spell is '[UNK]'), and a float32 vector of shape (units,) for each
            word. Both are empty for a sentence without words.
        """
        results = self.iter_embedding(sentences, oov_way, filter_spec_tokens)
        return list(_with_bar(results, sentences))

    __call__ = embedding

    def iter_embedding(self, sentences, oov_way='avg', filter_spec_tokens=True):
        """Yield what :meth:`embedding` returns, one sentence after the other.

        The sentences are read as needed, at most 768 ahead (fewer if they are long), so any number
        of them takes the same memory.

        For the further arguments see :meth:`embedding`.
        """
        UnknownNameError.check('oov_way', oov_way, OOV_WAYS)
        if self.engine.pools:
            raise InputError(f'{self.bert.onnx_file!r} computes vectors of sentences only')
        options = {'length': self._given_length, 'vector': None, 'prepare': str}
        results = self._results(_iterator(sentences), options)
        return (self._words(*result, oov_way, filter_spec_tokens) for result in results)

    def sentence_vectors(
        self, sentences, pooling=None, normalize=False, prompt=None, prompt_name=None
    ):
        """Return one vector per sentence.

        A sentence-transformers model (a folder or repository with ``modules.json``) returns its own
        vectors: with its pooling, dense layers, normalization, prompts and length.

        ``sentence_vectors(sentences, 'mean', normalize=True)`` of 'bert_6_384_12' equals
        sentence-transformers with all-MiniLM-L6-v2, except for sentences of more than 256 pieces:
        sentence-transformers truncates them (pass ``max_seq_length=256`` to the class to do the
        same).

        Parameters
        ----------
        sentences : iterable of str
        pooling : {'mean', 'cls', 'max'}, optional
            'mean' or 'max' of all pieces' vectors, including [CLS] and [SEP]; or 'cls', the vector
            of [CLS]. For sentences longer than the model's context see `max_seq_length`. Default: a
            sentence-transformers model's own, 'mean' for others.
        normalize : bool
            Whether to scale the vectors to Euclidean length 1, if the model doesn't do that itself.
        prompt : str, optional
            Text to put before each sentence.
        prompt_name : str, optional
            Name of one of the model's prompts; by default its default prompt, if it has one.

        Returns
        -------
        np.ndarray
            float32, shape (sentences, units), in the order of the sentences. A
            sentence-transformers model has the units of its last part.
        """
        return self._array(sentences, (pooling, normalize, prompt, prompt_name))

    def encode(
        self,
        sentences: str | Iterable[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
        normalize_embeddings: bool = False,
    ) -> np.ndarray | list[np.ndarray]:
        """Return vectors of sentences as sentence-transformers' method of this name does.

        Parameters
        ----------
        sentences : str or iterable of str
            A single str has a single vector.
        batch_size : int, optional
            Maximum number of sentences per batch; default: the model's.
        show_progress_bar : bool, optional
            Default: for more than 1000 sentences, on a terminal or in a notebook.
        convert_to_numpy : bool
            Whether to return an array of shape (sentences, units), otherwise a list of vectors.
        normalize_embeddings : bool
            Whether to scale the vectors to Euclidean length 1, if the model doesn't do that itself.
        """
        texts = [sentences] if isinstance(sentences, str) else sentences
        options = None, normalize_embeddings, prompt, prompt_name
        vectors = self._array(texts, options, show_progress_bar, batch_size)
        if isinstance(sentences, str):
            return vectors[0]
        return vectors if convert_to_numpy else list(vectors)

    def _array(self, sentences, options, has_bar=None, batch_size=None):
        """The vectors of `iter_sentence_vectors` with these options, as an array."""
        vectors = self.iter_sentence_vectors(sentences, *options, batch_size)
        vectors = list(_with_bar(vectors, sentences, has_bar))
        units = self._modules(options[0]).units(self.units)
        return np.array(vectors, dtype=np.float32).reshape(-1, units)

    def iter_sentence_vectors(
        self,
        sentences,
        pooling=None,
        normalize=False,
        prompt=None,
        prompt_name=None,
        batch_size=None,
    ):
        """Yield what :meth:`sentence_vectors` returns; reads as :meth:`iter_embedding` does.

        `batch_size` is the maximum number of sentences per batch; default: the model's.
        """
        if pooling is not None:
            UnknownNameError.check('pooling', pooling, POOLINGS)
        modules = self._modules(pooling)
        if prompt is None:
            prompt = modules.prompt(prompt_name)
        prepare, vector = sentence_functions(modules, self.tokenizer, prompt)

        def vector_of(states):
            return normalized(vector(states)) if normalize else vector(states)

        is_default = modules is self.sentence_modules
        length = self.max_seq_length if is_default else self._given_length
        options = {'length': length, 'vector': vector_of, 'prepare': prepare}
        results = self._results(_iterator(sentences), options, batch_size)
        return (vector for _, vector in results)

    def _modules(self, pooling):
        """Return the parts that make a sentence's vector."""
        if pooling is None and self.sentence_modules is not None:
            return self.sentence_modules
        return SentenceModules([pooling or 'mean'])

    def similarity(self, a, b):
        """Return the cosines of the vectors of texts.

        Parameters
        ----------
        a, b : list of str, str, or np.ndarray of shape (count, units)
            Texts; or vectors from `sentence_vectors`, for example with a prompt.

        Returns
        -------
        np.ndarray, float32
            Shape (texts of `a`, texts of `b`), without the axis of a single str.
        """
        cosines = unit_vectors(self._vectors(a)) @ unit_vectors(self._vectors(b)).T
        return cosines[tuple(0 if isinstance(texts, str) else slice(None) for texts in (a, b))]

    def search(self, queries, corpus, k=10):
        """Return the texts of a corpus that are most similar to queries.

        The corpus is read in blocks, so any number of texts takes the same memory.

        Parameters
        ----------
        queries : list of str, str, or np.ndarray of shape (queries, units)
        corpus : iterable of str, or np.ndarray of shape (texts, units)
            The array may be memory-mapped.
        k : int

        Returns
        -------
        list of list of dict
            For each query its `k` best texts, best first: ``corpus_id``, the position in the
            corpus, and ``score``, the cosine. A single str gives a single list.
        """
        if not isinstance(corpus, np.ndarray):
            vectors = self.iter_sentence_vectors(corpus)
            corpus = iter(lambda: list(itertools.islice(vectors, _SEARCHED_TOGETHER)), [])
        numbers, cosines = nearest(self._vectors(queries), corpus, k)
        answers = [
            [{'corpus_id': number, 'score': score} for number, score in zip(*row)]
            for row in zip(numbers.tolist(), cosines.tolist())
        ]
        return answers[0] if isinstance(queries, str) else answers

    def _vectors(self, texts):
        return texts if isinstance(texts, np.ndarray) else np.atleast_2d(self.encode(texts))

    def _results(self, sentences, options, batch_size=None):
        """Yield the encoding of each sentence, and its pieces' vectors or its own."""
        read = cut = lost = empty = 0
        pieces = copy.copy(self._pieces)
        pieces.batch_rows = batch_size or self.batch_size
        try:
            for encoding, vectors in pieces.results(sentences, options):
                read += 1
                cut += encoding.truncated > 0
                lost += encoding.truncated
                empty += len(encoding) == 2
                yield encoding, vectors
        finally:
            if empty:
                logger.warning('%d of %d sentences have no words', empty, read)
            if cut:
                logger.warning(
                    '%d of %d sentences were cut to max_seq_length %d and lost %d pieces',
                    *(cut, read, options['length'], lost),
                )

    def _words(self, encoding, states, oov_way, filter_spec_tokens):
        """Return the words of a sentence and their vectors, made from the pieces' vectors."""
        pieces, numbers = encoding.tokens, encoding.word_ids
        # where words begin: a number differs from the one before it, and [CLS] has None
        starts = [n for n in range(1, len(pieces) - 1) if numbers[n] != numbers[n - 1]]
        stops = [*starts[1:], len(pieces) - 1]
        tokens = [self.tokenizer.join(pieces[start:stop]) for start, stop in zip(starts, stops)]
        vectors = []
        if tokens and oov_way == 'last':
            vectors = list(states[np.subtract(stops, 1)])
        elif tokens:
            sums = np.add.reduceat(states[:-1], starts, axis=0)  # (words, units)
            if oov_way == 'avg':
                sums /= np.subtract(stops, starts)[:, None]
            vectors = list(sums)
        if filter_spec_tokens:
            return tokens, vectors
        return ([pieces[0], *tokens, pieces[-1]], [states[0].copy(), *vectors, states[-1].copy()])


class _PieceVectors(Pipeline):
    """The encoding of each sentence, and the vectors of its pieces; long ones in windows.

    With ``options['vector']`` that function of the pieces' vectors. ``options['prepare']`` changes
    a sentence first.
    """

    task = 'embedding'
    token_outputs = 1

    def _rows(self, items, options, meter=None):
        rows, room, vector = [], self.block.context_length - 2, options['vector']
        texts = list(map(options['prepare'], map(self._text, items)))
        batch = self.tokenizer.encode_batch(texts, max_length=options['length'], pad=False)
        for encoding in batch.rows:
            ids, of_item = encoding.input_ids, []
            windows = even_windows(len(ids) - 2, room)
            reduce = None
            if vector is not None and len(windows) == 1:

                def reduce(row, outputs):
                    return [vector(outputs[0])]

            for window in windows:
                seen = ids[window.start : window.stop + 2].copy()
                seen[0], seen[-1] = ids[0], ids[-1]
                of_item.append(Row(seen, np.zeros_like(seen), (encoding, window), reduce))
            rows.append(of_item)
        return rows

    def _finish(self, item, rows, outputs, options):
        encoding, _ = rows[0].about
        if len(rows) == 1:
            return encoding, outputs[0][0]
        whole = np.zeros((len(encoding), outputs[0][0].shape[1]), np.float32)
        for row, (states,) in zip(rows, outputs):
            start, _, first, last = row.about[1]
            whole[0] += states[0] / len(rows)
            whole[-1] += states[-1] / len(rows)
            whole[first + 1 : last + 1] = states[first + 1 - start : last + 1 - start]
        return encoding, whole if options['vector'] is None else options['vector'](whole)


def _iterator(sentences):
    if isinstance(sentences, (str, bytes)) or not isinstance(sentences, Iterable):
        raise InputError(f'must be a list of str, not {sentences!r:.60}', field='sentences')
    return iter(sentences)


def _with_bar(results, sentences, is_shown=None):
    """Return results, with a bar if asked for, or for a long list on a display."""
    count = len(sentences) if isinstance(sentences, Sized) else None
    if is_shown is None:
        is_shown = count is not None and count > _LONG and has_viewer()
    return open_bar(results, None, count, leave=True, unit=' sentences') if is_shown else results


def _originals_order(ctx, dtype, model):
    """Model, context and type of ``BertEmbedding(ctx, dtype, model)``."""
    if dtype is None:  # the others have their defaults
        return 'bert_12_768_12', ctx, model
    is_type = isinstance(model, str) and model in (*PRECISIONS, 'int8')
    return 'bert_12_768_12' if is_type else model, ctx, dtype
