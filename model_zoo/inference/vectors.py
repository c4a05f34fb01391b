"""Vectors of texts, how similar texts are, and the nearest of many."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from ..batches.windows import text_windows
from ..errors import InputError
from ..pretrained import sentence_modules
from ..tokenization.encoding import UNLIMITED
from ..util.choices import LONG_TEXTS, POOLINGS
from ..util.fields import AnyText, CallOptions, Count, Fields, Flag, Text
from .pipeline_base import NUMBER, Pipeline, PipelineOptions, Row

__all__ = ['FeatureExtraction', 'SentenceSimilarity']

Pooling = Literal[(*POOLINGS, 'model')]
_Direction = Literal['right', 'left', 'Right', 'Left']


def unit_vectors(vectors):
    """Return vectors, float32, in the last axis, scaled to Euclidean length 1; zeros stay zeros."""
    return sentence_modules.normalized(np.asarray(vectors, np.float32))


def similarities(a, b, similarity='cosine'):
    """Return how similar vectors are, one of `SIMILARITIES`, shape (vectors of a, vectors of b)."""
    if similarity in ('cosine', 'dot'):
        a, b = map(unit_vectors if similarity == 'cosine' else np.asarray, (a, b))
        return a @ b.T
    from scipy.spatial.distance import cdist

    return -cdist(a, b, {'manhattan': 'cityblock'}.get(similarity, similarity)).astype(np.float32)


def cosines_of(vectors):
    """Return the cosines of each first unit vector with the others, (..., texts - 1)."""
    return np.einsum('...u,...tu->...t', vectors[..., 0, :], vectors[..., 1:, :])


class Way(NamedTuple):
    """How texts become vectors: `prepare` changes a text, and `vector` makes one of its states.

    Without `vector` the states are the result. `similarity` compares the vectors, `prompt` has the
    ids of what `prepare` puts before a text, and `given` are the options of a pipeline's call.
    """

    prepare: Callable = str
    vector: Callable | None = None
    similarity: str = sentence_modules.SIMILARITIES[0]
    prompt: tuple = ()
    long_texts: str = LONG_TEXTS[0]
    given: CallOptions | None = None


class VectorOptions(PipelineOptions):
    """Options of the calls of pipelines of vectors."""

    long_texts: Literal[LONG_TEXTS] = LONG_TEXTS[0]
    prompt_name: Text | None = None
    truncate_dim: Count | None = None


class Vectors(Pipeline):
    """A pipeline that makes one vector of each text, as its options' `pooling` says.

    'model' is the model's own way: of a model of sentence-transformers its pooling, dense
    layers and normalization, its default prompt and lower case; else the mean. `long_texts` says
    what is done with texts of more tokens than `max_length`, by default the folder's limit:
    sentence-transformers', else the tokenizer's. They are cut, or read in overlapping windows: then
    each token has its state from the window in which it has the most context, and a special token
    the mean over the windows.
    """

    block_tasks = (None,)
    token_outputs, takes_blank = 1, True
    _cure = '`long_texts` windows reads them whole'

    def __init__(self, opened, max_length=None, *args, **options):
        super().__init__(opened, max_length, *args, **options)
        self.modules = sentence_modules.modules_of(self.files)
        if self.modules and self.engine.pools:  # the file has all parts
            pooled = {'modes': ('mean',), 'steps': (), 'token_steps': ()}
            self.modules = dataclasses.replace(self.modules, **pooled)
        own = self.modules_for('model')
        own.units(self.block.config.units)  # they fit together
        if max_length is None:
            self.max_length = min(filter(None, (self.max_length, own.max_length)), default=None)
        ids, _, self._head = self.tokenizer.with_special_tokens([])
        self._tail = len(ids) - self._head

    def modules_for(self, pooling):
        """Return the parts that make a text's vector."""
        own = self.modules or sentence_modules.SentenceModules()
        return own if pooling == 'model' else sentence_modules.SentenceModules([pooling])

    def way(
        self, pooling, normalize=False, prompt=None, prompt_name=None, truncate_dim=None, **options
    ):
        """Return the `Way` of a pooling, with a prompt before each text, by default the model's."""
        modules = self.modules_for(pooling)
        prompt = modules.prompt(prompt_name) if prompt is None else prompt
        ids = self.tokenizer.encode(prompt) if prompt else []
        skip = max(0, len(ids) - 1)  # without the last one, which is [SEP]
        ids = ids[self._head : len(ids) - self._tail]

        def prepare(text):
            return (prompt + text).lower() if modules.lowers else prompt + text

        def vector(states):
            made = modules.vector(states, skip)[:truncate_dim]
            return sentence_modules.normalized(made) if normalize else made

        return Way(prepare, vector, modules.similarity, ids, **options)

    def _pairs(self, item, way):
        return [(way.prepare(self._text(item)), None)]

    def _limit(self, way):
        if way.long_texts == 'left':  # its end is needed
            return UNLIMITED
        if way.long_texts != 'windows':
            return self.max_length
        if self.engine.pools:
            problem = f'windows: {self.engine.path!r} computes vectors of whole texts'
            raise InputError(problem, field='long_texts')
        return UNLIMITED

    def _encode(self, pairs, reduce, way):
        limit = self._limit(way)
        texts = [pair for pair in pairs if isinstance(pair[0], str)]  # others are ids
        encodings = self.tokenizer.encode_pairs(texts, limit)
        for text, _ in pairs:
            is_text = isinstance(text, str)
            encoding = next(encodings) if is_text else self.tokenizer.encoding_of(text, limit)
            yield self._parts(encoding, reduce, way)

    def _parts(self, encoding, reduce, way):
        """The rows of a text."""
        inner = encoding[self._head : len(encoding) - self._tail]
        room = (self.max_length or UNLIMITED) - self._head - self._tail
        if encoding.truncated and way.long_texts == 'refused':
            raise InputError(f'false: a text has more than {room} tokens', field='truncate')
        make, lost = self.tokenizer.with_special_tokens, len(inner) - room
        if lost <= 0:
            arrays = encoding.input_ids, encoding.token_types
            return [Row(*arrays, (encoding, None), reduce, encoding.truncated > 0)]
        if way.long_texts == 'left':
            return [Row(*make(inner[lost:])[:2], (encoding, None), reduce, True)]
        windows = text_windows(len(inner), room)
        return [Row(*make(inner[w.start : w.stop])[:2], (encoding, w)) for w in windows]

    def _joined(self, rows, outputs):
        """The states of a text of several windows."""
        head, tail = self._head, self._tail
        whole = np.zeros((len(rows[0].about[0]), outputs[0][0].shape[1]), np.float32)
        for row, (states,) in zip(rows, outputs):
            start, _, first, last = row.about[1]
            whole[:head] += states[:head] / len(rows)
            whole[len(whole) - tail :] += states[len(states) - tail :] / len(rows)
            whole[head + first : head + last] = states[head + first - start : head + last - start]
        return whole

    def _reduced(self, row, outputs, options):
        return [outputs[0] if options.vector is None else options.vector(outputs[0])]

    def _of_texts(self, rows, outputs, way):
        """The vector of each text, or its states; it may have several rows."""
        made = []
        for _, group in itertools.groupby(zip(rows, outputs), lambda pair: id(pair[0].about[0])):
            parts, states = zip(*group)
            if len(parts) > 1:
                states = [self._reduced(None, [self._joined(parts, states)], way)]
            made += states[0]
        return made


