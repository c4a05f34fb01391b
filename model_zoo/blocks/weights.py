"""A block's parameters as arrays by name, and as files."""

from __future__ import annotations

import dataclasses
import logging
import os
from typing import Any, NamedTuple, TypeVar

import mxnet as mx
import numpy as np

from ..checkpoint.mapping import PADDED
from ..checkpoint.readers import LAYOUTS, kept_sums, read_tensors, weights_of
from ..checkpoint.tensor_files import plain_arrays, write_params
from ..errors import CheckpointError, UnknownNameError, reporting
from ..families import load_above
from ..mxnet_private import contexts_of, own_names
from ..pretrained.files import GENERATION_CONFIG
from ..registry import family_of_class
from ..util.files import make_writable_dir, write_json

__all__ = ['BlockFiles', 'Weights']

BlockType = TypeVar('BlockType')

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class _Part:
    """A GluonNLP parameter that is a part of our fused parameter, for Gluon's files."""

    whole: mx.gluon.Parameter
    number: int
    convert: Any = dataclasses.field(compare=False)
    config: Any = dataclasses.field(compare=False)

    def _reduce(self):
        whole = self.whole._reduce()
        return mx.nd.array(self._parts(whole.asnumpy())[self.number], dtype=whole.dtype)

    def _parts(self, array):
        return list(self.convert.save(array, self.config))

    def _load_init(self, data, ctx, cast_dtype=False, dtype_source='current'):
        try:
            whole = self.whole._reduce().asnumpy()
        except RuntimeError:  # it isn't initialized
            whole = np.zeros(self.whole.shape, data.dtype)
        parts = self._parts(whole)
        parts[self.number] = data.asnumpy()
        whole = mx.nd.array(self.convert.load(parts, self.config), dtype=data.dtype)
        self.whole._load_init(whole, ctx, cast_dtype, dtype_source)


class Weights(NamedTuple):
    """Weights by our canonical names.

    Attributes
    ----------
    unknown : list of str
        The file's names that mean nothing in the family.
    class_name : str or None
        Class of the block that the file says it was saved from.
    """

    path: str
    tensors: dict
    unknown: list
    class_name: str = None


def _canonical(name, backbone):
    """Return our canonical name of a parameter, given its name in a task's block."""
    prefix = f'{backbone}.' if backbone else ''
    return name[len(prefix) :] if name.startswith(prefix) else f'^{name}'


