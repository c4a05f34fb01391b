"""Sentence vectors: similar if the texts belong together, or according to their score."""

import collections
import contextlib
import itertools
import logging
import math
import os
from typing import NamedTuple

import mxnet as mx
import numpy as np

from ..errors import InputError
from ..inference.vectors import cosines_of, nearest, unit_vectors
from ..layers.losses import cosine_error, in_batch_negatives, triplet_loss
from ..pretrained.sentence_modules import SentenceModules, modules_of, write_sentence_modules
from ..records import EMPTY, PAIRS, SPLITS, choose_columns, find_column, keep_rows, read_records
from .rows import check_room, encode_rows
from .scores import correlations
from .settings import LOSSES, SentenceSettings
from .tables import write_table
from .task import Task

__all__ = ['SentenceExample', 'SentenceSet', 'SentenceTask', 'read_sentences']

logger = logging.getLogger(__name__)

#: columns that are taken if none are named: the first of these that a file has
TEXT_COLUMNS = (
    PAIRS[0],
    ('anchor', 'positive', 'negative'),
    ('anchor', 'positive'),
    ('query', 'answer'),
    *PAIRS,
)
SCORE_COLUMN = 'score'


class SentenceExample(NamedTuple):
    """Texts that belong together."""

    texts: tuple[str, ...]
    score: float | None = None

    @property
    def label(self):
        """The score; 1 for texts that only belong together."""
        return 1.0 if self.score is None else self.score


class SentenceSet(list):
    """A list of examples, all of one kind: 'scored', 'pairs' or 'triplets'."""

    def __init__(self, kind, examples=()):
        super().__init__(examples)
        self.kind = kind


def read_sentences(
    source, text_columns=None, score_column=None, segment='data', encoding=None, skip_empty=False
):
    """Read texts that belong together.

    Parameters
    ----------
    source : str, or iterable of rows
        As of `model_zoo.records.read_records`.
    text_columns : sequence of str, optional
        Two or three. By default sentence1 and sentence2; or anchor, positive and, if it's there,
        negative; or query and answer; or another pair of `model_zoo.records.PAIRS`.
    skip_empty : bool
        Leave out rows without a text, instead of refusing them.
    """
    if text_columns is not None and len(text_columns) not in (2, 3):
        raise InputError(f'{" ".join(text_columns)!r}: must be two or three', field='text_columns')
    kind, examples, skipped = None, [], 0
    rows = keep_rows(source)
    # a third part is a score, or a text that doesn't match
    first = rows[0] if isinstance(rows, list) and rows else None
    scored = isinstance(first, tuple) and len(first) == 3 and not isinstance(first[2], str)
    third = ('sentence1', 'sentence2', 'score') if scored else TEXT_COLUMNS[1]
    records = read_records(rows, {2: TEXT_COLUMNS[0], 3: third}, segment, encoding=encoding)
    for where, row in records:
        if kind is None:
            text_columns = choose_columns(row, text_columns, TEXT_COLUMNS, 'text_columns', where)
            if score_column is not None:
                (score_column,) = choose_columns(row, [score_column], (), 'score_column', where)
            elif len(text_columns) == 2:
                score_column = find_column(row, [SCORE_COLUMN])
            kind = 'triplets' if len(text_columns) == 3 else 'scored' if score_column else 'pairs'
        texts = {name: row.get(name) for name in text_columns}
        missing = [n for n, text in texts.items() if not (isinstance(text, str) and text.strip())]
        if missing:
            skipped += 1
            if skip_empty:
                continue
            raise InputError(EMPTY, where=where._replace(column=missing[0]))
        score = row.get(score_column) if kind == 'scored' else None
        if kind == 'scored':
            with contextlib.suppress(TypeError, ValueError):
                score = float(score)
            if not (isinstance(score, float) and math.isfinite(score)):
                raise InputError(f'the score is {score!r:.80}, and must be a number', where=where)
        examples.append(SentenceExample(tuple(map(str.strip, texts.values())), score))
    if skipped:
        logger.warning('%s: skipped %d rows without a text', segment, skipped)
    return SentenceSet(kind, examples)


#: of pairs and triplets: whether the match is among this many nearest texts
RECALLS = (1, 5, 10)
EXTENSIONS = ('tsv', 'csv', 'jsonl', 'ndjson', 'json', 'parquet')


