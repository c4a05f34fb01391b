"""Batches of pairs of text, read on the fly from a single file, as in the original."""

import random

import numpy as np

from model_zoo.errors import InputError, reporting
from model_zoo.tasks.pretraining.files import Samples, mask_weights
from model_zoo.tasks.pretraining.loaders import make_batch
from model_zoo.util.arrays import pad_rows

__all__ = ['PairLoader']

_MARGIN = 2000  # bytes at the end of the file where no random text begins


class PairLoader:
    """Batches of pairs of texts with masked words, from a text too large to be in memory.

    The text has one sentence per line, and an empty line between documents. The first text of a
    pair is read where the last pair ended. The second one follows it or, with equal probability, is
    read at a random place. An epoch ends where the text does, or where a random place is too near
    to its end; the pairs of a batch that isn't full are left out.

    The random numbers come from Python's ``random`` with the seed, drawn as in the original, so the
    batches are the same.
    """

    def __init__(
        self,
        path,
        tokenizer,
        batch_size,
        max_seq_length=512,
        max_predictions_per_seq=20,
        masked_lm_prob=0.15,
        short_seq_prob=0.1,
        seed=0,
        ctx=None,
    ):
        with reporting(f'cannot read the text {path!r}'):
            # both at once, since pairs are read from two places
            self._text, self._elsewhere = (
                open(path, encoding='utf-8', errors='ignore')  # noqa: SIM115 (see `close`)
                for _ in range(2)
            )
            size = self._elsewhere.seek(0, 2)
        if size < _MARGIN:
            self.close()
            raise InputError(f'the text {path!r} has {size} bytes: it needs at least {_MARGIN}')
        self._last_offset = size - _MARGIN
        self._tokenizer, self._batch_size = tokenizer, batch_size
        self._max_length, self._short = max_seq_length, short_seq_prob
        self._max_masks, self._mask_prob = max_predictions_per_seq, masked_lm_prob
        self._seed = seed
        self._contexts = list(ctx) if isinstance(ctx, (list, tuple)) else [ctx]
        self._tokens = list(dict.fromkeys(tokenizer.vocab.idx_to_token))
        self._rewind()

    def _rewind(self):
        self._random = random.Random(self._seed)
        self._text.seek(0)
        self._at = (0, 0)  # epoch and number of the next batch

    def close(self):
        """Close the file."""
        self._text.close()
        self._elsewhere.close()

    def epoch(self, epoch, start=0):
        """Iterate over the batches of an epoch from number `start` on: see `Loader`.

        The text before them is read again, unless the last batch was the one before.
        """
        if self._at != (epoch, start):
            self._rewind()
            while self._at != (epoch, start):
                if self._at[0] > epoch:
                    return
                self._read_batch()
        while True:
            pairs = self._read_batch()
            if pairs is None:
                return
            yield self._batch(pairs, self._contexts[(self._at[1] - 1) % len(self._contexts)])

    def position(self):
        """Return the place where the next batch begins, as plain JSON for `go_to`."""
        return [*self._at, self._text.tell(), self._random.getstate()]

    def go_to(self, position):
        """Continue where another loader of the same text was."""
        epoch, number, offset, (version, state, gauss) = position
        self._at = (epoch, number)
        self._text.seek(offset)
        self._random.setstate((version, tuple(state), gauss))

    def _read_batch(self):
        """Return the pairs of a batch, or None at the end of the epoch."""
        pairs = []
        for _ in range(self._batch_size):
            pair = self._read_pair()
            if pair is None:
                self._text.seek(0)
                self._at = (self._at[0] + 1, 0)
                return None
            pairs.append(self._mask(*pair))
        self._at = (self._at[0], self._at[1] + 1)
        return pairs

    def _read_pair(self):
        draw = self._random
        half = int(self._max_length / 2)
        length = draw.randint(1, half) if draw.random() < self._short else half
        follows = draw.random() < 0.5
        first = self._read_tokens(self._text, length, restarts=True)
        self._elsewhere.seek(draw.randint(0, self._last_offset))
        self._elsewhere.readline()  # the rest of a sentence
        second = self._read_tokens(self._text if follows else self._elsewhere, length)
        return None if first is None or second is None else (follows, first, second)

    def _read_tokens(self, file, length, restarts=False):
        """Return sentences with at least that many tokens; None at the end of the text."""
        tokens = []
        while len(tokens) < length:
            line = file.readline()
            if not line:
                return None
            line = line.strip()
            if line:
                tokens += self._tokenizer.tokenize(line)
            elif restarts:
                tokens = []
            else:
                break
        return tokens

    def _mask(self, follows, first, second):
        """Return ids, token types, masked positions, their words, and whether the pair follows."""
        while len(first) + len(second) > self._max_length - 3:
            (first if len(first) > len(second) else second).pop()
        tokens = ['[CLS]', *first, '[SEP]', *second, '[SEP]']
        types = [0] * (len(first) + 2) + [1] * (len(second) + 1)
        draw = self._random
        count = min(self._max_masks, max(1, round(len(tokens) * self._mask_prob)))
        positions = [n for n, token in enumerate(tokens) if token not in ('[CLS]', '[SEP]')]
        draw.shuffle(positions)
        positions = positions[:count]
        words = [tokens[n] for n in positions]
        for n in positions:
            if draw.random() < 0.8:
                tokens[n] = '[MASK]'
            elif draw.random() < 0.5:
                tokens[n] = self._tokens[draw.randint(0, len(self._tokens) - 1)]
        ids = self._tokenizer.convert_tokens_to_ids
        return ids(tokens), types, positions, ids(words), follows

    def _batch(self, pairs, ctx):
        ids, types, positions, words, follows = zip(*pairs)
        samples = Samples(
            pad_rows(ids),
            pad_rows(types),
            pad_rows(positions, length=self._max_masks),
            pad_rows(words, length=self._max_masks),
            mask_weights(positions, self._max_masks),
            1 - np.array(follows, np.int32),
            np.array(list(map(len, ids)), np.int32),
        )
        pad = self._tokenizer.pad_token_id
        return make_batch(samples, np.arange(len(pairs)), pad, 1, ctx)
