"""A text's losses, segment by segment, without training.

The memory of `TransfoXLModel` holds the layers' inputs, as training needs it: its keys and values
change with the weights. While the weights stay, the keys and values of the last segments are still
right, and so are those of the distances. With a long memory they are most of the work: with
wikitext-103's model, of 1600 positions and segments of 128, two thirds.
"""

import mxnet as mx

from model_zoo.layers.locked import LockedGraph

__all__ = ['SegmentState', 'TransfoXLSegments']


class _Part(LockedGraph):
    """A graph of a part of the model."""

    def __init__(self, transformer):
        super().__init__()
        self.transformer = transformer

    def collect_params(self, select=None):
        """The parameters of the graph alone: Gluon warns of the others."""
        params = super().collect_params(select)
        if not self._cached_graph:
            return params
        result = mx.gluon.ParameterDict(params.prefix)
        used = {*self._cached_graph[1].list_inputs()}
        result.update({name: each for name, each in params.items() if name in used})
        return result


class _Memory(_Part):
    """Keys and values of a memory of hidden states."""

    def hybrid_forward(self, F, memories):
        return [
            list(arrays)
            for arrays in zip(
                *(cell.remember(F, each) for cell, each in zip(self.transformer.layers, memories))
            )
        ]


class _Distances(_Part):
    """The layers' keys of distances."""

    def hybrid_forward(self, F, distances, like):
        return self.transformer.distance_keys(F, distances, like)


class _Segment(_Part):
    """A segment: hidden states (batch * length, d_model), and the memory after it."""

    def hybrid_forward(self, F, words, counts, keys, values, distance_keys):
        x, counts, keys, values = self.transformer.read(
            F, words, counts, keys, values, distance_keys
        )
        hidden = F.reshape(F.transpose(x, axes=(1, 0, 2)), shape=(-3, 0))
        return hidden, counts, list(keys), list(values)


class SegmentState:
    """Where the reading of a text stands.

    Parameters
    ----------
    counts : (batch,)
        Places of the memory in use.
    keys, values : list of (heads * batch, mem_len, head_size)
        One a layer.
    distance_keys : list of (heads, mem_len + length + 1, head_size)
        One a layer, for the longest segment until now.
    """

    def __init__(self, counts, keys, values, distance_keys):
        self.counts = counts
        self.keys = keys
        self.values = values
        self.distance_keys = distance_keys


class TransfoXLSegments:
    """The graphs of `TransfoXLLMHeadModel.read`.

    Parameters
    ----------
    transformer : TransfoXLModel
    """

    def __init__(self, transformer):
        self._mem_len, self._units = transformer.mem_len, transformer.config.d_model
        parts = [part(transformer) for part in (_Memory, _Distances, _Segment)]
        for part in parts:
            part.hybridize(static_alloc=True, static_shape=True)
        self._memory, self._distances, self._segment = parts

    def start(self, words, mems):
        """The state before a text, with the memory `mems` of `TransfoXLModel`."""
        *memories, counts = mems
        keys, values = self._memory(memories)
        return SegmentState(counts, keys, values, self._distance_keys(words))

    def read(self, words, state):
        """Hidden states of a segment (batch * length, d_model), and the state after it."""
        distances = self._mem_len + words.shape[1] + 1
        known = state.distance_keys
        if known[0].shape[1] < distances:
            known = self._distance_keys(words)
        own = [each[:, -distances:] for each in known] if known[0].shape[1] > distances else known
        hidden, counts, keys, values = self._segment(
            words, state.counts, state.keys, state.values, own
        )
        return hidden, SegmentState(counts, keys, values, known)

    def _distance_keys(self, words):
        furthest, ctx = self._mem_len + words.shape[1], words.context
        distances = mx.nd.arange(furthest, -1, -1, ctx=ctx)
        return self._distances(distances, mx.nd.zeros((1, self._units), ctx))