class FeatureExtraction(Vectors):
    """Vectors of the tokens of a text: nested lists of shape (1, tokens, units).

    ``return_tensors=True`` returns float32 arrays instead, and `pooling` ('mean', 'cls' or 'max')
    one vector for each text, of shape (units,), which includes the special tokens. With 'model' it
    is the model's own: of a model of sentence-transformers its pooling, dense layers and
    normalization, with its default prompt, or the one of `prompt_name`; else the mean.
    `truncate_dim` keeps the first numbers of a vector, by default as many as the folder says.
    ``normalize=True`` then scales vectors to length 1. With 'none', as by default, the tokens'
    vectors are returned. Texts beyond the folder's length are cut, with a warning, on the right or
    by `truncation_direction`; with ``truncate=False`` they are refused, and with
    ``long_texts='windows'`` read in windows. An item may also be a list of ids of the model's
    vocabulary, with or without the special tokens.
    """

    task = 'feature-extraction'

    class Options(VectorOptions):
        return_tensors: Flag = False
        pooling: Literal[(*POOLINGS, 'model', 'none')] | None = None
        normalize: Flag = False
        truncate: Flag = True
        truncation_direction: _Direction = 'right'

    def _options(self, given):
        long_texts = given.long_texts
        if long_texts == LONG_TEXTS[0]:
            long_texts = 'left' if given.truncation_direction.lower() == 'left' else long_texts
            long_texts = long_texts if given.truncate else 'refused'
        options = {'long_texts': long_texts, 'given': given}
        of_texts = {'prompt_name': given.prompt_name, 'truncate_dim': given.truncate_dim}
        if given.pooling in (None, 'none'):
            for name in filter(of_texts.get, of_texts):
                raise InputError('is for vectors of texts: also give `pooling`', field=name)
            return Way(**options)
        return self.way(given.pooling, given.normalize, **of_texts, **options)

    def _pairs(self, item, way):
        if not isinstance(item, list) or not item or {*map(type, item)} != {int}:
            return super()._pairs(item, way)
        highest = len(self.tokenizer) - 1
        if not 0 <= min(item) <= max(item) <= highest:
            problem = f'must be ids of this model, from 0 to {highest}; or send the text'
            raise InputError(problem)
        frame = self.tokenizer.with_special_tokens([])[0].tolist()
        head, tail = frame[: self._head], frame[self._head :]
        if item[: len(head)] == head and item[len(item) - len(tail) :] == tail:
            item = item[len(head) : len(item) - len(tail)]
        return [([*way.prompt, *item], None)]

    def _answer_size(self, item, rows, way):
        vectors = sum(len(row.input_ids) for row in rows) if way.vector is None else 1
        return vectors * self.block.config.units * (8 if way.given.return_tensors else NUMBER)

    def _finish(self, item, rows, outputs, way):
        (result,) = self._of_texts(rows, outputs, way)
        if way.vector is None:
            result = (unit_vectors(result) if way.given.normalize else result)[None]
        return result if way.given.return_tensors else result.tolist()


