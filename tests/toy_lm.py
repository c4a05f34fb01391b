"""A language model that is small enough to be checked by hand, with what generation needs."""

import mxnet as mx
import numpy as np
from mxnet.gluon import HybridBlock

from model_zoo.generation import GenerationMixin

DECAY = 0.75


class ToyState:
    """One vector a row: the decayed sum of the embeddings seen so far."""

    def __init__(self, hidden, room):
        self.hidden = hidden
        self.room = room

    def select(self, rows):
        return ToyState(self.hidden.take(mx.nd.array(rows)), self.room)


class ToyLM(GenerationMixin, HybridBlock):
    """Scores from a decayed sum of all tokens' embeddings: any token or order mistaken shows.

    `calls` lists what was run: ('start', words' shape, capacity) and ('step', rows).
    """

    def __init__(self, vocabulary=11, units=6, context_length=None, seed=0):
        super().__init__()
        self.context_length = context_length
        self.calls = []
        self._vocabulary = vocabulary
        with self.name_scope():
            self.embed = self.params.get('embed', shape=(vocabulary, units))
            self.output = self.params.get('output', shape=(vocabulary, units))
        self.initialize()
        generator = np.random.default_rng(seed)
        for parameter in (self.embed, self.output):
            parameter.set_data(mx.nd.array(generator.normal(size=parameter.shape)))

    def hybrid_forward(self, F, hidden, tokens, embed, output):
        hidden = DECAY * hidden + F.take(embed, tokens)
        scores = F.FullyConnected(hidden, output, no_bias=True, num_hidden=self._vocabulary)
        return scores, hidden

    def start(self, words, valid_length, capacity):
        assert words.dtype == valid_length.dtype == np.int32
        assert words.shape[1] <= capacity
        assert capacity <= (self.context_length or capacity)
        self.calls.append(('start', words.shape, capacity))
        lengths = valid_length.asnumpy()
        hidden = mx.nd.zeros((words.shape[0], self.embed.shape[1]))
        ends = mx.nd.zeros_like(hidden)
        scores = mx.nd.zeros((words.shape[0], self.embed.shape[0]))
        for place in range(words.shape[1]):
            new_scores, hidden = self(hidden, words[:, place])
            at_end = mx.nd.array(lengths == place + 1).reshape((-1, 1))
            scores = mx.nd.where(mx.nd.broadcast_like(at_end, scores), new_scores, scores)
            ends = mx.nd.where(mx.nd.broadcast_like(at_end, ends), hidden, ends)
        return scores, ToyState(ends, capacity - words.shape[1])

    def step(self, tokens, state):
        assert tokens.dtype == np.int32
        assert state.room > 0, 'the cache is full'
        self.calls.append(('step', tokens.shape[0]))
        scores, hidden = self(state.hidden, tokens)
        return scores, ToyState(hidden, state.room - 1)

    def log_probs(self, tokens):
        """Of the token after `tokens`, by NumPy in double precision."""
        embed, output = (each.data().asnumpy().astype('f8') for each in (self.embed, self.output))
        weights = DECAY ** np.arange(len(tokens))[::-1]
        scores = output @ (weights @ embed[list(tokens)])
        return scores - scores.max() - np.log(np.exp(scores - scores.max()).sum())
