"""A block's parameters as arrays by name: in our names, and in those of other programs."""

import logging
import re

import mxnet as mx
import numpy as np

from ..checkpoint.readers import LAYOUTS
from ..errors import CheckpointError, UnknownNameError

__all__ = ['BlockTensors']

_log = logging.getLogger(__name__)


def _set(parameter, value, ctx):
    """Give `parameter` a value, whether it was initialized or not."""
    try:
        parameter.list_ctx()
    except RuntimeError:
        parameter.initialize(mx.init.Zero(), ctx=ctx or mx.cpu())
    else:
        if ctx is not None:
            parameter.reset_ctx(ctx)
    parameter.set_data(mx.nd.array(value, dtype=parameter.dtype))


class BlockTensors:
    """The part of `ZooBlock` that gives arrays to its parameters, and takes them from there."""

    @classmethod
    def name_maps(cls, config):
        """Name of a format -> `Mapping`, for the formats of other programs."""
        return {}

    def mappings(self):
        """`name_maps` for this block."""
        return self.name_maps(self.config)

    def _own_parameters(self):
        """Canonical name -> Parameter, each parameter once.

        The names are those of the mappings' rules: without the backbone's prefix, and with ``^``
        before the names of a task's head.
        """
        names = {}  # a shared parameter is known by its name in the innermost block
        for name, parameter in self._collect_params_with_prefix().items():
            other = names.get(parameter)
            if other is None or other.count('.') < name.count('.'):
                names[parameter] = name
        result = {}
        prefix = f'{self.backbone}.'
        for parameter, name in names.items():
            if self.backbone and name.startswith(prefix):
                name = name[len(prefix) :]
            elif self.backbone:
                name = '^' + name
            result[name] = parameter
        return result

    @classmethod
    def translate(cls, tensors, metadata, config):
        """A file's tensors -> (tensors by our canonical names, names that mean nothing here).

        Parameters
        ----------
        tensors, metadata : dict
            Of `model_zoo.checkpoint.read_tensors`.
        config : Config

        Raises
        ------
        CheckpointError
            If the file is of another family.
        """
        if metadata.get('format') == 'native':
            return cls._translate_native(tensors, metadata, config)
        maps = cls.name_maps(config).values()
        best = max(maps, key=lambda each: each.matches(tensors), default=None)
        if best is None or not best.matches(tensors):
            some = ', '.join(list(tensors)[:4])
            raise CheckpointError(
                f'none of its names belongs to a {cls.__name__} ({some}, ...); is it '
                'a checkpoint of another family?'
            )
        return best.load(tensors, config)

    @classmethod
    def count_known(cls, tensors, metadata):
        """How many of a file's names the tables of this family's names have."""
        if metadata.get('format') == 'native':
            return len(tensors) if metadata.get('family') == cls.config_class.model_type else 0
        maps = cls.name_maps(cls.config_class()).values()
        return max((each.matches(tensors) for each in maps), default=0)

    @classmethod
    def _translate_native(cls, tensors, metadata, config):
        own = cls.config_class.model_type if cls.config_class else None
        family = metadata.get('family', own)
        if family != own:
            raise CheckpointError(f'a checkpoint of another family, {family}: {own} is wanted')
        backbone = metadata.get('backbone')
        result = {}
        for name, value in tensors.items():
            if backbone and name.startswith(backbone + '.'):
                name = name[len(backbone) + 1 :]
            elif backbone:
                name = '^' + name
            convert = cls._conversion(name)
            result[name] = convert.load([value], config) if convert else value
        return result, []

    @classmethod
    def _conversion(cls, name):
        """The conversion of a native file's tensor to the parameter `name`; None for no change."""
        conversions = (
            convert for expression, convert in cls.stored_as if re.match(expression, name)
        )
        return next(conversions, None)

    def _assign(self, found, unknown, source, ctx=None, allow_missing=False, ignore_extra=False,
                cast_dtype=False, dtype_source='current'):  # fmt: skip
        """Set the parameters; returns the names missing, and left over."""
        own = self._own_parameters()
        missing, unknown = self._differences(found, unknown)
        problems = []
        if missing and not allow_missing:
            problems.append('missing: ' + self._list_names(missing))
        if unknown and not ignore_extra:
            problems.append('not in the model: ' + self._list_names(unknown))
        wrong = [
            f'{name.lstrip("^")} has shape {found[name].shape}, the model wants {own[name].shape}'
            for name in own
            if name in found and found[name].shape != own[name].shape
        ]
        if wrong:
            problems.append('wrong shape: ' + self._list_names(wrong))
            if any('word_embed' in line for line in wrong):
                problems.append('the vocabulary does not fit these weights')
        other = [
            f'{name.lstrip("^")} is {found[name].dtype}, the model has {np.dtype(own[name].dtype)}'
            for name in own
            if name in found and found[name].dtype != np.dtype(own[name].dtype)
        ]
        if other and not cast_dtype:
            problems.append('pass cast_dtype=True: ' + self._list_names(other))
        broken = [name for name in own if name in found and not np.isfinite(found[name]).all()]
        if broken:
            problems.append('NaN or infinite values: ' + self._list_names(broken))
        if problems:
            raise CheckpointError(
                f'{source} does not fit this {type(self).__name__}: ' + '; '.join(problems)
            )
        if other and dtype_source == 'saved':
            self.cast(np.result_type(*(found[name].dtype for name in own if name in found)))
        for name, parameter in own.items():
            if name in found:
                _set(parameter, found[name], ctx)
        return missing, unknown

    def _differences(self, found, unknown):
        own = self._own_parameters()
        missing = [name for name in own if name not in found]
        return missing, [*unknown, *(name for name in found if name not in own)]

    def compare(self, weights):
        """The names of parameters that `weights` lack, and of tensors that the block lacks.

        Parameters
        ----------
        weights : model_zoo.opening.Weights

        Returns
        -------
        (list of str, list of str)
        """
        return self._differences(weights.tensors, weights.unknown)

    @staticmethod
    def _list_names(names):
        names = [name.lstrip('^') for name in names]
        more = f', and {len(names) - 20} more' if len(names) > 20 else ''
        return ', '.join(names[:20]) + more

    def _own_tensors(self):
        tensors = {}
        for name, parameter in self._own_parameters().items():
            value = parameter.data(parameter.list_ctx()[0])
            tensors[name] = value.asnumpy()
        return tensors

    def tensors_in(self, format):
        """The parameters by another program's names, and in its shapes.

        Parameters
        ----------
        format : str
            A key of `model_zoo.checkpoint.readers.LAYOUTS`.

        Returns
        -------
        dict of str to numpy.ndarray

        Raises
        ------
        UnknownNameError, CheckpointError
            As `save_pretrained`.
        """
        mappings = self.mappings()
        known = [name for name, layout in LAYOUTS.items() if layout.mapping in mappings]
        if format not in known:
            raise UnknownNameError.of(f'format of {type(self).__name__}', format, known)
        mapping = mappings[LAYOUTS[format].mapping]
        with_prefix = self.backbone is not None
        return mapping.save(self._own_tensors(), self.config, with_prefix=with_prefix)

    def load_weights(self, weights, ctx=None, may_lack=()):
        """Set the parameters to weights that `model_zoo.opening.read_weights` has read.

        They may hold more than this block, and are converted to its precision.

        Parameters
        ----------
        weights : model_zoo.opening.Weights
        ctx : mx.Context or list of mx.Context, optional
        may_lack : tuple of str
            Prefixes of parameters that may be missing; they are initialized at random, with a
            warning. ``^`` stands for a task's head.

        Raises
        ------
        CheckpointError
            If they lack other parameters, or don't fit.
        """
        missing, unused = self._assign(
            weights.tensors, weights.unknown, weights.path, ctx,
            allow_missing=True, ignore_extra=True, cast_dtype=True,
        )  # fmt: skip
        fatal = [name for name in missing if not name.startswith(tuple(may_lack))]
        if fatal:
            hint = ''
            if len(fatal) > len(self._own_parameters()) // 2:
                hint = '; is it a checkpoint of another family?'
            raise CheckpointError(
                f'{weights.path} lacks parameters: {self._list_names(fatal)}{hint}'
            )
        unused = [name for name in unused if not name.startswith(('^', *self.optional_parts))]
        if unused:
            _log.warning(
                '%s holds more than is used: %s', weights.path, self._list_names(unused)
            )
        if missing:
            _log.warning(
                '%s has no %s: initialized at random, to be trained',
                weights.path,
                self._list_names(missing),
            )
            own = self._own_parameters()
            for name in missing:
                own[name].initialize(ctx=ctx, default_init=mx.init.Normal(0.02))
