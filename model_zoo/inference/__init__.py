"""Models in use: from texts to results, by the pipeline of a task. Its parts load on first use."""

from typing import TYPE_CHECKING

from ..families import names_later

if TYPE_CHECKING:
    from .pipelines import pipeline as pipeline

_PLACES = {
    '.engines': 'ENGINES make_engine',
    '.mxnet_engine': 'Engine MXNetEngine',
    '.pipeline_base': 'Pipeline',
    '.pipelines': 'PIPELINES pipeline',
    '.vectors': 'nearest unit_vectors',
}
__getattr__, __all__ = names_later(__name__, _PLACES)
