"""Imports from below, by name: of the families, and of what stands on blocks and families."""

import functools
import importlib

__all__ = ['FAMILIES', 'load_above', 'load_exporter', 'load_families']

#: packages of models
FAMILIES = ('bert', 'gpt', 'gpt2', 'transfo_xl')


@functools.cache
def load_families():
    """Import, once, each family's ``zoo`` module, which registers its models and weights."""
    for family in FAMILIES:
        importlib.import_module(f'{family}.zoo')


def load_above(name):
    """Return a module that stands on the caller's.

    There are three: ``export``, for engines that run ONNX; ``model_zoo.opening``, for
    ``from_pretrained`` of blocks; and ``bert_embedding``, for the original import in ``bert``.
    """
    return importlib.import_module(name)


def load_exporter():
    """Return the package `export`."""
    return load_above('export')
