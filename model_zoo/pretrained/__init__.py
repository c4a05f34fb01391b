"""Pretrained weights: the `catalogue`, and how their files are found (`find`).

A file is looked for in this order: an explicit path; the cache; an installed Python package that
carries it; GluonNLP's repository; the Hugging Face hub. Each place but the first is a class in
`sources` or `hub`. This package doesn't read the files.
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
from .download import Checksum, DownloadError, default_root
from .files import Files, Source, SourceError, files_at, files_in_folder
from .find import find_files, is_model_folder, is_place, local_path, names_files

__all__ = [
    'Checksum',
    'DownloadError',
    'Files',
    'PackageFiles',
    'PretrainedEntry',
    'Source',
    'SourceError',
    'default_root',
    'files_at',
    'files_in_folder',
    'find_files',
    'get_entry',
    'is_alias',
    'is_model_folder',
    'is_place',
    'list_pretrained',
    'local_path',
    'names_files',
    'register_pretrained',
    'resolve',
    'resolve_alias',
]
