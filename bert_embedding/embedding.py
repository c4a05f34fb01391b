"""Vectors of words and of sentences, from the last layer of BERT.

Sources: the package bert-embedding (imgarylai) and ``scripts/bert/embedding.py`` of GluonNLP 0.10,
whose class has the name and the arguments of this one. They truncate every sentence, by default to
25 pieces, and pad all to that length. Here the model's folder has the length, and batches have
sentences of similar length.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import logging
import os
import pickle
from collections.abc import Iterable, Sized
from typing import Any

import mxnet as mx
import numpy as np

from bert.tokenizer import BertSPTokenizer
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.families import load_exporter
from model_zoo.inference.engines import make_engine
from model_zoo.inference.pipeline_base import present
from model_zoo.inference.vectors import Vectors, Way, nearest, similarities
from model_zoo.layers.precision import PRECISIONS, precision_name
from model_zoo.opening import locate, open_model
from model_zoo.util.choices import LONG_TEXTS, OOV_WAYS, POOLINGS
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
        vectors.
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
        Number of pieces, including [CLS] and [SEP], from which on a sentence counts as long; by
        default the folder's limit: sentence-transformers', else the tokenizer's.
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
    long_texts : {'cut', 'windows'}
        Long sentences are cut, and a warning counts them; or they are read in overlapping windows.
        Each piece then takes its vector from the window in which it has the most context; [CLS] and
        [SEP] have the mean over the windows.

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
        long_texts: str = 'cut',
    ):
        if model is None or isinstance(model, mx.Context):  # the originals' order
            model, ctx, dtype = _originals_order(model, ctx, dtype)
        self._name, self.dtype = os.fspath(model), precision_name(dtype)
        self.ctx = ctx or mx.cpu()
        tokenizer = BertSPTokenizer(sentencepiece) if sentencepiece else None
        where = {'dataset_name': dataset_name, 'root': root, 'vocab': tokenizer is None}
        where['weights'] = params_path or True
        located = locate(self._name, **where, expected_family='bert', exported=True)
        base = located.family.base
        opened = open_model(located, base, tokenizer=tokenizer, ctx=self.ctx, use_pooler=False)
        self.bert, self.tokenizer, _ = opened
        self.vocab = self.tokenizer.vocab
        longest = self.bert.context_length
        if max_seq_length is not None and not 3 <= max_seq_length <= longest:
            problem = f'must be from 3 to {longest}, not {max_seq_length}'
            raise InputError(problem, field='max_seq_length')
        UnknownNameError.check('long_texts', long_texts, LONG_TEXTS)
        self.engine = make_engine(self.bert, engine, self.dtype, self.ctx)
        self.batch_size, self.long_texts = batch_size, long_texts
        self._pieces = _PieceVectors(opened, max_seq_length, engine=self.engine)
        self.sentence_modules = self._pieces.modules
        self.max_seq_length = self._pieces.max_length

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
        results = self._results(_iterator(sentences), Way(long_texts=self.long_texts))
        return (self._words(*result, oov_way, filter_spec_tokens) for result in results)

    def sentence_vectors(
        self,
        sentences,
        pooling=None,
        normalize=False,
        prompt=None,
        prompt_name=None,
        truncate_dim=None,
    ):
        """Return one vector per sentence.

        A sentence-transformers model (a folder or repository with ``modules.json``) returns its own
        vectors: with its pooling, dense layers, normalization, prompts and length.

        ``sentence_vectors(sentences, 'mean', normalize=True)`` of 'bert_6_384_12' equals
        sentence-transformers with all-MiniLM-L6-v2.

        Parameters
        ----------
        sentences : iterable of str
        pooling : {'mean', 'cls', 'max', 'model'}, optional
            'mean' or 'max' of all pieces' vectors, including [CLS] and [SEP]; or 'cls', the vector
            of [CLS]. Default: 'model', a sentence-transformers model's own, and 'mean' for others.
        normalize : bool
            Whether to scale the vectors to Euclidean length 1, if the model doesn't do that itself.
        prompt : str, optional
            Text to put before each sentence.
        prompt_name : str, optional
            Name of one of the model's prompts; by default its default prompt, if it has one.
        truncate_dim : int, optional
            How many numbers of each vector are kept, before `normalize`; by default as many as the
            model's folder says.

        Returns
        -------
        np.ndarray
            float32, shape (sentences, units), in the order of the sentences. A
            sentence-transformers model has the units of its last part.
        """
        return self._array(sentences, (pooling, normalize, prompt, prompt_name, truncate_dim))

    def encode(
        self,
        sentences: str | Iterable[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
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
        truncate_dim : int, optional
            How many numbers of each vector are kept; by default as many as the model's folder says.
        """
        texts = [sentences] if isinstance(sentences, str) else sentences
        options = None, normalize_embeddings, prompt, prompt_name, truncate_dim
        vectors = self._array(texts, options, show_progress_bar, batch_size)
        if isinstance(sentences, str):
            return vectors[0]
        return vectors if convert_to_numpy else list(vectors)

    def _array(self, sentences, options, has_bar=None, batch_size=None):
        """The vectors of `iter_sentence_vectors` with these options, as an array."""
        vectors = self.iter_sentence_vectors(sentences, *options[:4], batch_size, options[4])
        vectors = list(_with_bar(vectors, sentences, has_bar))
        units = self._pieces.modules_for(options[0] or 'model').units(self.units)
        units = len(vectors[0]) if vectors else min(units, options[4] or units)
        return np.array(vectors, dtype=np.float32).reshape(-1, units)

    def iter_sentence_vectors(
        self,
        sentences,
        pooling=None,
        normalize=False,
        prompt=None,
        prompt_name=None,
        batch_size=None,
        truncate_dim=None,
    ):
        """Yield what :meth:`sentence_vectors` returns; reads as :meth:`iter_embedding` does.

        `batch_size` is the maximum number of sentences per batch; default: the model's.
        """
        if truncate_dim is not None and (type(truncate_dim) is not int or truncate_dim < 1):
            raise InputError(f'must be at least 1, not {truncate_dim!r}', field='truncate_dim')
        pooling, options = pooling or 'model', (normalize, prompt, prompt_name, truncate_dim)
        UnknownNameError.check('pooling', pooling, (*POOLINGS, 'model'))
        way = self._pieces.way(pooling, *options, long_texts=self.long_texts)
        results = self._results(_iterator(sentences), way, batch_size)
        return (vector for _, vector in results)

    def digest(self, pooling=None, prompt=None):
        """Return a text that changes with whatever the vectors of sentences are computed from."""
        modules = self._pieces.modules_for(pooling or 'model')
        prompt = modules.prompt() if prompt is None else prompt
        words = self.vocab.idx_to_token, getattr(self.tokenizer, 'do_lower_case', None)
        parts = hashlib.sha256(pickle.dumps((modules, words, prompt))).hexdigest()
        about = parts, self.max_seq_length, self.long_texts, self.dtype
        return load_exporter().onnx_graphs.digest_of(self.bert, about)

    def similarity_of(self, pooling=None):
        """Return how vectors of a pooling are compared: by 'cosine', or as the folder says."""
        return self._pieces.modules_for(pooling or 'model').similarity

    def similarity(self, a, b):
        """Return how similar the vectors of texts are: cosines, unless the folder says otherwise.

        Parameters
        ----------
        a, b : list of str, str, or np.ndarray of shape (count, units)
            Texts; or vectors from `sentence_vectors`, for example with a prompt.

        Returns
        -------
        np.ndarray, float32
            Shape (texts of `a`, texts of `b`), without the axis of a single str.
        """
        found = similarities(self._vectors(a), self._vectors(b), self.similarity_of())
        return found[tuple(0 if isinstance(texts, str) else slice(None) for texts in (a, b))]

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
            corpus, and ``score``, the similarity. A single str gives a single list.
        """
        if not isinstance(corpus, np.ndarray):
            vectors = self.iter_sentence_vectors(corpus)
            corpus = iter(lambda: list(itertools.islice(vectors, _SEARCHED_TOGETHER)), [])
        numbers, scores = nearest(self._vectors(queries), corpus, k, self.similarity_of())
        answers = [
            [{'corpus_id': number, 'score': score} for number, score in zip(*row)]
            for row in zip(numbers.tolist(), scores.tolist())
        ]
        return answers[0] if isinstance(queries, str) else answers

    def _vectors(self, texts):
        return texts if isinstance(texts, np.ndarray) else np.atleast_2d(self.encode(texts))

    def _results(self, sentences, options, batch_size=None):
        """Yield the encoding of each sentence, and its pieces' vectors or its own."""
        read = empty = 0
        pieces = copy.copy(self._pieces)
        pieces.batch_rows = batch_size or self.batch_size
        try:
            for encoding, vectors in pieces.results(sentences, options):
                read += 1
                empty += len(encoding) == 2
                yield encoding, vectors
        finally:
            if empty:
                logger.warning('%d of %d sentences have no words', empty, read)

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


class _PieceVectors(Vectors):
    """The encoding of each sentence, and its vector or the vectors of its pieces."""

    task = 'embedding'

    def _finish(self, item, rows, outputs, way):
        (vectors,) = self._of_texts(rows, outputs, way)
        return rows[0].about[0], vectors


def _iterator(sentences):
    if isinstance(sentences, (str, bytes)) or not isinstance(sentences, Iterable):
        raise InputError(f'must be a list of str, not {sentences!r:.60}', field='sentences')
    return present(sentences)


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