class SentenceSimilarity(Vectors):
    """Similarities of a sentence and others: the cosine, or what the model's folder says.

    For `pooling`, `long_texts`, `prompt_name` and `truncate_dim` see `FeatureExtraction`.

    An item is a dict of ``source_sentence``, a str, and ``sentences``, a list of str; the result is
    a list of floats, one for each sentence. For a pair of texts it is one float.
    """

    task = 'sentence-similarity'
    has_pairs = True

    class Item(Fields):
        source_sentence: AnyText
        sentences: Annotated[list[AnyText], Field(min_length=1)]

    class Options(VectorOptions):
        pooling: Pooling = 'model'

    def _options(self, given):
        names = 'prompt_name', 'truncate_dim', 'long_texts'
        return self.way(given.pooling, **{name: getattr(given, name) for name in names})

    def _pairs(self, item, way):
        sentences = item
        if not isinstance(item, (tuple, list)) or len(item) != 2:
            item = self.Item.read(item)
            sentences = [item.source_sentence, *item.sentences]
        return ((way.prepare(self._text(text)), None) for text in sentences)

    def _finish(self, item, rows, outputs, way):
        vectors = np.stack(self._of_texts(rows, outputs, way))
        found = similarities(vectors[1:], vectors[:1], way.similarity)[:, 0].tolist()
        return found if isinstance(item, dict) else found[0]


BLOCK = 4096  # vectors of the corpus whose products are in memory at once
QUERIES = 1024  # and the queries of those products


def nearest(queries, blocks, k, similarity=sentence_modules.SIMILARITIES[0]):
    """The vectors of a corpus that are most similar to queries.

    Parameters
    ----------
    queries : array-like, shape (queries, units)
    blocks : array-like, shape (corpus, units); or iterable of such arrays
        The corpus. An iterable has one array in memory at a time, and a memory-mapped array a few
        thousand vectors.
    k : int
        The number of results per query.
    similarity : str
        'cosine', 'dot', or minus the distance: 'euclidean', 'manhattan'.

    Returns
    -------
    numbers : numpy.ndarray, shape (queries, min(k, corpus)), int64
        Positions in the corpus, nearest first.
    scores : numpy.ndarray, of the same shape, float32
    """
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InputError(f'k is {k!r}; it must be an integer of at least 1')
    queries, start = np.asarray(queries, np.float32), 0
    numbers = np.empty((len(queries), 0), np.int64)
    scores = np.empty((len(queries), 0), np.float32)
    for block in [blocks] if isinstance(blocks, np.ndarray) else blocks:
        for first in range(0, len(block), BLOCK):
            part = np.asarray(block[first : first + BLOCK], np.float32)
            some = (queries[at : at + QUERIES] for at in range(0, len(queries), QUERIES))
            found = (_best(similarities(each, part, similarity), k) for each in some)
            columns, values = map(np.concatenate, zip(*found))
            numbers = np.concatenate([numbers, columns + start], axis=1)
            order, scores = _best(np.concatenate([scores, values], axis=1), k)
            numbers = np.take_along_axis(numbers, order, axis=1)
            start += len(part)
    return numbers, scores


def _best(scores, k):
    """Columns and values of the k largest of each row, the largest first."""
    k = min(k, scores.shape[1])
    columns = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(scores, columns, axis=1)
    order = np.lexsort((columns, -values), axis=1)  # of equal scores the first
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1)
