"""Families and models by name, joined with GluonNLP's own models."""

import dataclasses
import fnmatch
import inspect
from collections.abc import Callable
from typing import Any

import gluonnlp

from .errors import InputError, UnknownNameError, did_you_mean
from .families import load_families
from .pretrained import is_place, list_pretrained
from .tokenization.tokenizer import open_tokenizer

__all__ = [
    'Family',
    'family_of_class',
    'get_family',
    'gluonnlp_get_model',
    'list_families',
    'register_family',
    'register_path_builder',
]

_FAMILIES = {}  # name -> Family
_BUILDERS = {}
_PATH_BUILDER = []  # opening's, which imports this module
#: GluonNLP's own
gluonnlp_get_model = gluonnlp.model.get_model


@dataclasses.dataclass(frozen=True)
class Family:
    """What `open_model` needs to know about a family; its ``zoo.py`` registers it.

    Parameters
    ----------
    name : str
        The family's name in the catalogue.
    base : type
        The backbone's `ZooBlock`; its class attributes are the family's configuration class,
        architectures and optional parts.
    tasks : dict of str to type
        Task -> class of its block.
    tokenizers : tuple of type
        Classes of its tokenizers.
    hparams : dict of str to tuple of str
        GluonNLP's names of hyper-parameters -> fields of the configuration.
    always_allowed : tuple of str
        Hyper-parameters that don't change the architecture.
    fixed : dict
        GluonNLP's further options -> the value that each must have: another one would make a block
        that there isn't. `...` takes any value, without effect as in GluonNLP 0.10.
    zoo_task : str, optional
        Task of the zoo's models; by default they are backbones.
    release_names : tuple of str
        File names that identify a release without a family's name.
    adapt : callable, optional
        ``adapt(fields) -> fields``: adapts a new model's fields to the size of its vocabulary.
    variant_of : str, optional
        The family whose scripts and embedding also take these models.
    word_end : str
        The ending of a word's last symbol in the byte pairs' merges.
    """

    name: str
    base: type
    tasks: dict[str, type]
    tokenizers: tuple[type, ...]
    hparams: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    always_allowed: tuple[str, ...] = ('dropout',)
    fixed: dict[str, Any] = dataclasses.field(default_factory=dict)
    zoo_task: str = None
    release_names: tuple[str, ...] = ()
    adapt: Callable = None
    variant_of: str = None
    word_end: str = ''

    @property
    def blocks(self):
        """All classes of blocks, the backbone's first."""
        return [self.base, *self.tasks.values()]

    @property
    def zoo_block(self):
        """Class of the blocks that ``get_model`` builds."""
        return self.base if self.zoo_task is None else self.tasks[self.zoo_task]

    def make_tokenizer(self, file):
        """The tokenizer for a vocabulary's `VocabFile`, which may be of another family's kind."""
        return open_tokenizer(file, self._tokenizers_for(file))

    def reads(self, file):
        """Whether there is a tokenizer for a vocabulary's file."""
        kinds = [kind for cls in self._tokenizers_for(file) for kind in cls.kinds]
        return file.kind in ('tokenizers', *kinds)

    def vocab_of(self, file):
        """The vocabulary of a file; GluonNLP's of byte pairs lack the merges of a tokenizer."""
        return self.make_tokenizer(file).vocab if self.reads(file) else file.vocab

    def _tokenizers_for(self, file):
        """The family's classes first, then those of families like it, or of all."""
        # a class that the folder names may be any family's; without one only a family like this
        named, like = file.settings.tokenizer_class, self.variant_of or self.name
        others = [
            family
            for family in _FAMILIES.values()
            if named is not None or like in (family.name, family.variant_of)
        ]
        return tuple(cls for family in (self, *others) for cls in family.tokenizers)

    def takes_vocab(self, file):
        """Whether a vocabulary's file may be one of the family's."""
        kinds = {kind for cls in self.tokenizers for kind in cls.kinds}
        return file.model_kind in kinds and (
            file.model_kind != 'bpe' or file.has_word_ends == bool(self.word_end)
        )

    def task_named(self, architectures):
        """The task of the head that a configuration's ``architectures`` name, or None."""
        heads = {cls.__name__: task for task, cls in self.tasks.items() if task != 'pretraining'}
        return next((heads[name] for name in architectures or () if name in heads), None)

    def block_class(self, task):
        """The class for a task, a class's name here or on the Hugging Face hub, or a class.

        None means the backbone's class.
        """
        if task is None or isinstance(task, type):
            return task or self.base
        if task in self.tasks:
            return self.tasks[task]
        for cls in self.blocks:
            if task in (cls.__name__, cls.huggingface_name):
                return cls
        names = [cls.__name__ for cls in self.blocks]
        raise UnknownNameError.of(f'task or block of {self.name}', task, [*self.tasks, *names])

    def fields_of(self, model, hparams, allowed=True):
        """Fields of the configuration for GluonNLP's hyper-parameters of a model.

        Raises InputError for unknown ones, and for changes of the architecture unless `allowed`.
        """
        fields, names = {}, {}
        for name, value in hparams.items():
            if name in self.fixed:
                if self.fixed[name] not in (..., value):
                    usual = self.fixed[name]
                    raise InputError(f'{name} is {value!r:.80}: {model} has only {usual!r}')
                continue
            if name not in self.hparams:
                raise _no_option(model, name, self.hparams)
            if not allowed and name not in self.always_allowed:
                raise InputError(
                    f'{name}={value!r} would change the architecture of {model}; '
                    'pass hparam_allow_override=True if that is meant'
                )
            for field in self.hparams[name]:
                value = self.base.config_class.field_value(field, hparams[name])
                if fields.setdefault(field, value) != value:
                    raise InputError(f'{name} must equal {names[field]}')
                names.setdefault(field, name)
        return fields


