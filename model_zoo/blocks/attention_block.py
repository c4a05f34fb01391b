"""The base of blocks whose attention heads can be masked, watched and pruned."""

import mxnet as mx

from ..errors import InputError
from ..util.checks import check_shape
from .block import ZooBlock

__all__ = ['AttentionBlock']


class AttentionBlock(ZooBlock):
    """A `ZooBlock` of layers with `SelfAttention`.

    The last two inputs of its ``hybrid_forward`` are a head mask, (layers, heads) or None, and
    probes, a list of (length, batch, heads * head_size), one a layer, or None. With probes it
    returns its result and the heads' outputs, in the probes' shapes.

    A family's backbone has ``attentions()``, the list of its `SelfAttention`, and its
    configuration is an `AttentionConfig`.
    """

    #: whether `get_multihead_outputs` and `get_multihead_gradients` work
    keep_multihead_output = False
    _kept_outputs = None
    _kept_probes = None
    #: how often the backbone has got new parameters, and what this block's graphs know of it
    _changes = 0
    _changes_seen = 0

    def cast(self, dtype):
        super().cast(dtype)
        self.base._changes += 1  # so that others that share it drop their graphs

    def _run(self, words, inputs, head_mask, probes):
        """Call the block, and put the heads' outputs aside.

        Parameters
        ----------
        words : (..., length)
        inputs : list
            All inputs, of which `words` is the first, but the head mask and the probes.
        head_mask : (heads,) or (layers, heads) or None
        probes : list or None
            Given when another block calls this one; then the result is left as it is.
        """
        call = super().__call__
        if isinstance(words, mx.sym.Symbol):  # the caller of the outer block has checked
            return call(*inputs, head_mask, probes)
        base = self.base
        self._follow_changes()
        if head_mask is not None:
            head_mask = base.full_head_mask(head_mask)
        keep = base.keep_multihead_output and probes is None
        if keep:
            probes = base.make_probes(words)
        output = call(*inputs, head_mask, probes)
        if keep:
            output, heads = output
            base.set_multihead_outputs(heads, probes)
        return output

    def _follow_changes(self):
        """Drop graphs with parameters that the backbone no longer has; others may share it."""
        changes = self.base._changes
        if self._changes_seen != changes:
            self._clear_cached_op()
            self._changes_seen = changes

    def _changed(self):
        """Make new graphs, of the backbone here and of its owners at their next call."""
        self._changes += 1
        self._clear_cached_op()
        if self._active:  # the new blocks, too
            self.hybridize(True, **dict(self._flags))

    def full_head_mask(self, head_mask):
        """A head mask of (heads,) or (layers, heads) as (layers, heads)."""
        layers, heads = self.config.num_layers, self.config.num_heads
        if isinstance(head_mask, mx.nd.NDArray) and head_mask.ndim == 1:
            check_shape('head_mask', head_mask, (heads,))
            return head_mask.reshape((1, -1)).broadcast_to((layers, heads))
        check_shape('head_mask', head_mask, (layers, heads))
        return head_mask

    # -- the heads' outputs ---------------------------------------------------------------------

    def watch_heads(self, attentions=True, outputs=True):
        """Return attentions from the next call on, and keep the heads' outputs; or no longer.

        Parameters
        ----------
        attentions, outputs : bool
            For the backbone's `output_attentions` and `keep_multihead_output`.

        Returns
        -------
        (bool, bool)
            What they were.
        """
        base = self.base
        before = base.output_attentions, base.keep_multihead_output
        base.output_attentions, base.keep_multihead_output = attentions, outputs
        base._kept_outputs = base._kept_probes = None
        base._changed()
        return before

    def make_probes(self, words):
        """Zeros, one array a layer, whose gradients will be those of the heads' outputs."""
        length = words.shape[-1]
        batch = words.size // length
        probes = []
        for attention in self.attentions():
            units = attention.num_heads * self.config.head_size
            dtype = attention.qkv.weight.dtype
            probe = mx.nd.zeros((length, batch, units), ctx=words.context, dtype=dtype)
            probe.attach_grad()
            probes.append(probe)
        return probes

    def set_multihead_outputs(self, heads, probes):
        """Keep what `get_multihead_outputs` and `get_multihead_gradients` return."""
        self._kept_outputs, self._kept_probes = heads, probes

    def get_multihead_outputs(self):
        """The heads' outputs of the last call, with ``keep_multihead_output=True``.

        Returns
        -------
        list of (batch, heads, length, head_size)
            One a layer.
        """
        return self.base._by_head('outputs')

    def get_multihead_gradients(self):
        """The loss's gradients of `get_multihead_outputs`, after ``loss.backward()``.

        Returns
        -------
        list of (batch, heads, length, head_size)
            One a layer.
        """
        return self.base._by_head('gradients')

    def _by_head(self, what):
        if self._kept_outputs is None:
            raise InputError(
                'there are no multi-head outputs: make the model with keep_multihead_output=True '
                'and call it first'
            )
        arrays = self._kept_outputs
        if what == 'gradients':
            arrays = [probe.grad for probe in self._kept_probes]
        size = self.config.head_size
        return [
            array.reshape((0, 0, -1, size)).transpose((1, 2, 0, 3))  # (B, heads, L, head_size)
            for array in arrays
        ]

    # -- pruning --------------------------------------------------------------------------------

    def prune_heads(self, heads_to_prune):
        """Remove attention heads for good.

        Make a new Trainer afterwards: the parameters of these layers are new ones.

        Parameters
        ----------
        heads_to_prune : dict of int to list of int
            Layer -> heads, by their first numbers. Heads that are pruned already are passed over.

        Raises
        ------
        InputError
            If a layer or head doesn't exist, a layer would be left without heads, or the
            parameters aren't initialized.
        """
        self.base._prune(heads_to_prune)

    def _prune(self, heads_to_prune):
        config = self.config
        merged = config.add_pruned(heads_to_prune)
        keep = {}  # layer -> those of the heads it has now that stay
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
        config.pruned_heads.clear()  # in place: the configurations of the heads on top share it
        config.pruned_heads.update(merged)
        self._changed()
