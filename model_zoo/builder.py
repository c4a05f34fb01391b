"""What the families' zoo functions share: hyper-parameters, weights, vocabulary, loading."""

import dataclasses
import logging
import os
import warnings
from typing import Callable, Dict, Tuple

import mxnet as mx

from .errors import InputError
from .pretrained import find_files, get_entry
from .tokenization.vocab_file import VocabFile, find_vocab_file

__all__ = ['Builder']

_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Builder:
    """Builds the zoo's models of one family, as ``get_model`` promises.

    Parameters
    ----------
    block_class : type
        A `ZooBlock`, whose `architectures` has the family's models.
    hparams : dict of str to tuple of str
        GluonNLP's names of hyper-parameters -> fields of the configuration.
    make : callable, optional
        ``make(config, found, lacks, **options) -> (block, may_lack)``. `found` is the
        `model_zoo.pretrained.Files`, or None for a new model; `lacks` the parts that the
        catalogue says they lack, or None where the weights come from a path; `may_lack` begins of
        names of parameters that may be initialized at random if the weights lack them. By
        default ``block_class(config, **options)``, and nothing may be lacking.
    options : tuple of str
        Keyword arguments for `make` that aren't hyper-parameters.
    always_allowed : tuple of str
        Hyper-parameters that may be overridden without ``hparam_allow_override=True``.
    adapt : callable, optional
        ``adapt(fields) -> fields``: what the vocabulary's size changes in a new model.
    """

    block_class: type
    hparams: Dict[str, Tuple[str, ...]]
    make: Callable = None
    options: Tuple[str, ...] = ()
    always_allowed: Tuple[str, ...] = ('dropout',)
    adapt: Callable = None

    def __call__(
        self,
        model,
        dataset_name=None,
        vocab=None,
        pretrained=True,
        ctx=None,
        root=None,
        hparam_allow_override=False,
        **kwargs,
    ):
        """Build `model`; the arguments are those of `model_zoo.get_model`.

        Returns
        -------
        (block, vocab)

        Raises
        ------
        UnknownNameError, PretrainedNotFoundError, CheckpointError, InputError
        """
        if isinstance(pretrained, os.PathLike):
            pretrained = os.fspath(pretrained)
        path = pretrained if isinstance(pretrained, str) else None
        options = {name: kwargs.pop(name) for name in self.options if name in kwargs}
        fields = self._overrides(model, kwargs, hparam_allow_override)
        found, file, vocab = _find(model, dataset_name, vocab, pretrained, root)
        config = self._configure(model, found, vocab, fields)
        if self.make is None:
            block, may_lack = self.block_class(config, **options), ()
        else:
            known = found is not None and path is None
            lacks = get_entry(model, dataset_name).lacks if known else None
            block, may_lack = self.make(config, found, lacks, **options)
        if found is not None:
            block.load_pretrained(found.weights, ctx or mx.cpu(), may_lack)
            block.base.vocab_file = file
        return block, vocab

    def _overrides(self, model, hparams, allowed):
        """Fields of the configuration for GluonNLP's hyper-parameters."""
        fields, names = {}, {}
        for name, value in hparams.items():
            if name not in self.hparams:
                known = ', '.join([*self.hparams, *self.options])
                raise InputError(f'{model} has no option {name!r}; known: {known}')
            if not allowed and name not in self.always_allowed:
                raise InputError(
                    f'{name}={value!r} would change the architecture of {model}; '
                    'pass hparam_allow_override=True if that is meant'
                )
            for field in self.hparams[name]:
                if fields.setdefault(field, value) != value:
                    raise InputError(f'{name} must equal {names[field]}')
                names.setdefault(field, name)
        return fields

    def _configure(self, model, found, vocab, fields):
        """The configuration: the architecture's, or the one beside the weights, and `fields`."""
        architecture = self.block_class.architectures[model]
        base = {**architecture, 'vocab_size': len(vocab)}
        if found is None and self.adapt is not None:
            base = self.adapt(base)
        if found is not None:
            base.update(self.block_class.config_of(model, found, len(vocab)).to_dict())
            other = [name for name, value in architecture.items() if base[name] != value]
            if other:
                _log.warning(
                    '%s makes this another size than %s: %s',
                    found.config,
                    model,
                    ', '.join(f'{name} {base[name]}' for name in other),
                )
        config = self.block_class.config_class.from_dict({**base, **fields})
        if len(vocab) > config.vocab_size:
            raise InputError(
                f'the vocabulary does not fit: it has {len(vocab)} tokens, and the weights of '
                f'{model} have {config.vocab_size}'
            )
        return config


def _find(model, dataset_name, vocab, pretrained, root):
    """The files of the weights or None, the vocabulary's file or None, and the vocabulary."""
    if isinstance(pretrained, str):
        files = find_files(model, dataset_name, root, path=pretrained, vocab=vocab is None)
        if vocab is not None:
            return files, None, vocab
        file = VocabFile.of(files)
        return files, file, file.load()
    if not pretrained:
        if vocab is None:
            vocab = find_vocab_file(model, dataset_name, root).load()
        return None, None, vocab
    if vocab is not None and dataset_name is None:
        raise InputError(
            f'{model}: pretrained weights and their vocabulary belong together; name the '
            'dataset_name of the weights, or pass pretrained=False'
        )
    if vocab is not None:  # GluonNLP's rule
        warnings.warn(f'vocab is ignored: {dataset_name} has its own', stacklevel=5)
    files = find_files(model, dataset_name, root)
    file = VocabFile.of(files)
    return files, file, file.load()
