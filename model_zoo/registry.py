"""The families, by name and by a model's files."""

import contextlib
import dataclasses
import os
from collections.abc import Callable
from typing import Any

from .checkpoint.readers import read_tensors
from .errors import InputError, UnknownNameError, ZooError, did_you_mean
from .families import load_families
from .pretrained import get_entry, no_configuration, no_weights
from .tokenization.tokenizer import open_tokenizer
from .tokenization.vocab_file import VocabFile

__all__ = ['Family', 'find_family', 'get_family', 'list_families', 'register_family']

_FAMILIES = {}  # name -> Family


@dataclasses.dataclass(eq=False)
class Family:
    """A family's entry for `open_model`; the family's ``zoo.py`` registers it.

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
        GluonNLP's further options -> the value that each must have: another value would make a
        block that doesn't exist. `...` takes any value, without effect as in GluonNLP 0.10.
    zoo_task : str, optional
        Task of the zoo's models; by default they are backbones.
    release_names : tuple of str
        File names that identify a release without a family's name.
    adapt : callable, optional
        ``adapt(fields) -> fields``: adapts a new model's fields to the size of its vocabulary.
    variant_of : str, optional
        The family whose scripts and embedding also take these models.

    Attributes
    ----------
    blocks : list of type
        All classes of blocks, the backbone's first.
    zoo_block : type
        Class of the blocks that ``get_model`` builds.
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

    def __post_init__(self):
        self.blocks = [self.base, *self.tasks.values()]
        self.zoo_block = self.base if self.zoo_task is None else self.tasks[self.zoo_task]

    @property
    def predicts_next(self):
        """Whether a head is trained to predict next sentences."""
        return 'nsp' in getattr(self.tasks.get('pretraining'), 'pretraining_terms', ())

    def make_tokenizer(self, file):
        """Make the tokenizer of a `VocabFile`, which may be of a kind that another family uses."""
        # a class that the folder names may be any family's; without one only a family like this
        named, like = file.settings.tokenizer_class, self.variant_of or self.name
        families = _FAMILIES.values()
        others = [each for each in families if named or like in (each.name, each.variant_of)]
        return open_tokenizer(file, [cls for each in (self, *others) for cls in each.tokenizers])

    def vocab_of(self, file):
        """Return a file's vocabulary; GluonNLP's of byte pairs lack the merges of a tokenizer."""
        return file.vocab if file.kind == 'gluonnlp' else self.make_tokenizer(file).vocab

    def takes_vocab(self, file):
        """Whether a vocabulary's file may be one of the family's."""
        classes = [cls for cls in self.tokenizers if file.model_kind in cls.kinds]
        if file.model_kind == 'bpe':
            classes = [cls for cls in classes if bool(cls.suffix) == file.has_word_ends]
        return bool(classes)

    def task_named(self, architectures):
        """Return the task of the head that a configuration's ``architectures`` name, or None."""
        heads = {cls.__name__: task for task, cls in self.tasks.items() if task != 'pretraining'}
        return next((heads[name] for name in architectures or () if name in heads), None)

    def block_class(self, task):
        """Return the class for a task, a class's name here or on the Hugging Face hub, or a class.

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

    def fields_of(self, model, hparams, allowed=True, options=()):
        """Return the configuration's fields for GluonNLP's hyper-parameters of a model.

        Raises InputError for unknown ones, and for changes of the architecture unless `allowed`.
        `options` are names that the model's function takes besides.
        """
        fields, names = {}, {}
        for name, value in hparams.items():
            if name in self.fixed:
                if self.fixed[name] not in (..., value):
                    usual = self.fixed[name]
                    raise InputError(f'{name} is {value!r:.80}: {model} has only {usual!r}')
                continue
            if name not in self.hparams:
                known = [*self.hparams, *options]
                raise InputError(f'{model} has no option {name!r}{did_you_mean(name, known)}')
            if not allowed and name not in self.always_allowed:
                raise InputError(f'{name} of {model} needs hparam_allow_override=True')
            for field in self.hparams[name]:
                value = self.base.config_class.field_value(field, hparams[name])
                if fields.setdefault(field, value) != value:
                    raise InputError(f'{name} must equal {names[field]}')
                names.setdefault(field, name)
        return fields


def register_family(family):
    """Make a `Family` known; returns it."""
    known = _FAMILIES.get(family.name, family)
    if known.base.__module__ != family.base.__module__:
        raise ValueError(f'the family {family.name} is registered twice')
    _FAMILIES[family.name] = family
    return family


def list_families():
    """Return the registered families (:class:`Family`)."""
    load_families()
    return list(_FAMILIES.values())


def get_family(name):
    """Return the family of this name."""
    load_families()
    UnknownNameError.check('family', name, _FAMILIES)
    return _FAMILIES[name]


def family_of_class(block_class):
    """Return the family that a class of blocks belongs to, by its configuration; or None."""
    wanted = block_class.config_class
    return next((family for family in list_families() if family.base.config_class is wanted), None)


def find_family(name, task, family, expected, model, files):
    """Return the `Family` that a class, a name, a model, or files belong to.

    `model_zoo.opening.locate` documents the arguments: `expected` is its `expected_family`. `model`
    is a name of the catalogue.
    """
    load_families()
    by_type = {each.base.config_class.model_type: each for each in reversed(_FAMILIES.values())}
    names = {os.path.basename(path) for path in (files.weights, files.config) if path}
    released = [each for each in _FAMILIES.values() if names.intersection(each.release_names)]
    if isinstance(task, type):
        # a class of the user's own needs no registered names
        result = family_of_class(task) or Family(task.__name__, task, {}, ())
    elif family is not None or model is not None:
        result = get_family(family or get_entry(model).family)
    elif released:
        result = released[0]
    elif files.config is None:
        if files.weights is None:
            raise no_weights(name)
        if expected is None:
            raise no_configuration(files)
        result = _FAMILIES[expected]
    elif (model_type := files.fields.get('model_type')) is not None:
        UnknownNameError.check(f'model_type in {files.config!r}', model_type, by_type)
        result = by_type[model_type]
    else:
        candidates = _families_that_fit(files)
        if len(candidates) != 1:
            fits = ' or '.join(each.name for each in candidates) or 'any family'
            raise InputError(f'{files.config!r} may be of {fits}: name its `family`')
        result = candidates[0]
    if model is not None and model not in result.base.architectures:
        raise InputError(f'{name!r} is not a model of the family {result.name}')
    return result if expected in (None, result.variant_of) else _FAMILIES[expected]


def _families_that_fit(files):
    """Return the families that fit the configuration's fields, the vocabulary and the weights."""

    def likeness(family):
        known = {field.name for field in dataclasses.fields(family.base.config_class)}
        return len(known.intersection(files.fields))

    families, file = _best(_FAMILIES.values(), likeness), files.vocab and VocabFile(files)
    if len(families) > 1 and file is not None:
        with contextlib.suppress(ZooError):  # opening the tokenizer reports it
            families = _best(families, lambda family: family.takes_vocab(file)) or families
    # of BERT and its variants, whose configurations are BERT's, a vocabulary of its kind is BERT's
    originals = [family for family in families if family.variant_of is None]
    if len(families) > 1 and files.weights and (file is None or len(originals) != 1):
        with contextlib.suppress(ZooError):
            weights = read_tensors(files.weights)
            families = _best(families, lambda family: family.base.count_known(*weights)) or families
            originals = [family for family in families if family.variant_of is None]
    return originals if len(originals) == 1 else families


def _best(families, score):
    """Return the families with the highest score, if it isn't 0."""
    scores = [score(family) for family in families]
    return [family for family, each in zip(families, scores) if each and each == max(scores)]
