"""Pretrained weights: which there are (`catalogue`) and how their files are found (`find`).

A file is looked for in this order: an explicit path; the cache; an installed Python package that
carries it; GluonNLP's repository; the Hugging Face hub. Each place but the first is a class in
`sources` or `hub`.
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
from .download import Checksum, DownloadError
from .find import Found, VocabFile, find_vocab, find_vocab_file, find_weights
from .sources import Files, Source, SourceError, default_root, files_in_folder

__all__ = [
    'Checksum',
    'DownloadError',
    'Files',
    'Found',
    'PackageFiles',
    'PretrainedEntry',
    'Source',
    'SourceError',
    'VocabFile',
    'default_root',
    'files_in_folder',
    'find_vocab',
    'find_vocab_file',
    'find_weights',
    'get_entry',
    'is_alias',
    'list_pretrained',
    'register_pretrained',
    'resolve',
    'resolve_alias',
]
