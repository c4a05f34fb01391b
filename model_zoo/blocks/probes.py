"""The attention heads' outputs of a call, and their gradients."""

import contextlib
import weakref
from typing import NamedTuple

import mxnet as mx

from .block import ZooBlock
from .graphs import BlockGraphs


class KeptHeads(NamedTuple):
    """The heads' outputs of a call, for each layer, and the probes that get their gradients."""

    outputs: list
    probes: list


def make_probes(block, words):
    """Make zeros to add to the heads' outputs of a block; they get the outputs' gradients."""
    # Autograd itself doesn't keep gradients of values within a graph.
    length = words.shape[-1]
    batch = words.size // length
    probes = []
    for attention in block.base.attentions():
        units = attention.num_heads * block.config.head_size
        dtype = attention.qkv.weight.dtype
        probe = mx.nd.zeros((length, batch, units), ctx=words.context, dtype=dtype)
        probe.attach_grad()
        probes.append(probe)
    return probes


def call_with_probes(block, probes, *inputs):
    """Call a block, and add an array to the heads' outputs of each layer; returns also these."""
    parts = []
    block.apply(parts.append)
    active = [part for part in parts if getattr(part, '_active', False)]
    flags = dict(active[-1]._flags) if active else None  # a graph, if any part is one
    known, watched = block._graphs.get('watched', (None, None))
    if watched is None or known != flags:
        # a bound method: a block would become a child of this block
        watched = _Watched(block, flags).__call__
        block._graphs['watched'] = flags, watched
    return watched(probes, *inputs)


class _Watched(BlockGraphs):
    """A block with probes as the first input, and the heads' outputs as the last output."""

    # It is hybridized with `flags`, or not if they are None.

    def __init__(self, block, flags):
        super().__init__()
        self._block = weakref.ref(block)  # not as a part of this one
        self.graph_options = block.graph_options
        if flags is not None:
            self.hybridize(True, **flags)

    def collect_params(self, select=None):
        return self._block().collect_params(select)

    @property
    def output_all_encodings(self):
        """Whether the block returns all layers' states; see `graph_options`."""
        return self._block().output_all_encodings

    def hybrid_forward(self, F, probes, *inputs):
        block = self._block()
        with _watching(block.base, probes) as heads:
            return ZooBlock.run(block, *inputs), heads


@contextlib.contextmanager
def _watching(base, probes):
    """Add `probes` to the heads' outputs within a context; yields the list of the outputs."""
    outputs = []

    def watch(heads):  # called by one layer after the other
        outputs.append(heads + probes[len(outputs)])
        return outputs[-1]

    base.is_watched = True
    try:
        for attention in base.attentions():
            attention.watch = watch
        yield outputs
    finally:
        base.is_watched = False
        for attention in base.attentions():
            attention.watch = None
