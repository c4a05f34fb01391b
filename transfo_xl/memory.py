"""Language models that remember what they have read, from one batch to the next."""

import mxnet as mx
from mxnet.gluon import Block

__all__ = ['CarriedMemory']


class CarriedMemory(Block):
    """A language model and its memories, which are parameters that aren't trained.

    So a checkpoint within an epoch has them too, and a training that is resumed goes on with what
    it remembered.

    Parameters
    ----------
    model : Block
        ``model(words, memories, labels=labels) -> (losses, memories)``, with the losses in the
        shape of the labels and 0 where these are -1, and ``init_mems(batch_size)``, the list of
        memories before the text begins. Initialized.
    batch_size : int
        Of all batches.

    Inputs
    ------
    batch : model_zoo.batches.Batch
        Of a `StreamLoader`.

    Outputs
    -------
    losses : (batch, length)
    """

    def __init__(self, model, batch_size):
        super().__init__()
        self.model = model
        self._first = model.init_mems(batch_size)
        self._memories = []
        for number, memory in enumerate(self._first):
            parameter = self.params.get(
                f'memory{number}', shape=memory.shape, dtype=memory.dtype, grad_req='null'
            )
            parameter.initialize(mx.init.Zero(), ctx=memory.context)
            setattr(self, f'memory{number}', parameter)
            self._memories.append(parameter)

    def forward(self, batch):
        # copies, since the gradient needs what the model was given when this is overwritten
        first = self._first if batch.is_first else [each.data() for each in self._memories]
        losses, memories = self.model(
            batch.words, [each.copy() for each in first], labels=batch.labels
        )
        with mx.autograd.pause():
            for parameter, memory in zip(self._memories, memories):
                parameter.set_data(memory)
        return losses
