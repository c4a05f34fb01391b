"""Vectors of texts, how similar texts are, and the nearest of many."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from ..errors import InputError
from ..pretrained.sentence_modules import SentenceModules, modules_of
from ..util.arrays import pool
from ..util.choices import POOLINGS
from ..util.fields import AnyText, Fields, Flag
from .pipeline_base import NUMBER, Pipeline, PipelineOptions

__all__ = ['FeatureExtraction', 'SentenceSimilarity']

Pooling = Literal[(*POOLINGS, 'model')]


def unit_vectors(vectors):
    """Return vectors, float32, in the last axis, scaled to Euclidean length 1; zeros stay zeros."""
    vectors = np.asarray(vectors, np.float32)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def sentence_functions(modules, tokenizer, prompt):
    """Return the functions of sentence-transformers' modules: of a text, and of its states."""
    # the prompt's ids without the last one, which is [SEP]
    skip = len(tokenizer.encode(prompt).input_ids) - 1 if prompt else 0

    def prepare(text):
        return (prompt + text).lower() if modules.lowers else prompt + text

    return prepare, lambda states: modules.vector(states, skip)


class Vectors(Pipeline):
    """A pipeline whose texts become one vector, in a way of its options' `pooling`.

    With 'model' it is the model's own: of a model of sentence-transformers its pooling, dense
    layers and normalization, its default prompt, lower case and maximum length; else the mean.
    """

    block_tasks = (None,)
    token_outputs = 1

    def __init__(self, opened, *args, **options):
        super().__init__(opened, *args, **options)
        modules = modules_of(self.files) or SentenceModules()
        modules.units(self.block.config.units)  # they fit together
        self._own = sentence_functions(modules, self.tokenizer, modules.prompt())
        self._own_length = modules.max_length

    def _prepared(self, text, options):
        prepare, _ = self._own
        return prepare(self._text(text)) if options.pooling == 'model' else self._text(text)

    def _rows(self, items, options, meter=None):
        own = self._own_length if options.pooling == 'model' else None
        length = min(filter(None, (own, self.max_length)), default=None)
        return super()._rows(items, options, meter, length)

    def _vector(self, states, pooling):
        _, vector = self._own
        return vector(states) if pooling == 'model' else pool(states, pooling)


class FeatureExtraction(Vectors):
    """Vectors of the tokens of a text: nested lists of shape (1, tokens, units).

    ``return_tensors=True`` returns float32 arrays instead, and `pooling` ('mean', 'cls' or 'max')
    one vector for each text, of shape (units,), which includes the special tokens. With 'model' it
    is the model's own: of a model of sentence-transformers its pooling, dense layers and
    normalization, with its default prompt and maximum length; else the mean. ``normalize=True``
    scales vectors to length 1.
    """

    task = 'feature-extraction'

    class Options(PipelineOptions):
        return_tensors: Flag = False
        pooling: Pooling | None = None
        normalize: Flag = False

    def _pairs(self, item, options):
        return [(self._prepared(item, options), None)]

    def _answer_size(self, item, rows, options):
        vectors = len(rows[0].input_ids) if options.pooling is None else 1
        return vectors * self.block.config.units * (8 if options.return_tensors else NUMBER)

    def _reduced(self, row, outputs, options):
        (states,), pooling = outputs, options.pooling
        result = states[None] if pooling is None else self._vector(states, pooling)
        return [unit_vectors(result) if options.normalize else result]

    def _finish(self, item, rows, outputs, options):
        ((result,),) = outputs
        return result if options.return_tensors else result.tolist()


class SentenceSimilarity(Vectors):
    """Cosine similarity of a sentence and others; for `pooling` see `FeatureExtraction`.

    An item is a dict of ``source_sentence``, a str, and ``sentences``, a list of str; the result is
    a list of floats, one for each sentence. For a pair of texts it is one float.
    """

    task = 'sentence-similarity'
    has_pairs = True

    class Item(Fields):
        source_sentence: AnyText
        sentences: Annotated[list[AnyText], Field(min_length=1)]

    class Options(PipelineOptions):
        pooling: Pooling = 'model'

    def _pairs(self, item, options):
        sentences = item
        if not isinstance(item, (tuple, list)) or len(item) != 2:
            item = self.Item.read(item)
            sentences = [item.source_sentence, *item.sentences]
        return ((self._prepared(text, options), None) for text in sentences)

    def _reduced(self, row, outputs, options):
        return [self._vector(outputs[0], options.pooling)]

    def _finish(self, item, rows, outputs, options):
        vectors = unit_vectors(np.stack([vector for (vector,) in outputs]))
        similarities = (vectors[1:] @ vectors[0]).tolist()
        return similarities if isinstance(item, dict) else similarities[0]


BLOCK = 4096  # vectors of the corpus whose products are in memory at once
QUERIES = 1024  # and the queries of those products


def nearest(queries, blocks, k):
    """The vectors of a corpus that are most similar to queries, by their cosine.

    Parameters
    ----------
    queries : array-like, shape (queries, units)
    blocks : array-like, shape (corpus, units); or iterable of such arrays
        The corpus. An iterable has one array in memory at a time, and a memory-mapped array a few
        thousand vectors.
    k : int
        The number of results per query.

    Returns
    -------
    numbers : numpy.ndarray, shape (queries, min(k, corpus)), int64
        Positions in the corpus, nearest first.
    cosines : numpy.ndarray, of the same shape, float32
    """
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InputError(f'k is {k!r}; it must be an integer of at least 1')
    queries, start = unit_vectors(queries), 0
    numbers = np.empty((len(queries), 0), np.int64)
    cosines = np.empty((len(queries), 0), np.float32)
    for block in [blocks] if isinstance(blocks, np.ndarray) else blocks:
        for first in range(0, len(block), BLOCK):
            part = unit_vectors(block[first : first + BLOCK]).T
            some = (queries[at : at + QUERIES] for at in range(0, len(queries), QUERIES))
            columns, values = map(np.concatenate, zip(*(_best(each @ part, k) for each in some)))
            numbers = np.concatenate([numbers, columns + start], axis=1)
            order, cosines = _best(np.concatenate([cosines, values], axis=1), k)
            numbers = np.take_along_axis(numbers, order, axis=1)
            start += part.shape[1]
    return numbers, cosines


def _best(scores, k):
    """Columns and values of the k largest of each row, the largest first."""
    k = min(k, scores.shape[1])
    columns = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(scores, columns, axis=1)
    order = np.lexsort((columns, -values), axis=1)  # of equal scores the first
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1)
