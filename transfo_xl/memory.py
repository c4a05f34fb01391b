"""Language models with a memory that lasts from one batch to the next."""

import mxnet as mx
import numpy as np
from mxnet.gluon import Block

__all__ = ['CarriedMemory', 'SegmentReader']


class SegmentReader:
    """Losses of a text without training: the model's `read`, and its state between batches.

    Parameters
    ----------
    model : TransfoXLLMHeadModel
        Its weights may change between texts, not within one.
    """

    def __init__(self, model):
        self._model = model
        self._state = None

    def __call__(self, batch):
        """Read the next batch."""
        state = None if batch.is_first else self._state
        losses, self._state = self._model.read(batch.words, batch.labels, state)
        return losses


class CarriedMemory(Block):
    """A language model and its memories.

    The memories are parameters that aren't trained, so that checkpoints contain them and a resumed
    training continues with them.

    Parameters
    ----------
    model : Block
        ``model(words, memories, labels=labels) -> (losses, memories)``, with the losses in the
        shape of the labels and 0 where these are -1, and ``init_mems(batch_size)``, the list of
        memories before the text begins. Initialized.
    batch_size : int
        Of all batches. With several workers, the size of each worker's part.
    workers : Workers, optional
        Each worker has the memories of its own streams. A checkpoint has those of all workers.

    Inputs
    ------
    batch : model_zoo.batches.Batch
        Of a `StreamLoader`.

    Outputs
    -------
    losses : (batch, length)
    """

    def __init__(self, model, batch_size, workers=None):
        super().__init__()
        self.model = model
        rank, size = (0, 1) if workers is None else (workers.rank, workers.size)
        self._own = slice(rank * batch_size, (rank + 1) * batch_size)
        self._first = model.init_mems(batch_size)
        self._memories = []
        for number, memory in enumerate(self._first):
            shape = list(memory.shape)
            shape[_batch_axis(memory)] *= size
            parameter = self.params.get(
                f'memory{number}', shape=tuple(shape), dtype=memory.dtype, grad_req='null'
            )
            parameter.initialize(mx.init.Zero(), ctx=memory.context)
            setattr(self, f'memory{number}', parameter)
            self._memories.append(parameter)

    def mirror(self, active=True):
        """See `ZooBlock.mirror`."""
        self.model.mirror(active)

    def forward(self, batch):
        # copies: the gradient needs what the model was given, and the memories change below
        first = self._first if batch.is_first else [self._read(each) for each in self._memories]
        losses, memories = self.model(
            batch.words, [each.copy() for each in first], labels=batch.labels
        )
        with mx.autograd.pause():
            for parameter, memory in zip(self._memories, memories):
                parameter.data()[self._place(memory)] = memory
        return losses

    def _place(self, memory):
        """The slice of this worker's streams in the memory of all workers."""
        return (slice(None),) * _batch_axis(memory) + (self._own,)

    def _read(self, parameter):
        return parameter.data()[self._place(parameter)]

    def gather(self, workers):
        """Collect the memories of all workers; all of them have to call it."""
        if workers.size == 1:
            return
        for parameter in self._memories:
            value = parameter.data()
            own = np.zeros(value.shape)
            own[self._place(value)] = self._read(parameter).asnumpy()
            parameter.set_data(mx.nd.array(workers.sum(own), dtype=value.dtype))

    def regroup(self, before, now):
        """Order the memories that `before` workers have gathered for `now` workers."""
        # Each worker's memories come together; of the streams, it reads every `before`-th.
        for parameter in self._memories:
            value = parameter.data()
            streams = np.arange(value.shape[_batch_axis(value)])
            stored = streams.reshape(-1, before).T.ravel()  # the stream of each place
            wanted = streams.reshape(-1, now).T.ravel()
            places = np.argsort(stored)[wanted]
            parameter.set_data(mx.nd.take(value, mx.nd.array(places), axis=_batch_axis(value)))


def _batch_axis(memory):
    """Memories of layers are (length, batch, units); the last array has a number for each row."""
    return 1 if len(memory.shape) == 3 else 0