class SentenceTask(Task):
    """Texts that belong together: scored pairs, pairs or triplets.

    The metric of scored pairs is Spearman's correlation of scores and cosines; the metric of pairs
    and triplets is how often the matching text is nearest. Rows in memory are (text, text, score),
    (text, text) or (text, match, other), or dicts.
    """

    settings_class, name, trained_for = SentenceSettings, 'sentences', 'sentence_embedding'
    head, use = 'sentence_embedding', 'sentence-similarity'
    command = "zoo embed {folder} 'A text.' --pooling model"
    call = "('A text.', 'Another.')"
    files = {name: (*(f'{name}.{end}' for end in EXTENSIONS), *SPLITS[name]) for name in SPLITS}

    def read(self, source, segment):
        settings = self.settings
        columns = settings.text_columns, settings.score_column
        return read_sentences(source, *columns, segment, settings.encoding, settings.skip_empty)

    def configure(self, located):
        own = None if located is None else modules_of(located.files)
        self._own = own or SentenceModules()
        self.own_length = self._own.max_length
        self.assume(pooling=self.settings.pooling or self._own.pooling)

    def prepare(self, rows):
        dev = rows.get('dev', next(iter(rows.values())))
        self.metric = 'spearman' if dev.kind == 'scored' else f'recall_at_{RECALLS[0]}'
        self._highest = 1.0
        if 'train' not in rows:
            return
        kind = rows['train'].kind
        usual = 'cosine' if kind == 'scored' else 'in_batch'
        self.assume(loss=self.settings.loss or usual)
        settings = self.settings
        if kind not in LOSSES[settings.loss]:
            kinds = ' or '.join(LOSSES[settings.loss])
            raise InputError(f'{settings.loss} learns from {kinds}, not {kind}', field='loss')
        # a label of 1 stands for the highest score
        scores = [row.score for row in rows['train'] if row.score is not None]
        highest = self._highest = settings.max_score or max(scores, default=1.0) or 1.0
        if scores and not 0 <= min(scores) <= max(scores) <= highest:
            problem = f'the scores are from {min(scores):g} to {max(scores):g}'
            raise InputError(f'{problem}, and must be from 0 to `max_score`, {highest:g}')

    def model_options(self):
        return {'pooling': self.settings.pooling}

    def encode(self, rows, tokenizer):
        length = self.settings.max_length
        check_room(length, 2)
        prepare = str.lower if self._own.lowers else str
        texts = [[(prepare(text), None) for text in row.texts] for row in rows]
        labels = [None if row.score is None else row.score / self._highest for row in rows]
        return encode_rows(tokenizer, texts, labels, length)

    def load(self, segment, *args, **options):
        # other texts of the batch are the negatives, which must not only be of similar length
        if segment == 'train' and self.settings.loss == 'in_batch':
            options['num_buckets'] = 1
        return super().load(segment, *args, **options)

    def forward(self, model, batch):
        """Compute vectors (batch, texts, units)."""
        shape = batch.words.shape
        inputs = (array.reshape((-3, 0)[: array.ndim - 1]) for array in batch.inputs)
        return model(*inputs).reshape((*shape[:2], -1))

    def objective(self, model, data):
        numbers = collections.defaultdict(itertools.count().__next__)  # of equal texts one
        texts = (map(bytes, sample.input_ids) for sample in data.samples)
        self._texts = np.array([[numbers[text] for text in row] for row in texts])
        return super().objective(model, data)

    def loss(self, model, batch):
        vectors, settings = self.forward(model, batch), self.settings
        if settings.loss == 'in_batch':
            left_out = mx.nd.array(_no_negatives(self._texts[batch.indices]), vectors.context)
            return in_batch_negatives(mx.nd, vectors, settings.scale, left_out)
        if settings.loss == 'cosine':
            return cosine_error(mx.nd, vectors, batch.labels)
        return triplet_loss(mx.nd, vectors, settings.margin)

    def predict(self, forward, data, guard=None):
        return unit_vectors(super().predict(forward, data, guard))

    def decode(self, data, outputs):
        return cosines_of(outputs)[:, 0].tolist()

    def score(self, data, outputs):
        kind, cosines = data.rows.kind, cosines_of(outputs)
        if kind == 'scored':
            found = correlations(np.array([row.score for row in data.rows]), cosines[:, 0])
            return {name: found[name] for name in ('spearman', 'pearson')}
        scores = _recalls(outputs, data.rows)
        if kind == 'triplets':
            scores['accuracy'] = float((cosines[:, 0] > cosines[:, 1]).mean())
        return scores

    def write(self, folder, segment, data, outputs):
        name = f'{segment}_similarities.tsv'
        header = ['index', 'similarity', 'of_third'][: outputs.shape[1]]
        cells = ([number, *row] for number, row in enumerate(cosines_of(outputs).tolist()))
        write_table(os.path.join(folder, name), [header, *cells])
        return [name]

    def save(self, folder, model, tokenizer, **options):
        settings = self.settings
        super().save(folder, model, tokenizer, **options)
        kind = settings.pooling, settings.normalize, settings.max_length, self._own.lowers
        write_sentence_modules(folder, model.config.hidden_size, *kind)

    def results(self):
        return {'task': self.trained_for, 'loss': self.settings.loss}


def _no_negatives(texts):
    """Return which second and third texts aren't negatives of each first text.

    They equal it or its match, or match an equal text.
    """
    first, match = texts[:, :1], texts[:, 1:2]
    others = texts[:, 1:].T.ravel()
    found = (others == first) | (others == match)
    found[:, : len(texts)] |= first == first.T
    np.fill_diagonal(found, False)
    return found


def _recalls(vectors, examples):
    """Compute the recalls among the second texts, found as by a search."""
    # equal texts count once
    positions = {}
    for number, example in enumerate(examples):
        positions.setdefault(example.texts[1], number)
    corpus = vectors[list(positions.values()), 1]  # (texts, units)
    _, found = nearest(vectors[:, 0], corpus, max(RECALLS))
    matches = cosines_of(vectors[:, :2])[:, 0]
    # the match itself may differ in the last bits from one product to the other
    least = {k: found[:, min(k, found.shape[1]) - 1] for k in RECALLS}
    return {f'recall_at_{k}': float((matches + 1e-6 >= least[k]).mean()) for k in RECALLS}
