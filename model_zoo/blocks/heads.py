"""Attention heads of a block, and the heads of tasks."""

import contextlib
import weakref
from types import SimpleNamespace

import mxnet as mx
from mxnet.gluon import HybridBlock

from ..errors import InputError
from ..util.arrays import check_shape
from .block import ZooBlock
from .graphs import BlockGraphs

__all__ = ['AttentionBlock', 'TaskMixin']


class AttentionBlock(ZooBlock):
    """A `ZooBlock` of layers with `SelfAttention`.

    A family's backbone has ``attentions()``, the list of its `SelfAttention` in order, and its
    configuration is an `AttentionConfig`. While the heads are watched, only one thread may use the
    block.
    """

    #: whether the backbone returns attentions
    output_attentions = False
    #: whether `get_multihead_outputs` and `get_multihead_gradients` work
    keep_multihead_output = False
    _kept = None  # the heads' outputs of the last call, and their probes
    _is_watched = False
    #: how often the backbone has got new parameters, and what this block's graphs know of it
    _changes = 0
    _changes_seen = 0

    def run(self, *inputs):
        base = self.base
        if isinstance(inputs[0], mx.sym.Symbol):  # a part of another block's graph
            return super().run(*inputs)
        if self._changes_seen != base._changes:
            self._follow_changes()
        if not base.keep_multihead_output or base._is_watched:
            return HybridBlock.__call__(self, *inputs)
        probes = base.make_probes(inputs[0])
        output, heads = self.call_with_probes(probes, *inputs)
        base._kept = heads, probes
        return output

    def check(self, inputs):
        super().check(inputs)
        if inputs.get('head_mask') is not None:
            inputs['head_mask'] = self.full_head_mask(inputs['head_mask'])

    def cast(self, dtype):
        super().cast(dtype)
        self.base._changes += 1  # so that others that share it drop their graphs

    def _follow_changes(self):
        """Drop graphs with old parameters; another owner may have changed the backbone."""
        changes = self.base._changes
        if self._changes_seen != changes:
            self._clear_cached_op()
            self._changes_seen = changes

    def _changed(self):
        """Make new graphs: the backbone's now, its owners' at their next call."""
        self._changes += 1
        self._clear_cached_op()
        if self._active:  # the new blocks, too
            self.hybridize(True, **dict(self._flags))

    def full_head_mask(self, head_mask):
        """A head mask of (heads,) or (layers, heads) as (layers, heads).

        None, and a mask within a graph, stays as it is.
        """
        if head_mask is None or isinstance(head_mask, mx.sym.Symbol):
            return head_mask
        layers, heads = self.config.num_layers, self.config.num_heads
        if isinstance(head_mask, mx.nd.NDArray) and head_mask.ndim == 1:
            check_shape('head_mask', head_mask, (heads,))
            return head_mask.reshape((1, -1)).broadcast_to((layers, heads))
        check_shape('head_mask', head_mask, (layers, heads))
        return head_mask

    @staticmethod
    def join_outputs(*outputs):
        """The outputs that aren't None, as a list; a single one isn't wrapped."""
        outputs = [output for output in outputs if output is not None]
        return outputs[0] if len(outputs) == 1 else outputs

    def example_makers(self, batch_size, length, random):
        shape = self.config.num_layers, self.config.num_heads
        return {
            **super().example_makers(batch_size, length, random),
            'head_mask': lambda: random.randint(0, 2, shape).astype('float32'),
        }

    # -- the heads' outputs ---------------------------------------------------------------------

    def watch_heads(self, attentions=True, outputs=True):
        """Set `output_attentions` and `keep_multihead_output`; returns the old values."""
        base = self.base
        before = base.output_attentions, base.keep_multihead_output
        base.output_attentions, base.keep_multihead_output = attentions, outputs
        base._kept = None
        base._changed()
        return before

    def make_probes(self, words):
        """Zeros to add to the heads' outputs; they get the outputs' gradients."""
        # Autograd itself doesn't keep gradients of values within a graph.
        length = words.shape[-1]
        batch = words.size // length
        probes = []
        for attention in self.base.attentions():
            units = attention.num_heads * self.config.head_size
            dtype = attention.qkv.weight.dtype
            probe = mx.nd.zeros((length, batch, units), ctx=words.context, dtype=dtype)
            probe.attach_grad()
            probes.append(probe)
        return probes

    def call_with_probes(self, probes, *inputs):
        """Call the block, and add an array to the heads' outputs of each layer."""
        parts = []
        self.apply(parts.append)
        active = [part for part in parts if getattr(part, '_active', False)]
        flags = dict(active[-1]._flags) if active else None  # a graph, if any part is one
        known, watched = self._graphs.get('watched', (None, None))
        if watched is None or known != flags:
            # a bound method: a block would become a part of this one
            watched = _Watched(self, flags).__call__
            self._graphs['watched'] = flags, watched
        return watched(probes, *inputs)

    @contextlib.contextmanager
    def _watching(self, probes):
        """A context that adds `probes` to the heads' outputs; yields the list of these outputs."""
        outputs = []

        def watch(heads):  # called by one layer after the other
            outputs.append(heads + probes[len(outputs)])
            return outputs[-1]

        self._is_watched = True
        try:
            for attention in self.attentions():
                attention.watch = watch
            yield outputs
        finally:
            self._is_watched = False
            for attention in self.attentions():
                attention.watch = None

    def get_multihead_outputs(self):
        """For each layer the heads' outputs of the last call, (batch, heads, length, head_size).

        The backbone needs ``keep_multihead_output=True``.
        """
        outputs, _ = self._get_kept()
        return [self._by_head(array) for array in outputs]

    def get_multihead_gradients(self):
        """The loss's gradients for `get_multihead_outputs`, after ``loss.backward()``."""
        _, probes = self._get_kept()
        return [self._by_head(probe.grad) for probe in probes]

    def _get_kept(self):
        if self.base._kept is None:
            raise InputError(
                'there are no multi-head outputs: make the model with keep_multihead_output=True '
                'and call it first'
            )
        return self.base._kept

    def _by_head(self, array):
        return array.reshape((0, 0, -1, self.config.head_size)).transpose((1, 2, 0, 3))

    # -- pruning --------------------------------------------------------------------------------

    def prune_heads(self, heads_to_prune):
        """Remove attention heads permanently.

        Create a new Trainer afterwards, because these layers have new parameters.

        Parameters
        ----------
        heads_to_prune : dict of int to list of int
            Layer -> heads, by their original numbers. Pruned ones are skipped.
        """
        self.base._prune(heads_to_prune)

    def _prune(self, heads_to_prune):
        config = self.config
        merged = config.add_pruned(heads_to_prune)
        keep = {}  # layer -> those of its heads now that stay
        for layer, pruned in merged.items():
            before = config.kept_heads(layer)
            kept = [i for i, head in enumerate(before) if head not in pruned]
            if len(kept) < len(before):
                keep[layer] = kept
        attentions = {layer: self.attentions()[layer] for layer in keep}
        try:
            for attention in attentions.values():
                attention.qkv.weight.list_ctx()
        except RuntimeError as error:
            raise InputError(
                'there are no weights to prune: initialize the block or load its parameters first'
            ) from error
        for layer, attention in attentions.items():
            attention.prune(keep[layer])
        config.pruned_heads.clear()  # in place: the configurations of the tasks on top share it
        config.pruned_heads.update(merged)
        self._changed()


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
        """Of `graph_options`."""
        return self._block().output_all_encodings

    def hybrid_forward(self, F, probes, *inputs):
        block = self._block()
        with block.base._watching(probes) as heads:
            return ZooBlock.run(block, *inputs), heads


