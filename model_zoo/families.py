"""The one place where the ground floor looks up, by name: to the families, and to the exporter."""

import importlib

__all__ = ['FAMILIES', 'load_exporter', 'load_families']

#: Packages beside this one. Only those that are there: another distribution may own such a name.
FAMILIES = ('bert', 'gpt', 'gpt2', 'transfo_xl')
#: package that writes ONNX
EXPORTER = 'export'


def load_families():
    """Import each family's ``zoo`` module, which registers its models and pretrained weights."""
    for family in FAMILIES:
        importlib.import_module(f'{family}.zoo')


def load_exporter():
    """`export.export_onnx`, for engines that run ONNX."""
    return importlib.import_module(EXPORTER).export_onnx
