"""The families of models: the one place where the ground floor looks up to them, by name."""

import importlib

__all__ = ['FAMILIES', 'load_families']

FAMILIES = ('bert', 'gpt', 'gpt2', 'transfo_xl')


def load_families():
    """Import each family's ``zoo`` module, which registers its models and pretrained weights."""
    for family in FAMILIES:
        try:
            importlib.import_module(f'{family}.zoo')
        except ModuleNotFoundError as error:
            if error.name not in (family, f'{family}.zoo'):  # something else is broken
                raise