def _no_option(model, name, known):
    hint = did_you_mean(name, known)
    return InputError(f'{model} has no option {name!r}; known: {", ".join(known)}{hint}')


def register_family(family):
    """Make a `Family` known; returns it."""
    known = _FAMILIES.setdefault(family.name, family)
    if known.base.__module__ != family.base.__module__:
        raise ValueError(f'the family {family.name} is registered twice')
    _FAMILIES[family.name] = family
    return family


def list_families():
    """The registered families (:class:`Family`)."""
    load_families()
    return list(_FAMILIES.values())


def get_family(name):
    """The family of this name."""
    load_families()
    UnknownNameError.check('family', name, _FAMILIES)
    return _FAMILIES[name]


def family_of_class(block_class):
    """The family that a class of blocks belongs to, by its configuration; or None."""
    wanted = block_class.config_class
    return next((family for family in list_families() if family.base.config_class is wanted), None)


def register_model(builder, name=None):
    """Register `builder` under its function's name, or another one."""
    name = name or builder.__name__
    if name in _BUILDERS and _BUILDERS[name].__module__ != builder.__module__:
        raise ValueError(f'the model {name} is registered twice')
    _BUILDERS[name] = builder
    return builder


def register_path_builder(builder):
    """Let `get_model` use `builder` for paths and addresses instead of names; returns it."""
    _PATH_BUILDER[:] = [builder]
    return builder


def list_models(pattern=None, pretrained=None):
    """Names of the registered models, sorted.

    Parameters
    ----------
    pattern : str, optional
        Keeps the names that match it, such as ``'bert_*'``.
    pretrained : bool, optional
        True keeps the models with pretrained weights in the catalogue, False those without.
    """
    load_families()
    with_weights = {name for entry in list_pretrained() for name in (entry.model, *entry.names)}
    return sorted(
        name
        for name in _BUILDERS
        if (pattern is None or fnmatch.fnmatch(name, pattern))
        and (pretrained is None or (name in with_weights) == pretrained)
    )


def get_model(
    name: str,
    dataset_name: str | None = ...,
    vocab: Any = ...,
    pretrained: bool | str = ...,
    ctx: Any = ...,
    root: str | None = ...,
    hparam_allow_override: bool = ...,
    **kwargs: Any,
) -> tuple[Any, Any]:
    """Build a model of the zoo, or one of GluonNLP's where the zoo doesn't have the name.

    The model's own function has the defaults. Returns (block, vocab).

    Parameters
    ----------
    name : str
        See `list_models`; case doesn't matter. Or ``'owner/name'`` of the Hugging Face hub, an
        address, or an archive (see `model_zoo.pretrained.is_place`).
    dataset_name : str, optional
        The data set of the weights. Default: the model's usual one.
    vocab : gluonnlp.Vocab, optional
        For a model without pretrained weights, or with weights from a path.
    pretrained : bool or str, default True
        True: the catalogue's weights (see `model_zoo.pretrained`); a string: their file or folder;
        False: none, and you initialize the parameters.
    ctx : mx.Context or list of mx.Context, default CPU
    root : str, optional
        Cache of weights, by default ``$MXNET_HOME/models``.
    hparam_allow_override : bool, default False
        Whether further keyword arguments may change the architecture (``num_layers=2``).
    **kwargs
        See the model's own function, such as ``bert.zoo.bert_12_768_12``.

    Raises
    ------
    UnknownNameError
        If neither the zoo nor GluonNLP has the name.
    PretrainedNotFoundError
        If no source has the weights.
    """
    common = {key: value for key, value in locals().items() if key not in ('name', 'kwargs')}
    if not isinstance(name, str):
        raise InputError(f"the name of a model is a str such as 'bert_12_768_12', not {name!r:.80}")
    given = {key: value for key, value in common.items() if value is not ...}
    load_families()
    builder = _BUILDERS.get(name.lower())
    if builder is not None:
        _check_options(builder, kwargs, common)
        return builder(**given, **kwargs)
    if is_place(name):
        return _PATH_BUILDER[0](name, **given, **kwargs)
    try:
        return gluonnlp_get_model(name, **given, **kwargs)
    except ValueError as error:
        if 'is not supported' not in str(error):
            raise
        theirs = [word for word in str(error).split() if '_' in word and word != name]
        known = sorted(set(_BUILDERS).union(theirs))
        raise UnknownNameError.of('model', name, known) from error


def _check_options(builder, kwargs, common):
    """Raise InputError for an option that the model's function doesn't have."""
    parameters = inspect.signature(builder).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for name in kwargs:
        if name not in parameters:
            known = [option for option in parameters if option not in common]
            raise _no_option(builder.__name__, name, known)


gluonnlp.model.get_model = get_model  # which returns GluonNLP's models, too
