"""Models in use: from texts to results, by the pipeline of a task. Its parts load on first use."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .pipelines import pipeline as pipeline

#: public name -> the module that has it
_PLACES = {
    'ENGINES': 'engines',
    'PIPELINES': 'pipelines',
    'Engine': 'mxnet_engine',
    'MXNetEngine': 'mxnet_engine',
    'Pipeline': 'pipeline_base',
    'make_engine': 'engines',
    'nearest': 'vectors',
    'pipeline': 'pipelines',
    'unit_vectors': 'vectors',
}
__all__ = sorted(_PLACES)


def __getattr__(name):
    if name not in _PLACES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(importlib.import_module(f'.{_PLACES[name]}', __name__), name)
