"""The methods of torch's modules, and the originals' orders of inputs and outputs.

A class derives from `TorchLike` and a block of this project. Its ``__call__`` has the originals'
inputs, in their order, and outputs. When a head calls its backbone, both are this project's.
"""

import contextlib
from typing import NamedTuple

import mxnet as mx

from model_zoo.checkpoint.mapping import Mapping
from model_zoo.layers.graphs import Switch
from model_zoo.mxnet_private import contexts_of
from model_zoo.util.arrays import check_gpu

from .file_utils import cache_root

__all__ = ['LoadedKeys', 'TorchLike', 'find_context']

_within, _opening = Switch(), Switch()  # another block's call; the weights of a file


class LoadedKeys(NamedTuple):
    """Names that a dict lacks (the block's own), and that the block doesn't know (the dict's)."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class TorchLike:
    """A block with the methods of torch's modules that the originals' programs call.

    A new block is initialized at once. `training` is True at first, and then dropout follows
    ``mx.autograd.record``, as in every Gluon block; after `eval` nothing is dropped. If a block is
    hybridized, its mode also applies to its parts.
    """

    #: names of `inputs`
    arguments = ('output_attentions', 'keep_multihead_output')
    #: the inputs of a call in the original's order, by its names or this project's
    order = ()
    #: False after `eval`: no dropout, whatever autograd says
    training = True
    _is_new = False  # initialized, and not used yet

    def __init__(self, config, *inputs, **options):
        if len(inputs) > len(self.arguments):
            raise TypeError(f'{type(self).__name__} takes config, {", ".join(self.arguments)}')
        super().__init__(config, **dict(zip(self.arguments, inputs)), **options)
        if not _opening.is_on:
            self._initialize_rest()
            self._is_new = not isinstance(config, mx.gluon.Block)

    def _initialize_rest(self):
        for parameter in self.collect_params().values():
            if not contexts_of(parameter):
                parameter.initialize(default_init=mx.init.Normal(0.02))

    def __call__(self, *inputs, **named):
        if inputs and isinstance(inputs[0], mx.sym.Symbol):
            return super().__call__(*inputs, **named)
        with contextlib.nullcontext() if self.training else mx.autograd.predict_mode():
            if _within.is_on:
                return super().__call__(*inputs, **named)
            if len(inputs) > len(self.order):
                raise TypeError(f'{type(self).__name__} takes {", ".join(self.order)}')
            self._is_new = False
            with _within.turned(True):
                return self.call(**dict(zip(self.order, inputs)), **named)

    def call(self, **inputs):
        """Return the outputs as the original does."""
        return self.with_attentions_first(super().__call__(**inputs), **inputs)

    def with_attentions_first(self, outputs, **labels):
        """Return the block's outputs in the originals' order; with labels, only the losses."""
        if not getattr(self.base, 'output_attentions', False):
            return outputs
        names = [] if self.backbone else self.base.output_names
        position = names.index('attentions') if names else len(outputs) - 1
        rest = [output for number, output in enumerate(outputs) if number != position]
        if any(labels.get(name) is not None for name in labels if 'label' in name):
            return rest[0] if len(rest) == 1 else rest
        if self.backbone and len(rest) == 1 and isinstance(rest[0], (list, tuple)):
            rest = list(rest[0])  # of a head with several scores
        return [outputs[position], *rest]

    @classmethod
    def from_pretrained(cls, name_or_dir, *inputs, cache_dir=None, **kwargs):
        """See `ZooBlock.from_pretrained`; `inputs` are the class's, as in the originals."""
        kwargs.update(zip(cls.arguments, inputs))
        root = kwargs.pop('root', None) or cache_root(cache_dir)
        with _opening.turned(True):
            block = super().from_pretrained(name_or_dir, root=root, **kwargs)
        block._initialize_rest()
        return block

    def initialize(self, init=None, ctx=None, verbose=False, force_reinit=False):
        """See ``Block.initialize``; a block that wasn't used yet gets new values."""
        init = mx.init.Uniform() if init is None else init
        super().initialize(init, ctx, verbose, force_reinit or self._is_new)

    def load_parameters(self, *args, **kwargs):
        """See `ZooBlock.load_parameters`."""
        super().load_parameters(*args, **kwargs)
        self._is_new = False

    def get_multihead_outputs(self):
        """Return the heads' last outputs; after ``backward()`` their `grad` is the loss's."""
        outputs = [output.detach() for output in super().get_multihead_outputs()]
        for output, gradient in zip(outputs, self.get_multihead_gradients()):
            output.attach_grad()
            output.grad[:] = gradient
        return outputs

    def prune_heads(self, heads_to_prune):
        """See `AttentionBlock.prune_heads`; layers may be counted from the end, from -1 on."""
        count = self.config.num_layers
        heads = {layer + count * (layer < 0): heads_to_prune[layer] for layer in heads_to_prune}
        with mx.autograd.pause():
            super().prune_heads(heads)

    # -- torch's modules ------------------------------------------------------------------------

    def train(self, mode=True):
        """Make dropout follow autograd's mode, or turn it off with ``mode=False``."""

        def set_mode(part):
            if isinstance(part, TorchLike):
                part.training = bool(mode)

        self.apply(set_mode)
        return self

    def eval(self):
        """Turn dropout off, also while autograd records; returns the block itself."""
        return self.train(False)

    def to(self, *targets):
        """Move the block to a device, or cast it.

        Devices are, for example, ``mx.gpu(0)``, ``'cuda'``, ``'cuda:1'`` or ``'cpu'``. Precisions
        are as in `cast`, such as ``'float16'``. Torch's own devices and types are understood, too.
        """
        for target in targets:
            ctx = find_context(target)
            if ctx is None:
                is_torch = str(target).startswith('torch.')
                self.cast(str(target).removeprefix('torch.') if is_torch else target)
            else:
                self.collect_params().reset_ctx(ctx)
        return self

    def cuda(self, device=0):
        """Move the block to a GPU; returns the block itself."""
        return self.to(f'cuda:{device}' if isinstance(device, int) else device)

    def cpu(self):
        """Move the block to the CPU; returns the block itself."""
        return self.to('cpu')

    def half(self):
        """Cast the block to float16; returns the block itself."""
        return self.to('float16')

    def float(self):
        """Cast the block to float32; returns the block itself."""
        return self.to('float32')

    def named_parameters(self):
        """Yield the parameters with the names that they have in the original.

        A parameter that the original has as several, such as the weight of queries, keys and
        values, has the name of the first one.
        """
        parameters = self.parameters_by_name()
        mapping = self.mappings().get('huggingface', Mapping([], ''))
        for ours, _, theirs in mapping.parts(parameters, self.backbone is not None):
            name = next(iter(theirs), ours.lstrip('^'))
            yield name.replace('_head.summary.', '_head.linear.'), parameters[ours]

    def parameters(self):
        """Yield the parameters, each once."""
        for _, parameter in self.named_parameters():
            yield parameter

    def state_dict(self):
        """Return copies of the parameters as NDArrays, with the original's names and shapes."""
        named = self.tensors_in('pytorch_pretrained_bert')
        return {name: mx.nd.array(value, dtype=value.dtype) for name, value in named.items()}

    def load_state_dict(self, state_dict, strict=True):
        """Set the parameters to the arrays of a dict.

        The names may be of any format that `load_parameters` reads, and the arrays NDArrays, NumPy
        arrays or torch's tensors. With `strict`, the names must match the block's parameters
        exactly. CheckpointError if they don't, or if the shapes differ.
        """
        weights = self.read_weights(dict(state_dict), self.config)
        names = self.assign(weights, None, not strict, not strict, True, 'current')
        self._is_new = False
        return LoadedKeys(*([name.lstrip('^') for name in part] for part in names))


def find_context(target):
    """Return the device that `target` names, or None if it names none."""
    if isinstance(target, mx.Context):
        return target
    if isinstance(target, int) and not isinstance(target, bool):
        target = f'cuda:{target}'
    name, _, number = str(target).partition(':')  # as torch.device writes itself
    if name not in ('cpu', 'cuda', 'gpu'):
        return None
    if name == 'cpu':
        return mx.cpu()
    check_gpu(int(number or 0), 'device')
    return mx.gpu(int(number or 0))
