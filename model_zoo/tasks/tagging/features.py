"""Sentences of words with labels to token ids."""

import itertools
import logging

import numpy as np

from ...batches import Sample
from ...batches.windows import even_windows
from ...errors import InputError
from ...tokenization.chunks import SentenceEncoder

__all__ = ['TaggingFeatures']

logger = logging.getLogger(__name__)


class TaggingFeatures:
    """Turns sentences into samples: each a sentence, or one of the windows over a long one.

    A word's label belongs to its first piece. Nothing is cut: a sentence of more than `max_len`
    pieces, the special ones counted, is seen in overlapping windows, each word being learnt and
    predicted once, where it has most context. The `positions` of a sample are the first pieces of
    the words that it decides on (its part of what Google's README calls ``orig_to_tok_map``); the
    samples have all words in order.

    Parameters
    ----------
    tokenizer : object
        With ``encode_batch``, as ``bert.BertTokenizer`` has it.
    labels : sequence of str
        In the order of their numbers.
    max_len : int
    """

    def __init__(self, tokenizer, labels, max_len=128):
        if max_len < 3:
            raise InputError(
                f'a length of {max_len} is too small: two special tokens and one of a word make 3'
            )
        self._tokenizer, self._room = tokenizer, max_len - 2
        self._encoder = SentenceEncoder(tokenizer)  # knows the words of earlier files
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
        list of Sample

        Raises
        ------
        InputError
            If a label isn't one of those known.
        """
        pieces = self._pieces({word for sentence in sentences for word in sentence.words})
        features, long = [], 0
        for sentence in sentences:
            label = self._label(sentence, source)
            windows = self._windows([pieces[word] for word in sentence.words], label)
            long += len(windows) > 1
            features += windows
        if long:
            logger.info(
                '%s: %d of %d sentences have more than %d pieces: they are seen in windows',
                source, long, len(sentences), self._room,
            )  # fmt: skip
        return features

    def _pieces(self, words):
        """Word -> ids of its pieces; [UNK] where the tokenizer leaves nothing of it."""
        words, prefix = sorted(words), self._tokenizer.word_prefix
        unknown = np.array([self._tokenizer.unk_token_id], np.int32)
        ids, counts = self._encoder.encode([prefix + word for word in words])
        found = np.split(ids, np.cumsum(counts)[:-1])
        return {word: own if len(own) else unknown for word, own in zip(words, found)}

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
                f'{", ".join(self._numbers)} (of the training set, or the model); for a training, '
                'name all of them with `labels`'
            ) from None

    def _windows(self, pieces, label):
        """The samples of a sentence."""
        ids = np.concatenate(pieces)
        *firsts, length = itertools.accumulate(map(len, pieces), initial=0)
        firsts = np.array(firsts, np.int32)  # of the words' pieces
        if length <= self._room:
            return [self._sample(ids, firsts + 1, label)]
        features = []
        for window in even_windows(length, self._room):
            start, stop = np.searchsorted(firsts, (window.first, window.last))
            if start == stop:
                continue  # the middle of a word that is longer than the window
            own = None if label is None else label[start:stop]
            seen = ids[window.start : window.stop]
            features.append(self._sample(seen, firsts[start:stop] - window.start + 1, own))
        return features

    def _sample(self, ids, positions, label):
        seen = np.empty(len(ids) + 2, np.int32)
        seen[0], seen[-1] = self._tokenizer.cls_token_id, self._tokenizer.sep_token_id
        seen[1:-1] = ids
        return Sample(seen, np.zeros_like(seen), label, positions.astype(np.int32, copy=False))
