"""A block's files: parameters from any known format, folders of weights and configuration."""

import logging
import os

from ..checkpoint.params import write_params
from ..checkpoint.readers import LAYOUTS, read_tensors
from ..checkpoint.sums import kept_sums, weights_of
from ..errors import CheckpointError, InputError
from ..opening import open_block
from ..registry import family_of_class
from ..util.files import make_writable_dir, write_json
from .tensors import BlockTensors

__all__ = ['BlockFiles']

_log = logging.getLogger(__name__)


class BlockFiles(BlockTensors):
    """The part of `ZooBlock` that reads and writes files."""

    #: VocabFile of the pretrained weights that the block, a backbone, began with
    vocab_file = None

    def load_parameters(
        self,
        filename,
        ctx=None,
        allow_missing=False,
        ignore_extra=False,
        cast_dtype=False,
        dtype_source='current',
    ):
        """Load the parameters from one of our own files, or from a format in `mappings`.

        The format is recognised by the file's content. The file of a task's block can be loaded
        into its backbone (with `ignore_extra`) and the other way round (with `allow_missing`).

        Parameters
        ----------
        filename : str
            MXNet's ``.params``, or safetensors.
        ctx : mx.Context or list of mx.Context, optional
            Default: where the parameters are, or the CPU.
        allow_missing, ignore_extra : bool
            Whether the file may lack parameters of the block, or hold others.
        cast_dtype : bool
            Whether to cast the arrays to the block's dtype (`dtype_source` ``'current'``) or the
            block to theirs (``'saved'``), if they differ.

        Raises
        ------
        CheckpointError
            If the file is damaged, of another family, or doesn't fit; the message lists the
            names that are missing, left over, or of the wrong shape.
        """
        tensors, metadata = read_tensors(filename)
        try:
            found, unknown = self.translate(tensors, metadata, self.config)
        except CheckpointError as error:
            raise CheckpointError(f'{filename}: {error}') from error
        self._assign(found, unknown, filename, ctx, allow_missing, ignore_extra, cast_dtype,
                     dtype_source)  # fmt: skip

    def save_parameters(self, filename, deduplicate=True, format='native'):
        """Save the parameters, whole or not at all.

        Parameters
        ----------
        filename : str
        deduplicate : bool
            Accepted for Gluon's sake: a shared parameter is always written once.
        format : str
            ``'native'``: our own names and layout, with checksums. ``'gluonnlp'``: as GluonNLP's
            block of the same kind saves it, for its ``load_parameters``.
        """
        with kept_sums(os.path.dirname(filename)) as written:
            self._save_parameters(filename, format)
            written.append(filename)

    def _save_parameters(self, filename, format):
        tensors = self._own_tensors()
        if format == 'native':
            prefix = f'{self.backbone}.' if self.backbone else ''
            named = {}
            for name, value in tensors.items():
                convert = self._conversion(name)
                name = name[1:] if name.startswith('^') else prefix + name
                named[name] = convert.save(value, self.config)[0] if convert else value
            metadata = {'format': 'native', 'class': type(self).__name__,
                        'family': self.config.model_type, 'backbone': self.backbone}  # fmt: skip
            write_params(filename, named, metadata)
            return
        mappings = self.mappings()
        if format not in mappings:
            raise InputError(
                f'unknown format {format!r}; known: native, {", ".join(sorted(mappings))}'
            )
        named = mappings[format].save(tensors, self.config, with_prefix=self.backbone is not None)
        write_params(filename, named)

    #: name of the block's class in the Hugging Face files; by default its own
    huggingface_name = None

    def save_pretrained(self, directory, tokenizer=None, format='native'):
        """Write configuration and weights, and the tokenizer's files, to `directory`.

        ``SHA256SUMS`` has their checksums. When the folder is opened, weights that differ from
        theirs are refused, and a warning names other files that were edited.

        Parameters
        ----------
        directory : str
            Made where it is missing.
        tokenizer : object, optional
            Anything with ``save_pretrained(directory)``. Default: the tokenizer of the pretrained
            weights that the block was opened with; none for a new block.
        format : str
            ``'native'``: ``config.json`` and ``model.params``. ``'huggingface'``: ``config.json``
            and ``model.safetensors``, for transformers;  ``'pytorch'``: the same with
            ``pytorch_model.bin``; ``'pytorch_pretrained_bert'``: the same by that program's names,
            buffers included. ``'tensorflow'``: ``model.ckpt.*`` and the configuration as
            Google's and OpenAI's programs have it. ``'numpy'``: OpenAI's ``params_*.npy``.

        Raises
        ------
        UnknownNameError
            If the format isn't known, or not for this family.
        CheckpointError
            If the format has no place for a parameter.
        MissingExtraError
            If the format needs TensorFlow, and it isn't installed.
        """
        architecture = self.huggingface_name or type(self).__name__
        if format != 'native':  # first of all, since this may fail
            named = self.tensors_in(format)
            config_name, fields = self.config.to_format(format, architecture)
        directory = make_writable_dir(directory)
        tokenizer = tokenizer or self.own_tokenizer()
        if tokenizer is None:
            _log.info('no vocabulary is written to %r: pass the tokenizer', directory)
        with kept_sums(directory, begin=True) as written:
            if tokenizer is not None:
                paths = tokenizer.save_pretrained(directory)
                written += paths if isinstance(paths, (list, tuple)) else []
            if format == 'native':
                config, weights = 'config.json', os.path.join(directory, 'model.params')
                self.config.to_json_file(os.path.join(directory, config), architecture)
                self.save_parameters(weights)
            else:
                config, layout = config_name, LAYOUTS[format]
                weights = os.path.join(directory, layout.weights)
                write_json(os.path.join(directory, config), fields)
                layout.write(weights, named)
            written += [os.path.join(directory, config), *weights_of(weights)]

    @classmethod
    def from_pretrained(
        cls,
        name_or_dir,
        ctx=None,
        root=None,
        from_tf=False,
        dtype='float32',
        cache_dir=None,
        state_dict=None,
        **kwargs,
    ):
        """Build the block from a directory of weights, or from the zoo by name.

        The format of the weights is recognised by the files: our own, Hugging Face's (safetensors
        or ``.bin``, in one or several files), a TensorFlow checkpoint, or OpenAI's NumPy files.

        Parameters of the task's head that the weights lack are initialized at random, with a
        warning that names them.

        Parameters
        ----------
        name_or_dir : str
            A directory with weights and their configuration (``config.json``,
            ``bert_config.json`` or ``hparams.json``), or a file of weights beside it; a name such
            as ``'bert_12_768_12'`` or ``'bert-base-uncased'``; ``'owner/name'`` of the Hugging Face
            hub, an archive or an address, as of `model_zoo.open_model`.
        ctx : mx.Context, optional
            Default: the CPU.
        root : str, optional
            The cache of weights, by default ``$MXNET_HOME/models``.
        from_tf : bool
            Whether to read a directory's TensorFlow checkpoint, even if it has other weights.
        dtype : str, type or numpy.dtype
            See `cast`; whatever the weights are.
        cache_dir : str, optional
            The same as `root`.
        state_dict : dict of str to array, optional
            Weights to load instead of the file's, see `load_state_dict`.
        **kwargs
            Fields of the configuration to set (``num_labels=3``); others go to the class.

        Returns
        -------
        ZooBlock

        Raises
        ------
        PretrainedNotFoundError
            If the weights are in none of the places where they are looked for.
        CheckpointError
            If they are damaged, of another family, or don't fit.
        InputError
            If the directory lacks weights or a configuration.
        """
        format = 'tensorflow' if from_tf else None
        return open_block(
            name_or_dir, cls, ctx=ctx, root=root or cache_dir, format=format, dtype=dtype,
            state_dict=state_dict, **kwargs,
        )[0]  # fmt: skip

    def own_tokenizer(self):
        """The tokenizer of the pretrained weights that the block was opened with, or None."""
        file, family = self.base.vocab_file, family_of_class(type(self))
        kinds = ('tokenizers', *(family.vocab_kinds if family else ()))
        if file is None or family is None or file.kind not in kinds:
            return None  # such as GluonNLP's vocabularies of byte pairs, which have no merges
        return family.make_tokenizer(file)
