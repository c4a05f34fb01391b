"""Sentences of words with labels as features and batches, and how well labels are predicted."""

import logging
import re
from typing import NamedTuple, Optional

import mxnet as mx
import numpy as np

from ...errors import InputError, MissingExtraError
from ..batching import BucketedLoader
from ..windows import even_windows

__all__ = [
    'TaggingBatch',
    'TaggingFeature',
    'TaggingFeatures',
    'TaggingLoader',
    'entity_scorer',
    'has_entities',
    'labels_of_sentences',
    'score_tags',
]

logger = logging.getLogger(__name__)

CHUNK = 4096  # words encoded at once
UNCUT = 2**31  # a length that no word has
NO_LABEL = -1  # what losses leave out
OUTSIDE = 'O'
# Schemes of entities: B(egin), I(nside), O; and for a last and a single word E, S or L, U.
_ENTITY = re.compile('[BIESLU]-.')
_AS_IOBES = {'L': 'E', 'U': 'S'}


def labels_of_sentences(sentences):
    """The labels that sentences have, sorted, O the first.

    Parameters
    ----------
    sentences : iterable of Sentence

    Returns
    -------
    list of str
    """
    labels = {label for sentence in sentences for label in sentence.labels}
    return sorted(labels, key=lambda label: (label != OUTSIDE, label))


def has_entities(labels):
    """Whether labels mark entities (as ``B-PER``), and aren't those of single words.

    Parameters
    ----------
    labels : sequence of str
    """
    marks = [label for label in labels if label != OUTSIDE]
    return bool(marks) and all(_ENTITY.match(label) for label in marks)


class TaggingFeature(NamedTuple):
    """A sentence, or one of the windows over a long one; not padded.

    Parameters
    ----------
    input_ids : numpy.ndarray, shape (length,), int32
        ``[CLS] pieces [SEP]``.
    places : numpy.ndarray, shape (words,), int32
        Of the first pieces of the words that this window decides on: its part of what Google's
        README calls ``orig_to_tok_map``.
    first_word : int
        Number of the first of these words among those of all sentences; they follow one another.
    label : numpy.ndarray, shape (words,), int32; or None
        Numbers of the words' labels.
    """

    input_ids: np.ndarray
    places: np.ndarray
    first_word: int
    label: Optional[np.ndarray]

    @property
    def valid_length(self):
        """The length."""
        return len(self.input_ids)


class TaggingFeatures:
    """Turns sentences into features.

    A word's label belongs to its first piece. Nothing is cut: a sentence of more than `max_len`
    pieces, the special ones counted, is seen in overlapping windows, each word being learnt and
    predicted once, where it has most context.

    Parameters
    ----------
    tokenizer : object
        With ``encode_batch`` as that of ``bert.BertTokenizer``.
    labels : sequence of str
        In the order of their numbers.
    max_len : int

    Raises
    ------
    InputError
        If `max_len` leaves no room for a piece beside the special ones.
    """

    def __init__(self, tokenizer, labels, max_len=128):
        if max_len < 3:
            raise InputError(
                f'a length of {max_len} is too small: two special tokens and one of a word make 3'
            )
        self._tokenizer, self._room = tokenizer, max_len - 2
        self._numbers = {label: number for number, label in enumerate(labels)}

    def __call__(self, sentences, source='the data'):
        """Encode sentences, and log how many need windows.

        Parameters
        ----------
        sentences : sequence of Sentence
            All with labels, or all without.
        source : str
            The file they are from, for messages.

        Returns
        -------
        list of TaggingFeature

        Raises
        ------
        InputError
            If a label isn't one of those known.
        """
        pieces = self._pieces({word for sentence in sentences for word in sentence.words})
        features, long, first_word = [], 0, 0
        for sentence in sentences:
            windows = self._windows(
                [pieces[word] for word in sentence.words], self._label(sentence, source), first_word
            )
            long += len(windows) > 1
            features += windows
            first_word += len(sentence.words)
        if long:
            logger.info(
                '%s: %d of %d sentences have more than %d pieces: they are seen in windows',
                source, long, len(sentences), self._room,
            )  # fmt: skip
        return features

    def _pieces(self, words):
        """Word -> ids of its pieces; [UNK] where the tokenizer leaves nothing of it."""
        words, pieces = sorted(words), {}
        unknown = np.array([self._tokenizer.unk_token_id], np.int32)
        for start in range(0, len(words), CHUNK):
            chunk = words[start : start + CHUNK]
            encoded = self._tokenizer.encode_batch(
                chunk, max_length=UNCUT, pad=False, add_special_tokens=False
            )
            for word, ids in zip(chunk, encoded.input_ids):
                pieces[word] = ids if len(ids) else unknown
        return pieces

    def _label(self, sentence, source):
        """Numbers of the labels, or None."""
        if sentence.labels is None:
            return None
        try:
            return np.array([self._numbers[label] for label in sentence.labels], np.int32)
        except KeyError as error:
            line = sentence.line + sentence.labels.index(error.args[0])
            raise InputError(
                f'{source}, line {line}: the label {error.args[0]!r} is none of those known: '
                f'{", ".join(self._numbers)}; for a training, name all of them with `labels`'
            ) from None

    def _windows(self, pieces, label, first_word):
        """The features of a sentence."""
        ids = np.concatenate(pieces)
        firsts = np.cumsum([0, *map(len, pieces)])[:-1]  # of the words' pieces
        features = []
        for window in even_windows(len(ids), self._room):
            start, stop = np.searchsorted(firsts, (window.first, window.last))
            if start == stop:
                continue  # the middle of a word that is longer than the window
            features.append(
                TaggingFeature(
                    np.concatenate(
                        [
                            [self._tokenizer.cls_token_id],
                            ids[window.start : window.stop],
                            [self._tokenizer.sep_token_id],
                        ]
                    ).astype(np.int32),
                    (firsts[start:stop] - window.start + 1).astype(np.int32),
                    first_word + int(start),
                    None if label is None else label[start:stop],
                )
            )
        return features