class BlockFiles:
    """The part of `ZooBlock` that reads and writes arrays by names, and files of them."""

    #: path of the ONNX file that an engine runs instead of the block without parameters
    onnx_file = None
    #: VocabFile of the pretrained weights that the block, a backbone, began with
    vocab_file = None
    #: content of the pretrained weights' generation_config.json
    generation_config = {}
    #: name of the block's class in the Hugging Face files; by default its own
    huggingface_name = None

    @classmethod
    def name_maps(cls, config):
        """Name of a format -> `Mapping`, for the formats of other programs."""
        return {}

    def mappings(self):
        return self.name_maps(self.config)

    def _collect_params_with_prefix(self, prefix=''):
        """Return the names in Gluon's files: within another block GluonNLP's names, if any."""
        mapping = self.mappings().get('gluonnlp')
        if not prefix or mapping is None:
            return own_names(self, prefix and f'{prefix}.')
        result, parameters = {}, self.parameters_by_name()
        for ours, convert, names in mapping.parts(parameters, self.backbone is not None):
            for name, number in names.items():
                result[f'{prefix}.{name}'] = _Part(parameters[ours], number, convert, self.config)
            if not names:
                result[f'{prefix}.{ours.lstrip("^")}'] = parameters[ours]
        return result

    def parameters_by_name(self):
        """Return the parameters by their canonical names, each once.

        These have no prefix of a backbone; the names of a task's head begin with ``^``.
        """
        names = {}  # a shared parameter is known by its name in the innermost block
        for name, parameter in own_names(self).items():
            other = names.get(parameter)
            if other is None or other.count('.') < name.count('.'):
                names[parameter] = name
        return {_canonical(name, self.backbone): each for each, name in names.items()}

    @classmethod
    def read_weights(cls, source, config):
        """Read weights by our canonical names.

        Parameters
        ----------
        source : str or dict of str to array
            A file, or arrays by the names of any format.

        Returns
        -------
        Weights

        Raises
        ------
        CheckpointError
            If the file is damaged, or belongs to another family.
        """
        if isinstance(source, dict):
            tensors, metadata, path = plain_arrays(source), {}, 'the state_dict'
        else:
            (tensors, metadata), path = read_tensors(source), f'{source}'
        if metadata.get('format') != 'native':
            maps = cls.name_maps(config).values()
            best = max(maps, key=lambda mapping: mapping.matches(tensors), default=None)
            if best is None or not best.matches(tensors):
                some = ', '.join(list(tensors)[:4])
                raise CheckpointError(f'{path}: no name belongs to a {cls.__name__}: {some}, ...')
            with reporting(path, error_class=CheckpointError, errors=CheckpointError):
                return Weights(path, *best.load(tensors, config))
        wanted = cls.config_class.model_type if cls.config_class else None
        family = metadata.get('family', wanted)
        if family != wanted:
            raise CheckpointError(f'{path} is for the family {family}, not for {wanted}')
        backbone, result = metadata.get('backbone'), {}
        for name, value in tensors.items():
            name = _canonical(name, backbone)
            convert = PADDED.get(name.rpartition('.ffn.')[2])
            result[name] = convert.load([value], config) if convert else value
        return Weights(path, result, [], metadata.get('class'))

    @classmethod
    def count_known(cls, tensors, metadata):
        """Count the names of a file that this family's mappings know."""
        if metadata.get('format') == 'native':
            return len(tensors) if metadata.get('family') == cls.config_class.model_type else 0
        maps = cls.name_maps(cls.config_class()).values()
        return max((mapping.matches(tensors) for mapping in maps), default=0)

    def assign(self, weights, ctx, allow_missing, ignore_extra, cast_dtype, dtype_source):
        """Set the parameters to `Weights`; see `load_parameters`.

        Returns the names that are missing, and the names that are left over.
        """
        parameters, tensors = self.parameters_by_name(), weights.tensors
        missing = [name for name in parameters if name not in tensors]
        unknown = [*weights.unknown, *(name for name in tensors if name not in parameters)]
        used = {name: tensors[name] for name in parameters if name in tensors}
        wrong, other_types, not_finite = [], [], []
        for name, array in used.items():
            shape, dtype = parameters[name].shape, np.dtype(parameters[name].dtype)
            if array.shape != shape:
                wrong.append(f'{name} has shape {array.shape}, the model has {shape}')
            if array.dtype != dtype:
                other_types.append(f'{name} is {array.dtype}, the model has {dtype}')
            if not np.isfinite(array).all():
                not_finite.append(name)
        found = {
            'missing': [] if allow_missing else missing,
            'not in the model': [] if ignore_extra else unknown,
            'wrong shape': wrong,
            'pass cast_dtype=True': [] if cast_dtype else other_types,
            'NaN or infinite values': not_finite,
        }
        problems = [f'{what}: {self._list_names(names)}' for what, names in found.items() if names]
        if any('word_embed' in line for line in wrong):
            problems.append('the vocabulary does not fit these weights')
        if wrong and all(line.startswith('^classifier.') for line in wrong):
            problems.append('it was trained for another number of labels: use its base model')
        if problems:
            name, problem = type(self).__name__, '; '.join(problems)
            raise CheckpointError(f'{weights.path} does not fit this {name}: {problem}')
        if other_types and dtype_source == 'saved':
            self.cast(np.result_type(*(array.dtype for array in used.values())))
        for name, array in used.items():
            parameter = parameters[name]
            if not contexts_of(parameter):
                parameter.initialize(mx.init.Zero(), ctx=ctx or mx.cpu())
            elif ctx is not None:
                parameter.reset_ctx(ctx)
            parameter.set_data(mx.nd.array(array, dtype=parameter.dtype))
        return missing, unknown

    @staticmethod
    def _list_names(names):
        names = [name.lstrip('^') for name in names]
        more = f', and {len(names) - 20} more' if len(names) > 20 else ''
        return ', '.join(names[:20]) + more

    def own_tensors(self):
        """Return the parameters as NumPy arrays, by their canonical names."""
        parameters = self.parameters_by_name().items()
        return {name: each.data(each.list_ctx()[0]).asnumpy() for name, each in parameters}

    def tensors_in(self, format):
        """Return the parameters by another program's names, and in its shapes."""
        mappings = self.mappings()
        known = [name for name, layout in LAYOUTS.items() if layout.mapping in mappings]
        UnknownNameError.check(f'format of {type(self).__name__}', format, known)
        mapping = mappings[LAYOUTS[format].mapping]
        return mapping.save(self.own_tensors(), self.config, with_prefix=self.backbone is not None)

    def load_weights(self, weights, ctx=None, may_lack=(), exact=False, trains=False):
        """Set the parameters to the `Weights` that `read_weights` has read.

        They may hold more than the block's parameters; if `exact`, a warning names these even if
        they are of a head or an optional part. They may lack what `may_lack` begins: a warning
        names that, too, unless the block is opened to be trained (`trains`).
        """
        # they are converted to the block's precision
        missing, unused = self.assign(weights, ctx, True, True, True, 'current')
        fatal = [name for name in missing if not name.startswith(tuple(may_lack))]
        if fatal:
            raise CheckpointError(f'{weights.path} lacks parameters: {self._list_names(fatal)}')
        of_others = () if exact else ('^', *self.optional_parts)
        unused = [name for name in unused if not name.startswith(of_others)]
        if unused:
            _log.warning('%s: left out: %s', weights.path, self._list_names(unused))
        if missing:
            level = logging.INFO if trains else logging.WARNING
            state = 'new, and the training sets them' if trains else 'random until trained'
            _log.log(level, '%s has no %s: %s', weights.path, self._list_names(missing), state)
            parameters = self.parameters_by_name()
            for name in missing:
                parameters[name].initialize(ctx=ctx, default_init=mx.init.Normal(0.02))

    def load_parameters(
        self,
        filename,
        ctx=None,
        allow_missing=False,
        ignore_extra=False,
        cast_dtype=False,
        dtype_source='current',
    ):
        """Load the parameters from one of this project's files, or from a format in `mappings`.

        The format is found from the content. The file of a task's block can be loaded into its
        backbone (with `ignore_extra`) and vice versa (with `allow_missing`).

        Parameters
        ----------
        filename : str
            MXNet's ``.params``, or safetensors.
        ctx : mx.Context or list of mx.Context, optional
            Default: where the parameters are, or the CPU.
        allow_missing, ignore_extra : bool
            Whether the file may lack parameters of the block, or hold others.
        cast_dtype : bool
            If the types differ: whether to cast the arrays to the block's dtype (`dtype_source`
            ``'current'``) or the block to the arrays' (``'saved'``).

        Raises
        ------
        CheckpointError
            If the file is damaged, belongs to another family, or doesn't fit; the message lists the
            names that are missing, left over, or of the wrong shape.
        """
        weights = self.read_weights(filename, self.config)
        options = allow_missing, ignore_extra, cast_dtype, dtype_source
        self.assign(weights, ctx, *options)

    def save_parameters(self, filename, deduplicate=True, format='native'):
        """Save the parameters, completely or not at all.

        Parameters
        ----------
        filename : str
        format : str
            ``'native'``: this project's names and layout, with checksums. ``'gluonnlp'``: for
            ``load_parameters`` of GluonNLP's block of the same kind.
        """
        tensors, mappings = self.own_tensors(), self.mappings()
        UnknownNameError.check('format', format, ['native', *mappings])
        if format == 'native':
            prefix = f'{self.backbone}.' if self.backbone else ''
            named = {}
            for name, value in tensors.items():
                convert = PADDED.get(name.rpartition('.ffn.')[2])  # files lack the padding
                name = name[1:] if name.startswith('^') else prefix + name
                named[name] = convert.save(value, self.config)[0] if convert else value
            kind, family, part = type(self).__name__, self.config.model_type, self.backbone
            metadata = {'format': format, 'class': kind, 'family': family, 'backbone': part}
        else:
            with_prefix, metadata = self.backbone is not None, None
            named = mappings[format].save(tensors, self.config, with_prefix=with_prefix)
        with kept_sums(os.path.dirname(filename)) as written:
            write_params(filename, named, metadata)
            written.append(filename)

    def save_pretrained(
        self, directory: str | os.PathLike, tokenizer: Any = None, format: str = 'native'
    ) -> None:
        """Write configuration and weights, and the tokenizer's files, to `directory`.

        ``SHA256SUMS`` has their checksums. When the folder is opened, damaged weights are refused.

        Parameters
        ----------
        tokenizer : object, optional
            Anything with ``save_pretrained(directory)``. Default: the tokenizer of the pretrained
            weights that the block was opened with; none for a new block.
        format : str
            ``'native'``: ``config.json`` and ``model.params``. ``'huggingface'``: ``config.json``
            and ``model.safetensors``, for transformers;  ``'pytorch'``: the same with
            ``pytorch_model.bin``; ``'pytorch_pretrained_bert'``: the same with that library's names
            and buffers. ``'tensorflow'``: ``model.ckpt.*`` and the configuration in Google's or
            OpenAI's format.

        Raises
        ------
        UnknownNameError
            If the format is unknown, or unknown for this family.
        CheckpointError
            If the format can't hold a parameter.
        MissingExtraError
            If the format needs TensorFlow, and it isn't installed.
        """
        # first of all, since this may fail
        named = None if format == 'native' else self.tensors_in(format)
        architecture = self.huggingface_name or type(self).__name__
        config, fields = self.config.to_format(format, architecture)
        directory = make_writable_dir(directory)
        tokenizer = tokenizer or self.own_tokenizer()
        if tokenizer is None:
            _log.info('no vocabulary is written to %r: pass the tokenizer', directory)
        with kept_sums(directory, begin=True) as written:
            if tokenizer is not None:
                paths = tokenizer.save_pretrained(directory)
                written += paths if isinstance(paths, (list, tuple)) else []
            written.append(os.path.join(directory, config))
            write_json(written[-1], fields)
            if named is None:
                weights = os.path.join(directory, 'model.params')
                self.save_parameters(weights)
            else:
                weights = os.path.join(directory, LAYOUTS[format].weights)
                LAYOUTS[format].write(weights, named)
            if self.base.generation_config:
                written.append(os.path.join(directory, GENERATION_CONFIG))
                write_json(written[-1], self.base.generation_config)
            written += weights_of(weights)

    @classmethod
    def from_pretrained(
        cls: type[BlockType],
        name_or_dir: str | os.PathLike,
        ctx: Any = None,
        root: str | os.PathLike | None = None,
        from_tf: bool = False,
        dtype: Any = 'float32',
        cache_dir: str | os.PathLike | None = None,
        state_dict: dict[str, Any] | None = None,
        *,
        num_labels: int | None = None,
        id2label: dict[int, str] | None = None,
        **kwargs: Any,
    ) -> BlockType:
        """Build the block from a directory of weights, or from the zoo by name.

        Missing parameters of the task's head are initialized at random, with a warning that names
        them. The errors are the same as in `model_zoo.open_model`.

        Parameters
        ----------
        name_or_dir : str
            As in `model_zoo.open_model`: a folder, a file of weights or a name.
        from_tf : bool
            Whether to read a folder's TensorFlow checkpoint, even if it has other weights.
        dtype : str, type or numpy.dtype
            Precision of the block, whatever the weights have; see `cast`.
        cache_dir : str, optional
            The cache of weights, by default ``$MXNET_HOME/models``; the same as `root`.
        state_dict : dict of str to array, optional
            Weights to load instead of the file's, by the names of any format.
        num_labels, id2label
            For a classifier: the number of its classes, or their names, ``{0: 'bad', 1: 'good'}``.
        **kwargs
            Further fields of the configuration to set; others go to the class.
        """
        format = 'tensorflow' if from_tf else None
        labels = {'num_labels': num_labels, 'id2label': id2label}
        kwargs.update((name, value) for name, value in labels.items() if value is not None)
        kwargs.update(ctx=ctx, root=root or cache_dir, format=format, dtype=dtype)
        weights = True if state_dict is None else state_dict
        open_model = load_above('model_zoo.opening').open_model
        return open_model(name_or_dir, cls, weights=weights, tokenizer=False, **kwargs).block

    def own_tokenizer(self):
        """Return the tokenizer of the weights that the block was opened with, or None."""
        file, family = self.base.vocab_file, family_of_class(type(self))
        if file is None or family is None:
            return None
        if file.kind == 'gluonnlp' and not any(file.kind in cls.kinds for cls in family.tokenizers):
            return None  # GluonNLP's vocabularies of byte pairs have no merges
        return family.make_tokenizer(file)
