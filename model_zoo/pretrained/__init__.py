"""Pretrained weights: the `catalogue`, and how their files are found (`find`).

A file is looked for in this order: an explicit path; on this machine, in the cache, in an installed
Python package that carries it, in the Hugging Face hub's cache; then in GluonNLP's repository and
on the hub. This package doesn't read the files.
"""

from ..families import names_later

_PLACES = {
    '.catalogue': 'PackageFiles PretrainedEntry get_entry is_alias list_pretrained '
    'register_pretrained resolve resolve_alias',
    '.download': 'SourceError default_root',
    '.files': 'Files',
    '.find': 'find_files names_files no_configuration no_weights places_of',
    '.places': 'is_place local_path',
}
__getattr__, __all__ = names_later(__name__, _PLACES)
