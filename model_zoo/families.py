"""Imports of packages that use this one, by name: the families, and the exporter."""

import functools
import importlib

__all__ = ['FAMILIES', 'load_exporter', 'load_families']

#: packages of models
FAMILIES = ('bert', 'gpt', 'gpt2', 'transfo_xl')
#: package that writes ONNX
EXPORTER = 'export'


@functools.cache
def load_families():
    """Import, once, each family's ``zoo`` module, which registers its models and weights."""
    for family in FAMILIES:
        importlib.import_module(f'{family}.zoo')


def load_exporter():
    """Return the package `export`, for engines that run ONNX."""
    return importlib.import_module(EXPORTER)
