"""Batches for language models: a long text in parallel streams, or sentences in any order.

Source: ``data_utils.py`` of kimiyoung/transformer-xl, in the form of pytorch-pretrained-bert 0.6.2,
which gives the same batches.
"""

import itertools

import mxnet as mx
import numpy as np

from model_zoo.batches import Batch, Loader
from model_zoo.errors import InputError

__all__ = ['LMMultiFileIterator', 'LMOrderedIterator', 'LMShuffledIterator', 'StreamLoader']


class LMOrderedIterator:
    """Cuts one text into `bsz` streams, and these into segments that follow one another.

    Yields ``(data, target, length)``: arrays of int32, shape (bsz, length), `target` being `data`
    shifted by one; the last segment may be shorter. With `ext_len`, `data` also holds that many
    preceding tokens. A remainder that doesn't fill all streams is dropped.

    Parameters
    ----------
    data : np.ndarray
        Ids, shape (tokens,).
    bsz : int
        Number of streams.
    bptt : int
        Length of a segment.
    ext_len : int
    """

    def __init__(self, data, bsz, bptt, ext_len=0):
        self.bsz, self.bptt, self.ext_len = _check(bsz, bptt, ext_len)
        data = np.asarray(data, dtype=np.int32)
        if data.ndim != 1:
            raise InputError(f'data has shape {data.shape}; one text is one row of ids')
        self.n_step = len(data) // bsz
        if self.n_step < 2:
            raise InputError(
                f'{len(data)} tokens are too few for bsz={bsz} streams of at least 2; '
                'take a smaller bsz'
            )
        self.data = data[: self.n_step * bsz].reshape(bsz, self.n_step)
        self.n_batch = -(-self.n_step // bptt)

    def get_batch(self, i, bptt=None):
        """The segment that begins at place `i` of the streams."""
        length = min(bptt or self.bptt, self.n_step - 1 - i)
        data = self.data[:, max(0, i - self.ext_len) : i + length]
        return data, self.data[:, i + 1 : i + 1 + length], length

    def get_fixlen_iter(self, start=0):
        """Segments of length `bptt`."""
        for i in range(start, self.n_step - 1, self.bptt):
            yield self.get_batch(i)

    def get_varlen_iter(self, start=0, std=5, min_len=5, max_deviation=3):
        """Segments of random lengths (by NumPy's generator) about `bptt`, one in twenty half."""
        longest = self.bptt + max_deviation * std
        i = start
        while True:
            mean = self.bptt if np.random.random() < 0.95 else self.bptt / 2
            bptt = min(longest, max(min_len, int(np.random.normal(mean, std))))
            data, target, length = self.get_batch(i, bptt)
            i += length
            yield data, target, length
            if i >= self.n_step - 2:
                return

    def __len__(self):
        return -(-(self.n_step - 1) // self.bptt)

    def __iter__(self):
        return self.get_fixlen_iter()


class LMShuffledIterator:
    """Fills `bsz` streams with whole sentences, and cuts them into segments.

    Yields ``(data, target, length)`` as :class:`LMOrderedIterator` does, always of length `bptt`.
    Tokens at the end that don't fill a segment of every stream are left out.

    Parameters
    ----------
    data : list of np.ndarray
        Ids of each sentence.
    bsz : int
        Number of streams.
    bptt : int
        Length of a segment.
    ext_len : int
        Number of tokens of the last segment that are repeated before the next one.
    shuffle : bool
        Whether to draw a new order of the sentences (by NumPy's generator) each time.
    """

    def __init__(self, data, bsz, bptt, ext_len=0, shuffle=False):
        self.data, self.shuffle = data, shuffle
        self.bsz, self.bptt, self.ext_len = _check(bsz, bptt, ext_len)

    def __iter__(self):
        count = len(self.data)
        order = np.random.permutation(count) if self.shuffle else range(count)
        return self._segments(self.data[i] for i in order)

    def _segments(self, sentences):
        streams = [np.empty(0, np.int32)] * self.bsz
        kept = np.empty((self.bsz, 0), np.int32)
        while True:
            data, target = np.empty((2, self.bsz, self.bptt), np.int32)
            for row in range(self.bsz):
                filled = 0
                while filled < self.bptt:
                    while len(streams[row]) <= 1:
                        sentence = next(sentences, None)
                        if sentence is None:
                            return
                        streams[row] = np.asarray(sentence, np.int32)
                    stop = min(len(streams[row]) - 1, self.bptt - filled)
                    data[row, filled : filled + stop] = streams[row][:stop]
                    target[row, filled : filled + stop] = streams[row][1 : stop + 1]
                    streams[row] = streams[row][stop:]
                    filled += stop
            data = np.concatenate([kept, data], axis=1)
            yield data, target, self.bptt
            kept = data[:, data.shape[1] - min(data.shape[1], self.ext_len) :]


class LMMultiFileIterator(LMShuffledIterator):
    """:class:`LMShuffledIterator` over files that are read one at a time.

    Parameters
    ----------
    paths : list of str
    vocab : object
        With ``encode_file(path, add_double_eos=True)``.
    bsz, bptt, ext_len, shuffle
        As of :class:`LMShuffledIterator`; `shuffle` concerns the files and each file's sentences.
    """

    def __init__(self, paths, vocab, bsz, bptt, ext_len=0, shuffle=False):
        super().__init__(None, bsz, bptt, ext_len, shuffle)
        self.paths, self.vocab = list(paths), vocab

    def __iter__(self):
        if self.shuffle:
            np.random.shuffle(self.paths)
        for path in self.paths:
            sentences = self.vocab.encode_file(path, add_double_eos=True)
            if self.shuffle:
                np.random.shuffle(sentences)
            yield from self._segments(iter(sentences))


class StreamLoader(Loader):
    """Loads the segments of an `LMOrderedIterator` onto a device, for the training loop.

    For models that remember what they have read. The text is cut into `batch_size` streams, which
    are read in parallel: row r of a batch continues row r of the batch before it. The labels of a
    batch are the tokens that follow its words, and -1 in the extension. ``count`` is the number of
    labels other than -1, and ``is_first`` says whether the text begins here.

    Parameters
    ----------
    tokens : numpy.ndarray, shape (number of tokens,)
    batch_size : int
        Number of streams.
    length : int
        Tokens of each stream that a batch predicts; the last batch may have fewer.
    extension : int
        How many of the preceding words a batch repeats.
    ctx : mxnet.Context
        Where the batches are put.
    workers : object, optional
        See `Loader`: each worker reads its own `batch_size` streams.

    Attributes
    ----------
    labels : numpy.ndarray, shape (number of streams, number of labels of a stream), int32
        The labels of all batches of all workers.
    """

    def __init__(self, tokens, batch_size, length, extension=0, ctx=None, workers=None):
        super().__init__(ctx=ctx, workers=workers)
        batch_size *= self._size
        if len(tokens) < 2 * batch_size:
            raise InputError(
                f'a text of {len(tokens)} tokens is too short for a batch_size of {batch_size}'
            )
        self._segments = LMOrderedIterator(tokens, batch_size, length, extension)
        self.labels = self._segments.data[:, 1:]

    def __len__(self):
        return len(self._segments)

    def epoch(self, epoch, start=0):
        segments = itertools.islice(enumerate(self._segments), start, None)
        own = slice(self._rank, None, self._size)
        for number, (words, labels, length) in segments:
            words, labels = words[own], labels[own]
            shown_again = words.shape[1] - length
            all_labels = np.pad(labels, ((0, 0), (shown_again, 0)), constant_values=-1)
            ctx = self._context(number)
            yield Batch(
                mx.nd.array(words, ctx=ctx, dtype='int32'),
                labels=mx.nd.array(all_labels, ctx=ctx, dtype='int32'),
                count=labels.size,
                is_first=number == 0,
            )


def _check(bsz, bptt, ext_len):
    for name, value, least in (('bsz', bsz, 1), ('bptt', bptt, 1), ('ext_len', ext_len or 0, 0)):
        if value < least:
            raise InputError(f'{name} is {value}; it must be at least {least}')
    return bsz, bptt, ext_len or 0