class TaggingBatch(NamedTuple):
    """A batch on the loader's context.

    Parameters
    ----------
    input_ids : NDArray, shape (batch, length), int32
    token_types : NDArray, shape (batch, length), int32
        Zeros.
    valid_length : NDArray, shape (batch,), float32
    labels : NDArray, shape (batch, length), int32; or None
        -1 but for the first pieces of the words that the sample decides on.
    indices : numpy.ndarray, shape (batch,), int64
        Places of the samples in the list that the loader was given.
    num_words : int
        On which the samples decide.
    """

    input_ids: mx.nd.NDArray
    token_types: mx.nd.NDArray
    valid_length: mx.nd.NDArray
    labels: Optional[mx.nd.NDArray]
    indices: np.ndarray
    num_words: int


class TaggingLoader(BucketedLoader):
    """A `BucketedLoader` of `TaggingFeature`; it takes the same arguments."""

    def _batch(self, indices):
        samples = [self._features[index] for index in indices]
        words = self._pad_ids([sample.input_ids for sample in samples]).as_in_context(self._ctx)
        labels = None
        if samples[0].label is not None:
            labels = np.full(words.shape, NO_LABEL, np.int32)
            for row, sample in zip(labels, samples):
                row[sample.places] = sample.label
            labels = mx.nd.array(labels, ctx=self._ctx, dtype='int32')
        lengths = [sample.valid_length for sample in samples]
        return TaggingBatch(
            words,
            mx.nd.zeros_like(words),
            mx.nd.array(lengths, ctx=self._ctx, dtype='float32'),
            labels,
            indices,
            sum(len(sample.places) for sample in samples),
        )

    def predict(self, forward, guard=None):
        """Scores of the labels of all words, each from the window that decides on it.

        Parameters
        ----------
        forward : callable
            ``forward(batch) -> NDArray`` of shape (batch, length, labels).
        guard : InterruptGuard, optional
            Asked before each batch.

        Returns
        -------
        numpy.ndarray, shape (words of all sentences, labels), float32
        """
        last = max(self._features, key=lambda feature: feature.first_word)
        result, previous = None, None
        for batch in self.epoch(0):
            if guard is not None:
                guard.check()
            # the device works on this batch while the last one's scores are copied
            current = batch.indices, forward(batch)
            if result is None:
                shape = last.first_word + len(last.places), current[1].shape[-1]
                result = np.zeros(shape, np.float32)
            self._store(result, previous)
            previous = current
        self._store(result, previous)
        return result

    def _store(self, result, part):
        if part is None:
            return
        for index, rows in zip(part[0], part[1].astype('float32').asnumpy()):
            sample = self._features[index]
            first = sample.first_word
            result[first : first + len(sample.places)] = rows[sample.places]


def score_tags(right, predicted, entities=None):
    """How well labels were predicted.

    Parameters
    ----------
    right, predicted : sequence of sequence of str
        The labels of each sentence.
    entities : bool, optional
        Whether the labels mark entities, in any of the schemes IOB1, IOB2, IOBES and BILOU; by
        default `has_entities` of those that there are.

    Returns
    -------
    dict of str to float
        ``accuracy`` of the words; with `entities` also ``precision``, ``recall`` and ``f1`` of
        these, of all types together, by seqeval, which counts as CoNLL's ``conlleval`` does.

    Raises
    ------
    MissingExtraError
        If seqeval is needed and not installed.
    """
    pairs = [pair for sentences in zip(right, predicted) for pair in zip(*sentences)]
    metrics = {'accuracy': sum(one == other for one, other in pairs) / len(pairs)}
    if entities is None:
        entities = has_entities({label for pair in pairs for label in pair})
    if entities:
        scores = entity_scorer()(
            _as_iobes(right), _as_iobes(predicted), average='micro', zero_division=0
        )
        metrics.update(zip(('precision', 'recall', 'f1'), map(float, scores)))
    return metrics


def entity_scorer():
    """seqeval's function for precision, recall, F1 and support.

    Raises
    ------
    MissingExtraError
        If seqeval isn't installed.
    """
    try:
        from seqeval.metrics.sequence_labeling import precision_recall_fscore_support
    except ImportError as error:
        raise MissingExtraError.of('seqeval', 'tagging') from error
    return precision_recall_fscore_support


def _as_iobes(sentences):
    """The labels with the letters that seqeval knows."""
    return [
        [_AS_IOBES.get(label[0], label[0]) + label[1:] for label in labels] for labels in sentences
    ]
