"""Models by name, joined with GluonNLP's own."""

import fnmatch

import gluonnlp

from .errors import InputError, UnknownNameError
from .families import load_families
from .pretrained import list_pretrained

__all__ = ['get_model', 'gluonnlp_get_model', 'join_gluonnlp', 'list_models', 'register_model']

_BUILDERS = {}
#: GluonNLP's own, before `join_gluonnlp`
gluonnlp_get_model = gluonnlp.model.get_model


def register_model(builder):
    """Register `builder` under its function's name.

    Parameters
    ----------
    builder : callable
        Takes the arguments of `get_model` but the name, returns (block, vocab).

    Returns
    -------
    callable
        The builder, so that this can be used as a decorator.
    """
    name = builder.__name__
    if name in _BUILDERS and _BUILDERS[name].__module__ != builder.__module__:
        raise ValueError(f'the model {name} is registered twice')
    _BUILDERS[name] = builder
    return builder


def list_models(pattern=None, pretrained=None):
    """Names of the registered models.

    Parameters
    ----------
    pattern : str, optional
        Keeps the names that match it, such as ``'bert_*'``.
    pretrained : bool, optional
        True keeps the models with pretrained weights in the catalogue, False those without.

    Returns
    -------
    list of str
        Sorted.
    """
    load_families()
    with_weights = {name for entry in list_pretrained() for name in (entry.model, *entry.names)}
    return sorted(
        name
        for name in _BUILDERS
        if (pattern is None or fnmatch.fnmatch(name, pattern))
        and (pretrained is None or (name in with_weights) == pretrained)
    )


def get_model(name, **kwargs):
    """Build a model of the zoo, or one of GluonNLP's where the zoo doesn't have the name.

    Parameters
    ----------
    name : str
        See `list_models`; case doesn't matter.
    dataset_name : str, optional
        What the weights were trained on. The default is the model's usual one.
    vocab : gluonnlp.Vocab, optional
        For a model that isn't pretrained, or whose weights come from a path.
    pretrained : bool or str
        True: from the catalogue (see `model_zoo.pretrained`); a string: the file or directory
        that has them; False: the parameters are left to be initialized.
    ctx : mx.Context or list of mx.Context
    root : str
        Cache of weights, by default ``$MXNET_HOME/models``.
    hparam_allow_override : bool
        Whether further keyword arguments may change the architecture (``num_layers=2``).
    **kwargs
        See the model's own function, such as ``bert.zoo.bert_12_768_12``.

    Returns
    -------
    (block, vocab)

    Raises
    ------
    InputError
        If the name isn't a str.
    UnknownNameError
        If neither the zoo nor GluonNLP has the name.
    PretrainedNotFoundError
        If the weights are in none of the places where they are looked for.
    """
    if not isinstance(name, str):
        raise InputError(f"the name of a model is a str such as 'bert_12_768_12', not {name!r:.80}")
    load_families()
    builder = _BUILDERS.get(name.lower())
    if builder is not None:
        return builder(**kwargs)
    try:
        return gluonnlp_get_model(name, **kwargs)
    except ValueError as error:
        if 'is not supported' not in str(error):
            raise
        theirs = [word for word in str(error).split() if '_' in word and word != name]
        known = sorted(set(_BUILDERS).union(theirs))
        raise UnknownNameError.of('model', name, known) from error


def join_gluonnlp():
    """Make ``gluonnlp.model.get_model`` serve the zoo's models first; `get_model` is both."""
    gluonnlp.model.get_model = get_model
