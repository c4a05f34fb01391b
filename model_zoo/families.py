"""The families of models: the one place where the ground floor looks up to them, by name."""

import importlib

__all__ = ['FAMILIES', 'load_families']

#: Packages beside this one. Only those that are there: another distribution may own such a name.
FAMILIES = ('bert', 'gpt', 'gpt2', 'transfo_xl')


def load_families():
    """Import each family's ``zoo`` module, which registers its models and pretrained weights."""
    for family in FAMILIES:
        importlib.import_module(f'{family}.zoo')
