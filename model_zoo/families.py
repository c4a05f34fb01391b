"""Imports from below, by name: of the families, and of what stands on blocks and families."""

import functools
import importlib

__all__ = ['FAMILIES', 'load_above', 'load_exporter', 'load_families', 'names_later']

#: packages of models
FAMILIES = ('bert', 'gpt', 'gpt2', 'transfo_xl')


@functools.cache
def load_families():
    """Import, once, each family's ``zoo`` module, which registers its models and weights."""
    for family in FAMILIES:
        importlib.import_module(f'{family}.zoo')


def names_later(package, places):
    """Return a package's ``__getattr__`` for names of modules that load on their first use.

    Also returns its ``__all__``. `places` has the modules' names, which may be relative, and their
    public names in one text.
    """
    modules = {name: module for module, names in places.items() for name in names.split()}

    def find(name):
        if name not in modules:
            raise AttributeError(f'module {package!r} has no attribute {name!r}')
        return getattr(importlib.import_module(modules[name], package), name)

    return find, sorted(modules)


def load_above(name):
    """Return a module that stands on the caller's.

    There are two: ``export``, for engines that run ONNX, and ``model_zoo.opening``, for
    ``from_pretrained`` of blocks.
    """
    return importlib.import_module(name)


def load_exporter():
    """Return the package `export`."""
    return load_above('export')
