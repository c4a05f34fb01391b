"""The base of blocks with attention heads."""

import mxnet as mx
from mxnet.gluon import HybridBlock

from ..errors import InputError
from ..layers.graphs import with_attributes
from ..util.arrays import check_array
from .block import ZooBlock
from .graphs import without_graphs

__all__ = ['AttentionBlock']


class AttentionBlock(ZooBlock):
    """A `ZooBlock` of layers with `SelfAttention`.

    A family's backbone has ``attentions()``, the list of its `SelfAttention` in order, and its
    configuration is an `AttentionConfig`. While the heads are watched, only one thread may use the
    block.

    Parameters
    ----------
    config : AttentionConfig
    output_attentions, output_all_encodings : bool
        Whether the backbone returns attentions, and the states of all layers.
    keep_multihead_output : bool
        Whether `get_multihead_outputs` and `get_multihead_gradients` work; then calls use no graph.

    Attributes
    ----------
    initializer : mx.init.Initializer
        Of the weights, as the configuration says.
    dense_options : dict
        Arguments of a `Dense` on the layers' outputs.
    """

    #: each layer's heads' outputs of the last call, with the probe that gets their gradients
    _kept = None
    _is_watched = False
    #: how many times the backbone got new parameters, now and when the graphs were made
    _changes = 0
    _changes_seen = 0

    def __init__(
        self,
        config,
        output_attentions=False,
        output_all_encodings=False,
        keep_multihead_output=False,
        prefix=None,
        params=None,
    ):
        super().__init__(config, prefix=prefix, params=params)
        self.output_attentions = output_attentions
        self.output_all_encodings = output_all_encodings
        self.keep_multihead_output = keep_multihead_output
        self.initializer = mx.init.Normal(config.initializer_range)
        self.dense_options = {'in_units': config.units, 'weight_initializer': self.initializer}

    def run(self, *inputs):
        base = self.base
        if not isinstance(inputs[0], mx.sym.Symbol):  # symbols make a larger graph
            if self._changes_seen != base._changes:
                self._follow_changes()
            if base.keep_multihead_output and not base._is_watched:
                return self._run_watched(inputs)
        return HybridBlock.__call__(self, *inputs)

    def _run_watched(self, inputs):
        """Run the block, and keep the heads' outputs, and probes for their gradients."""
        base, kept = self.base, []

        def watch(heads):  # called by one layer after the other
            # autograd itself keeps no gradients of intermediate values
            probe = mx.nd.zeros(heads.shape, ctx=heads.context, dtype=heads.dtype)
            probe.attach_grad()
            kept.append((heads + probe, probe))
            return kept[-1][0]

        watched = with_attributes(base.attentions(), watch=watch)
        with without_graphs(self), with_attributes([base], _is_watched=True), watched:
            result = HybridBlock.__call__(self, *inputs)
        base._kept = kept
        return result

    def check(self, inputs):
        super().check(inputs)
        if inputs.get('head_mask') is not None:
            inputs['head_mask'] = self.full_head_mask(inputs['head_mask'])

    def cast(self, dtype):
        super().cast(dtype)
        self.base._changes += 1  # other blocks that share it drop their graphs

    def _follow_changes(self):
        """Drop graphs with old parameters; another owner may have changed the backbone."""
        if self._changes_seen != self.base._changes:
            self._clear_cached_op()
            self._changes_seen = self.base._changes

    def _changed(self):
        """Make new graphs: the backbone's now, its owners' at their next call."""
        self._changes += 1
        self._clear_cached_op()
        if self._active:  # the new blocks, too
            self.hybridize(True, **dict(self._flags))

    def full_head_mask(self, head_mask):
        """Return a head mask of (heads,) or (layers, heads) as (layers, heads)."""
        layers, heads = self.config.num_layers, self.config.num_heads
        if isinstance(head_mask, mx.nd.NDArray) and head_mask.ndim == 1:
            check_array('head_mask', head_mask, (heads,))
            return head_mask.reshape((1, -1)).broadcast_to((layers, heads))
        check_array('head_mask', head_mask, (layers, heads))
        return head_mask

    @staticmethod
    def join_outputs(*outputs):
        """Return the outputs that aren't None, as a list; a single one isn't wrapped."""
        outputs = [output for output in outputs if output is not None]
        return outputs[0] if len(outputs) == 1 else outputs

    def example_makers(self, batch_size, length, random):
        shape = self.config.num_layers, self.config.num_heads
        makers = super().example_makers(batch_size, length, random)
        return {**makers, 'head_mask': lambda: random.randint(0, 2, shape).astype('float32')}

    # -- the heads' outputs ---------------------------------------------------------------------

    def watch_heads(self, attentions=True, outputs=True):
        """Set `output_attentions` and `keep_multihead_output`; returns the old values."""
        base = self.base
        before = base.output_attentions, base.keep_multihead_output
        base.output_attentions, base.keep_multihead_output = attentions, outputs
        base._kept = None
        base._changed()
        return before

    def get_multihead_outputs(self):
        """Return each layer's heads' outputs of the last call, (batch, heads, length, head_size).

        The backbone needs ``keep_multihead_output=True``.
        """
        return [self._by_head(output) for output, _ in self._get_kept()]

    def get_multihead_gradients(self):
        """Return the loss's gradients for `get_multihead_outputs`, after ``loss.backward()``."""
        return [self._by_head(probe.grad) for _, probe in self._get_kept()]

    def _get_kept(self):
        if self.base._kept is None:
            raise InputError('call a model with keep_multihead_output=True first')
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
        base = self.base
        config, attentions = base.config, base.attentions()
        merged = config.add_pruned(heads_to_prune)
        for layer, pruned in merged.items():
            before = config.kept_heads(layer)
            kept = [i for i, head in enumerate(before) if head not in pruned]
            if len(kept) < len(before):
                attentions[layer].prune(kept)
        config.pruned_heads.clear()  # in place: the configurations of the tasks on top share it
        config.pruned_heads.update(merged)
        base._changed()