class TaskMixin:
    """The mixin of task blocks; it goes before their family's block.

    The backbone has `output_names`, the names of its outputs in order.

    Parameters
    ----------
    model : Config or ZooBlock
        A backbone is used as it is and shared; a configuration makes a new one.
    **options
        For the new backbone, such as ``output_attentions=True``.
    """

    #: the family's backbone
    model_class = None
    #: options ``use_PART`` of the backbone that the head needs or doesn't; they are its `has_PART`
    parts = {}

    def __init__(self, model, prefix=None, params=None, **options):
        is_model = isinstance(model, self.model_class)
        super().__init__(model.config if is_model else model, prefix=prefix, params=params)
        if is_model and options:
            name = self.model_class.__name__
            raise InputError(f'{", ".join(options)}: set this where the {name} is made')
        with self.name_scope():
            if not is_model:
                model = self.model_class(self.config, **{**self.parts, **options})
            setattr(self, self.backbone, model)
        if hasattr(model.config, 'pruned_heads'):
            # the same dict, so that it tells of the heads that another owner of the model prunes
            self.config.pruned_heads = model.config.pruned_heads
        lacking = [
            name
            for name, needed in self.parts.items()
            if needed and not getattr(model, name.replace('use_', 'has_'))
        ]
        if lacking:
            raise InputError(
                f'{type(self).__name__} needs a {self.model_class.__name__} with '
                + ', '.join(f'{name}=True' for name in lacking)
            )

    def encode(self, *inputs, **named):
        """Run the backbone; returns an object with its outputs by name, None for missing ones.

        If the backbone returns the states of all layers, they are `states`, and the first output is
        the last layer's.
        """
        base = self.base
        outputs = base(*inputs, **named)
        names = base.output_names
        outputs = [outputs] if len(names) == 1 else outputs
        named = {**dict.fromkeys(base.outputs), **dict(zip(names, outputs))}
        if base.output_all_encodings:
            named['states'] = named[names[0]]
            named[names[0]] = named['states'][-1]
        return SimpleNamespace(**named)
