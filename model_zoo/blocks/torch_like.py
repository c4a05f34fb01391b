"""What programs for the originals call on a model: methods of torch's modules, names of inputs."""

import functools
import inspect
from typing import List, NamedTuple

import mxnet as mx

from ..checkpoint.arrays import plain_arrays
from ..errors import InputError
from ..util.devices import check_gpu
from .graphs import BlockGraphs

__all__ = ['INPUT_NAMES', 'LoadedKeys', 'TorchLike']

#: the originals' names of inputs -> ours
INPUT_NAMES = {
    'input_ids': 'words',
    'token_type_ids': 'token_types',
    'attention_mask': 'valid_length',
    'target': 'labels',
}


class LoadedKeys(NamedTuple):
    """What `TorchLike.load_state_dict` returns.

    Attributes
    ----------
    missing_keys : list of str
        Parameters of the block, by its own names, that the dict lacks.
    unexpected_keys : list of str
        Names of the dict that the block has no parameter for.
    """

    missing_keys: List[str]
    unexpected_keys: List[str]


class TorchLike(BlockGraphs):
    """The part of `ZooBlock` that programs for the originals know.

    The inputs have the originals' names besides ours: ``input_ids``, ``token_type_ids``,
    ``attention_mask`` and ``target``. `training` is True at first, and then dropout follows
    ``mx.autograd.record``, as in every Gluon block; after `eval` there is none. Where a block is
    hybridized, its own mode is that of its parts, too.
    """

    #: False after `eval`: no dropout, whatever autograd says
    training = True

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if '__call__' in vars(cls):
            cls.__call__ = _with_their_names(cls.__call__)

    def __call__(self, *inputs):
        if self.training or isinstance(inputs[0], mx.sym.Symbol):
            return super().__call__(*inputs)
        with mx.autograd.predict_mode():
            return super().__call__(*inputs)

    def train(self, mode=True):
        """Let dropout follow autograd's mode, or with ``mode=False`` turn it off.

        Parameters
        ----------
        mode : bool

        Returns
        -------
        TorchLike
            The block itself.
        """

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

        Parameters
        ----------
        *targets : mx.Context, str, type or dtype
            Devices, such as ``mx.gpu(0)``, ``'cuda'``, ``'cuda:1'`` or ``'cpu'``, and precisions
            as in `cast`, such as ``'float16'``. Torch's own devices and types are understood, too.

        Returns
        -------
        TorchLike
            The block itself.
        """
        for target in targets:
            ctx = _context(target)
            if ctx is None:
                self.cast(str(target)[len('torch.') :] if _is_torch(target) else target)
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

        Yields
        ------
        (str, mxnet.gluon.Parameter)
        """
        mapping = self.mappings().get('huggingface')
        own = self._own_parameters()
        for name, parameter in own.items():
            theirs = [] if mapping is None else mapping.names(name, own, self.backbone is not None)
            yield (theirs or [name.lstrip('^')])[0], parameter

    def parameters(self):
        """Yield the parameters, each once."""
        for _, parameter in self.named_parameters():
            yield parameter

    def state_dict(self):
        """The parameters by the original's names, and in its shapes.

        Returns
        -------
        dict of str to NDArray
            Copies, which ``mx.nd.save`` takes, and `load_state_dict` and ``from_pretrained``.
        """
        named = self.tensors_in('pytorch')
        return {name: mx.nd.array(value, dtype=value.dtype) for name, value in named.items()}

    def load_state_dict(self, state_dict, strict=True):
        """Set the parameters to those of a dict.

        Parameters
        ----------
        state_dict : dict of str to array
            By the names of any format that `load_parameters` reads. The arrays are NDArrays, NumPy
            arrays, or torch's tensors.
        strict : bool
            Whether the names must be those of the block's parameters, all of them and no others.

        Returns
        -------
        LoadedKeys

        Raises
        ------
        CheckpointError
            If they aren't, are none of this family's, or the shapes differ.
        """
        found, unknown = self.translate(plain_arrays(state_dict), {}, self.config)
        missing, unknown = self._assign(
            found, unknown, 'the state_dict', allow_missing=not strict, ignore_extra=not strict,
            cast_dtype=True,
        )  # fmt: skip
        return LoadedKeys(
            *([name.lstrip('^') for name in names] for names in (missing, unknown))
        )


def _with_their_names(call):
    """`call` that takes keyword arguments by the originals' names, and by ours."""
    own = inspect.signature(call).parameters
    pairs = [pair for each in INPUT_NAMES.items() for pair in (each, each[::-1])]
    names = {other: name for other, name in pairs if name in own and other not in own}

    @functools.wraps(call)
    def called(self, *args, **kwargs):
        for other in names.keys() & kwargs.keys():
            name = names[other]
            if name in kwargs:
                raise InputError(f'{other} and {name} are the same input: give one of them')
            kwargs[name] = kwargs.pop(other)
        return call(self, *args, **kwargs)

    return called


def _is_torch(target):
    return str(target).startswith('torch.')


def _context(target):
    """The device that is meant, or None if `target` is none."""
    if isinstance(target, mx.Context):
        return target
    if isinstance(target, int) and not isinstance(target, bool):
        target = f'cuda:{target}'
    name, _, number = str(target).partition(':')  # as torch.device writes itself
    if name not in ('cpu', 'cuda', 'gpu'):
        return None
    if number and not number.isdigit():
        raise InputError(f'{target!r} is no device')
    if name == 'cpu':
        return mx.cpu()
    check_gpu(int(number or 0), f'the device {str(target)!r}')
    return mx.gpu(int(number or 0))
