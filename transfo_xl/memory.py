"""Language models with a memory that lasts from one batch to the next."""

import os

import mxnet as mx
import numpy as np
from mxnet.gluon import Block

from model_zoo.errors import InputError

from .streams import StreamLoader
from .tokenizer import TransfoXLTokenizer

__all__ = ['StreamReading']


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
        self._streams = slice(rank * batch_size, (rank + 1) * batch_size)
        self._first = model.init_mems(batch_size)
        self._memories = []
        for number, memory in enumerate(self._first):
            shape = list(memory.shape)
            shape[_batch_axis(memory)] *= size
            options = {'shape': tuple(shape), 'dtype': memory.dtype, 'grad_req': 'null'}
            parameter = self.params.get(f'memory{number}', **options)
            parameter.initialize(mx.init.Zero(), ctx=memory.context)
            setattr(self, f'memory{number}', parameter)
            self._memories.append(parameter)

    def forward(self, batch):
        # copies: the gradient needs what the model was given, and the memories change below
        first = self._first if batch.is_first else [self._read(p) for p in self._memories]
        given = [memory.copy() for memory in first]
        losses, memories = self.model(batch.words, given, labels=batch.labels)
        with mx.autograd.pause():
            for parameter, memory in zip(self._memories, memories):
                parameter.data()[self._slice(memory)] = memory
        return losses

    def _slice(self, memory):
        """Return the slice of this worker's streams in the memory of all workers."""
        return (slice(None),) * _batch_axis(memory) + (self._streams,)

    def _read(self, parameter):
        return parameter.data()[self._slice(parameter)]

    def gather(self, workers):
        """Collect the memories of all workers; all of them have to call it."""
        if workers.size == 1:
            return
        for parameter in self._memories:
            value = parameter.data()
            padded = np.zeros(value.shape)
            padded[self._slice(value)] = self._read(parameter).asnumpy()
            parameter.set_data(mx.nd.array(workers.sum(padded), dtype=value.dtype))

    def regroup(self, before, now):
        """Order the memories that `before` workers have gathered for `now` workers."""
        # Each worker's memories come together; of the streams, it reads every `before`-th.
        for parameter in self._memories:
            value = parameter.data()
            streams = np.arange(value.shape[_batch_axis(value)])
            stored = streams.reshape(-1, before).T.ravel()  # the stream of each position
            wanted = streams.reshape(-1, now).T.ravel()
            indices = np.argsort(stored)[wanted]
            parameter.set_data(mx.nd.take(value, mx.nd.array(indices), axis=_batch_axis(value)))


def _batch_axis(memory):
    """Return the batch's axis of a layer's memory (length, batch, units), or of the counts."""
    return 1 if len(memory.shape) == 3 else 0


class StreamReading:
    """Reads a text for Transformer-XL: in order, in streams, with a memory.

    It has the parameters and methods of `model_zoo.tasks.language_model.BlockReading`.
    """

    not_for = 'max_length', 'split_special_tokens'
    needs_vocab = True

    def __init__(self, model, tokenizer, settings, workers):
        self._tokenizer, self._workers = tokenizer, workers
        lengths = {}
        for name in ('tgt_len', 'ext_len', 'mem_len'):
            given = getattr(settings, name)
            lengths[name] = getattr(model.config, name) if given is None else given
            setattr(model.config, name, lengths[name])  # for the saved model
        self.settings = settings.with_defaults(**lengths)
        model.reset_length(*lengths.values())
        self.block = CarriedMemory(model, settings.batch_size, workers)
        self._reader = SegmentReader(model)

    @staticmethod
    def learn_vocab(path, size, folder):
        special = ['<unk>', '<eos>']
        size = None if size is None else max(0, size - len(special))
        tokenizer = TransfoXLTokenizer(special=special, max_size=size)
        tokenizer.count_file(path, add_eos=True)
        tokenizer.build_vocab()
        tokenizer.save_pretrained(folder)
        return os.path.join(folder, 'vocab.json')

    @staticmethod
    def options(settings, tokenizer):
        cutoffs = tokenizer().cutoffs() if settings.cutoffs is None else settings.cutoffs
        return {'cutoffs': cutoffs}

    def load(self, path, batch_size, train, contexts):
        """Return the loader of a text's batches, the number of predicted words, and the tokens."""
        if len(contexts) > 1:
            problem = f'{self.settings.gpus}: use one, or `comm_backend` horovod with one for each'
            raise InputError(problem, field='gpus')
        tokens = self._tokenizer.encode_file(path, ordered=True, add_eos=True)
        lengths = self.settings.tgt_len, self.settings.ext_len
        workers = self._workers if train else None
        loader = StreamLoader(tokens, batch_size, *lengths, contexts[0], workers)
        ends = self._tokenizer.convert_tokens_to_ids('<eos>')
        return loader, int((loader.labels != ends).sum()), tokens

    def mean_loss(self, batch):
        return self.block(batch).sum() / batch.count

    def loss_sum(self, batch):
        return self._reader(batch).sum()
