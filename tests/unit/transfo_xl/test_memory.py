"""Memories that are carried from batch to batch."""

import mxnet as mx
import numpy as np
from mxnet.gluon import nn

from transfo_xl import CarriedMemory, StreamLoader


class Counter(nn.HybridBlock):
    """Its memory is the sum of all words so far; its loss the product of that and a weight."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.weight = self.params.get('weight', shape=(1,), init='ones')

    def init_mems(self, batch_size):
        return [mx.nd.zeros((batch_size, 1))]

    def __call__(self, words, mems, labels=None):
        return super().__call__(words.astype('float32'), mems, labels)

    def hybrid_forward(self, F, words, mems, labels, weight):
        losses = F.broadcast_add(F.zeros_like(words), F.broadcast_mul(mems[0], weight))
        return losses, [mems[0] + F.sum(words, axis=1, keepdims=True)]


TOKENS = np.arange(1, 14)


def make_model():
    model = Counter()
    model.initialize()
    model.hybridize(static_alloc=True, static_shape=True)
    return CarriedMemory(model, 2)


def test_memories_are_carried_on_and_begin_anew():
    model = make_model()
    for epoch in range(2):
        seen = []
        for batch in StreamLoader(TOKENS, 2, 2).epoch(epoch):
            seen.append(model(batch).asnumpy()[:, 0].tolist())
        assert seen == [[0, 0], [1 + 2, 7 + 8], [1 + 2 + 3 + 4, 7 + 8 + 9 + 10]]


def test_the_gradient_sees_the_memory_that_the_model_was_given():
    model = make_model()
    gradients = []
    for batch in StreamLoader(TOKENS, 2, 2):
        with mx.autograd.record():
            loss = model(batch).sum()
        loss.backward()
        (weight,) = model.model.collect_params().values()
        gradients.append(float(weight.grad().asscalar()) / batch.words.shape[1])
    assert gradients == [0, 3 + 15, 10 + 34]
