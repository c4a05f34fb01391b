"""Which family a name, a folder or its files belong to."""

import dataclasses
import os

from ..errors import InputError, UnknownNameError
from ..pretrained import find_files, get_entry, names_files, resolve
from ..registry import Family, family_of_class, get_family, list_families
from ..util.files import read_json

__all__ = ['families_like', 'find_block_class', 'find_family']


def find_family(name_or_folder, dataset_name=None):
    """The `Family` of a model.

    Parameters
    ----------
    name_or_folder, dataset_name
        See `open_model`.

    Returns
    -------
    Family
    """
    if names_files(name_or_folder):
        files = small_files(name_or_folder)
        if files.config is None and os.path.exists(name_or_folder):
            files = find_files(path=name_or_folder, vocab=False)  # tells what the folder lacks
        return family_of(name_or_folder, None, None, None, files)
    model, _ = resolve(os.fspath(name_or_folder), dataset_name)
    return family_of(name_or_folder, None, None, model, None)


def find_block_class(family, task, name_or_folder, dataset_name=None):
    """The class of the block for a task of a model of a family, or of one of its variants.

    Parameters
    ----------
    family : str
        Such as 'bert', whose variants RoBERTa and others are.
    task : str or None
        See `Family.block_class`; None is the backbone.
    name_or_folder, dataset_name
        See `open_model`.

    Returns
    -------
    type
        Of a model of another family, the class of `family`, which can't be opened with it.
    """
    found = get_family(family)
    if not names_files(name_or_folder) or small_files(name_or_folder).config is not None:
        other = find_family(name_or_folder, dataset_name)
        found = other if other.variant_of == family else found
    return found.base if task is None else found.block_class(task)


def small_files(path, root=None):
    """The files at a path or place; nothing large is fetched for them."""
    return find_files(path=path, root=root, weights=False, vocab=False)


def family_of(name, task, family, model, files):
    """The `Family` that a class, a name, a model, or files belong to."""
    if isinstance(task, type):
        # a class of the user's own needs no registered names
        found = family_of_class(task) or Family(task.__name__, task, {}, None, ())
    elif family is not None:
        found = get_family(family)
    elif model is not None:
        found = get_family(get_entry(model).family)
    else:
        return _family_of_files(files)
    if model is not None and model not in found.architectures:
        raise InputError(f'{os.fspath(name)!r} is no model of the family {found.name}')
    return found


def _family_of_files(files):
    """The family of a release, or the one that the configuration names or resembles."""
    families = list_families()
    names = {os.path.basename(path) for path in (files.weights, files.config) if path}
    released = [each for each in families if names.intersection(each.release_names)]
    if released:
        return released[0]
    if files.config is None:
        raise no_configuration(files)
    fields = read_json(files.config, 'the configuration')
    if not isinstance(fields, dict):
        raise InputError(f'the configuration {files.config!r} is not a JSON object')
    found = families_like(fields)
    if found:
        return found[0]
    if fields.get('model_type') is not None:
        known = [each.config_class.model_type for each in families]
        raise UnknownNameError.of(f'model_type in {files.config!r}', fields['model_type'], known)
    raise InputError(
        f'the configuration {files.config!r} does not tell the family: name its `family`'
    )


def families_like(fields):
    """The families that a configuration may belong to.

    Parameters
    ----------
    fields : dict
        Of ``config.json``.

    Returns
    -------
    list of Family
        The one that ``model_type`` names, if it is there; otherwise those that share the most
        fields.
    """
    families, model_type = list_families(), fields.get('model_type')
    if model_type is not None:
        return [each for each in families if each.config_class.model_type == model_type]

    def likeness(family):
        own = {field.name for field in dataclasses.fields(family.config_class)}
        return len(own.intersection(fields)), family.variant_of is None

    most = max(map(likeness, families))
    return [each for each in families if likeness(each) == most] if most[0] else []


def no_configuration(files):
    folder = os.path.dirname(files.weights or files.vocab or '') or '.'
    return InputError(
        f'the directory {folder!r} has no configuration: put config.json (or bert_config.json, '
        'hparams.json) beside the weights, or name its `config`'
    )
