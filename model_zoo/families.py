"""Imports of packages that use this one, by name: the families, and the exporter."""

import functools
import importlib
import importlib.util
import os

__all__ = [
    'FAMILIES', 'HOME', 'PACKAGES', 'file_in_the_way', 'load_exporter', 'load_families',
    'message_of_file',
]  # fmt: skip

#: Packages beside this one. Only those that are there: another distribution may own such a name.
FAMILIES = ('bert', 'gpt', 'gpt2', 'transfo_xl')
#: package that writes ONNX
EXPORTER = 'export'
#: packages whose names a user's own files may have
PACKAGES = (*FAMILIES, EXPORTER, 'bert_embedding')
#: the folder that they are in, beside this package
HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@functools.lru_cache(maxsize=None)
def load_families():
    """Import, once, each family's ``zoo`` module, which registers its models and weights."""
    for family in FAMILIES:
        _load(family, f'{family}.zoo')


def load_exporter():
    """The package `export`, for engines that run ONNX."""
    return _load(EXPORTER, EXPORTER)


def _load(package, module):
    path = file_in_the_way(package)
    if path is not None:
        raise ImportError(message_of_file(package, path))
    return importlib.import_module(module)


def file_in_the_way(name):
    """The file or folder that Python finds in the place of one of our packages, or None."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # ValueError: a module without a specification
        return None
    if spec is None or not os.path.isdir(os.path.join(HOME, name)):
        return None
    paths = [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())
    ours = os.path.join(os.path.realpath(HOME), name, '')
    return next((path for path in paths if not os.path.realpath(path).startswith(ours)), None)


def message_of_file(name, path):
    """The message about a file that is in the way."""
    return (
        f'{path} is in the way of the package {name} of gluon-transformer-zoo: rename it, or '
        'start from another folder'
    )
