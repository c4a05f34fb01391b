"""The zoo's models by name, as `get_model` of GluonNLP returns them, and joined with its models."""

import fnmatch
import functools
import os
import sys
import warnings
from typing import Any

import gluonnlp
import mxnet as mx

from .errors import InputError, UnknownNameError
from .families import load_families
from .opening import Located, check_ctx, configure, locate, open_model, open_parts
from .pretrained import find_files, is_place, list_pretrained
from .pretrained.catalogue import register_weights
from .tokenization.vocab_file import VocabFile
from .util.reading import read_json

__all__ = ['add_models', 'gluonnlp_get_model', 'model_function']

_BUILDERS = {}  # name -> function
#: GluonNLP's own
gluonnlp_get_model = gluonnlp.model.get_model


def register_model(builder, name=None):
    """Register `builder` under its function's name, or another one."""
    name = name or builder.__name__
    if name in _BUILDERS and _BUILDERS[name].__module__ != builder.__module__:
        raise ValueError(f'the model {name} is registered twice')
    _BUILDERS[name] = builder
    return builder


def list_models(pattern=None, pretrained=None):
    """Return the names of the registered models, sorted.

    Parameters
    ----------
    pattern : str, optional
        Keeps the names that match it, such as ``'bert_*'``.
    pretrained : bool, optional
        True keeps the models with pretrained weights in the catalogue, False those without.
    """
    load_families()
    with_weights = {name for entry in list_pretrained() for name in (entry.model, *entry.names)}
    names = fnmatch.filter(_BUILDERS, '*' if pattern is None else pattern)
    return sorted(
        name for name in names if pretrained is None or (name in with_weights) == pretrained
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
    if not isinstance(name, str):
        raise InputError(f"the name of a model is a str such as 'bert_12_768_12', not {name!r:.80}")
    given = {'dataset_name': dataset_name, 'vocab': vocab, 'pretrained': pretrained, 'ctx': ctx}
    given.update(root=root, hparam_allow_override=hparam_allow_override)
    given = {key: value for key, value in given.items() if value is not ...}
    load_families()
    builder = _BUILDERS.get(name.lower())
    if builder is not None:
        return builder(**given, **kwargs)
    if is_place(name):
        return _model_at(name, given, kwargs)
    try:
        return gluonnlp_get_model(name, **given, **kwargs)
    except ValueError as error:
        if 'is not supported' not in str(error):
            raise
        theirs = [word for word in str(error).split() if '_' in word and word != name]
        raise UnknownNameError.of('model', name, sorted(set(_BUILDERS).union(theirs))) from error


gluonnlp.model.get_model = get_model  # which returns GluonNLP's models, too


_read_models = functools.cache(read_json)


def add_models(family, module, notes=''):
    """Add what ``models.json`` beside a module says of a family: its models, and their options.

    The file has, by the names of families, `hparams`, `fixed` and `always_allowed` (see `Family`;
    ``"any"`` stands for `...`), the `options` and `may_lack` of `model_function`, and perhaps
    another name that the family is `like`. Its `models` have a `summary`, `fields` of the
    configuration, `weights` by the names of data sets (see `PretrainedEntry`), and perhaps
    `other_names`. The family's blocks get their `architectures`, the module the functions.

    Parameters
    ----------
    family : Family
    module : str
        The module's name.
    notes : str
        See `model_function`.

    Returns
    -------
    list of str
        The names of the functions.
    """
    place, names = sys.modules[module], []
    file = _read_models(os.path.join(os.path.dirname(place.__file__), 'models.json'))
    own = file[family.name]
    about = {**file.get(own.get('like'), {}), **own}
    for part in ('hparams', 'fixed', 'options'):
        about[part] = {**file.get(own.get('like'), {}).get(part, {}), **own.get(part, {})}
    family.hparams = {name: tuple(fields) for name, fields in about['hparams'].items()}
    family.fixed = {name: ... if v == 'any' else v for name, v in about['fixed'].items()}
    family.always_allowed = tuple(about.get('always_allowed', family.always_allowed))
    architectures = {name: model['fields'] for name, model in own['models'].items()}
    for block in family.blocks:
        block.architectures = architectures
    parts = module, about['options'], about.get('may_lack', ()), notes
    for name, model in own['models'].items():
        register_weights(family.name, name, model['weights'])
        build = model_function(family, name, model['summary'], *parts)
        for each in (name, *model.get('other_names', ())):
            setattr(place, each, register_model(build, each))
            names.append(each)
    return names


def model_function(family, name, summary, module, options=None, may_lack=(), notes=''):
    """Register a function that builds a model of the zoo, as `get_model` promises.

    Parameters
    ----------
    family : Family
    name : str
        The function's name.
    summary : str
        First line of its docstring.
    module : str
        The module that has the function.
    options : dict, optional
        Names of GluonNLP's options of the block -> their defaults.
    may_lack : tuple of str
        Parts that weights may lack if ``pretrained_allow_missing`` is an option, and true.
    notes : str
        What its docstring says about the options.
    """
    options = options or {}

    def build(
        dataset_name=None,
        vocab=None,
        pretrained=True,
        ctx=None,
        root=None,
        hparam_allow_override=False,
        **kwargs,
    ):
        given = {**options, **{key: kwargs.pop(key) for key in options if key in kwargs}}
        hparams = {key: value for key, value in kwargs.items() if value is not None}
        fields = family.fields_of(name, hparams, hparam_allow_override, options)
        lacking = may_lack if given.pop('pretrained_allow_missing', False) else ()
        given.pop('ignore_extra', None)  # what the block has no place for is always passed over
        if 'output_attention' in given:
            given['output_attentions'] = given.pop('output_attention')
        if given.get('use_pooler') is False and 'use_classifier' in given:
            given['use_classifier'] = bool(given['use_classifier'])
        check_ctx(ctx)
        if pretrained is True and vocab is not None:
            if dataset_name is None:
                raise InputError(f'{name} has its own vocabulary: name the dataset_name')
            # GluonNLP's rule
            warnings.warn(f'vocab is ignored: {dataset_name} has its own', stacklevel=2)
            vocab = None
        path = os.fspath(pretrained) if isinstance(pretrained, (str, os.PathLike)) else None
        files = find_files(name, dataset_name, root, path, bool(pretrained), vocab is None)
        located = Located(name, family, files, name, dataset_name, path)
        return _build(located, vocab, ctx, fields, given, lacking)

    always = ', '.join(key for key in family.hparams if key in family.always_allowed)
    others = ', '.join(key for key in family.hparams if key not in family.always_allowed)
    block = family.zoo_block.__name__
    build.__name__ = build.__qualname__ = name
    build.__module__ = module
    build.__doc__ = f"""{summary}

    `model_zoo.get_model` documents the other arguments.

    Parameters
    ----------
    hparam_allow_override : bool, default False
        Whether hyper-parameters may differ from the model's: {others}. Always may: {always}.
    {notes or ', '.join(options)}

    Returns
    -------
    ({block}, gluonnlp.Vocab)
        The vocabulary in the order of its own file.
    """
    return register_model(build)


def _build(located, vocab, ctx, fields, options, may_lack):
    """Return a named model; the weights may lack the parts `may_lack`."""
    files, block_class = located.files, located.family.zoo_block
    file = VocabFile(files) if vocab is None else None
    vocab = vocab or located.family.vocab_of(file)
    config, _ = configure(located, vocab, fields)
    if files.weights is None:  # a new one, with all parts that aren't refused
        given = {name: value for name, value in options.items() if value is not None}
        parts = {name: True for name in options if name[4:] in block_class.optional_parts}
        return block_class(config, **{**parts, **given}), vocab
    weights = block_class.read_weights(files.weights, config)
    block = block_class(config, **open_parts(block_class, weights, options))
    block.load_weights(weights, ctx or mx.cpu(), ('^', *may_lack))
    block.base.vocab_file = file
    return block, vocab


def _model_at(name, given, options):
    """Return the model of the zoo that is at a place, as `get_model` promises."""
    if given.get('pretrained', True) is not True or given.get('dataset_name') is not None:
        raise InputError(f'{name!r} is a place of weights: leave out pretrained and dataset_name')
    vocab = given.get('vocab')
    located = locate(name, root=given.get('root'), vocab=vocab is None)
    family = located.family
    known = {*family.hparams, *family.fixed}
    hparams = {key: options.pop(key) for key in known.intersection(options)}
    allowed = given.get('hparam_allow_override', False)
    options.update(family.fields_of(name, hparams, allowed), ctx=given.get('ctx'))
    block = open_model(located, family.zoo_block, tokenizer=False, exact=True, **options).block
    return block, vocab or family.vocab_of(block.base.vocab_file)
