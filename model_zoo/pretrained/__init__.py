"""Pretrained weights: the `catalogue`, and how their files are found (`find`).

A file is looked for in this order: an explicit path; on this machine, in the cache, in an installed
Python package that carries it, in the Hugging Face hub's cache; then in GluonNLP's repository and
on the hub. This package doesn't read the files.
"""

from .catalogue import (
    PackageFiles,
    PretrainedEntry,
    get_entry,
    is_alias,
    list_pretrained,
    register_pretrained,
    resolve,
    resolve_alias,
)
from .download import SourceError, default_root
from .files import Files
from .find import find_files, names_files, no_configuration, no_weights, places_of
from .places import is_place, local_path

__all__ = [
    'Files',
    'PackageFiles',
    'PretrainedEntry',
    'SourceError',
    'default_root',
    'find_files',
    'get_entry',
    'is_alias',
    'is_place',
    'list_pretrained',
    'local_path',
    'names_files',
    'no_configuration',
    'no_weights',
    'places_of',
    'register_pretrained',
    'resolve',
    'resolve_alias',
]
