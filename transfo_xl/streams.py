"""Batches for language models: a long text in parallel streams.

Source: ``data_utils.py`` of kimiyoung/transformer-xl, in the form of pytorch-pretrained-bert 0.6.2,
which gives the same batches.
"""

import mxnet as mx
import numpy as np

from model_zoo.batches import Batch, Loader
from model_zoo.errors import InputError


class StreamLoader(Loader):
    """The segments of a long text, for the training loop.

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
        The number of preceding words that a batch repeats.
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
            raise InputError(f'the text is too short for a batch_size of {batch_size}')
        steps = len(tokens) // batch_size
        tokens = np.asarray(tokens, dtype=np.int32)[: steps * batch_size]
        self._streams = tokens.reshape(batch_size, steps)
        self._extension = extension
        self._starts = range(0, steps - 1, length)
        self.labels = self._streams[:, 1:]

    def __len__(self):
        return len(self._starts)

    def epoch(self, epoch, start=0):
        streams, labels = (rows[self._rank :: self._size] for rows in (self._streams, self.labels))
        for number, begin in enumerate(self._starts[start:], start):
            end = min(begin + self._starts.step, labels.shape[1])
            words = streams[:, max(0, begin - self._extension) : end]
            shown_again = words.shape[1] - (end - begin)
            widths = (0, 0), (shown_again, 0)
            all_labels = np.pad(labels[:, begin:end], widths, constant_values=-1)
            ctx = self._context(number)
            words = mx.nd.array(words, ctx=ctx, dtype='int32')
            made = {'labels': mx.nd.array(all_labels, ctx=ctx, dtype='int32')}
            yield Batch(words, count=len(labels) * (end - begin), is_first=number == 0, **made)
