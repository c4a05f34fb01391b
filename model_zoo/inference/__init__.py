"""Models in use: from texts to results."""

from .engine import Engine, MXNetEngine
from .engines import ENGINES, make_engine
from .factory import PIPELINES, pipeline
from .pipeline import Pipeline
from .vectors import INDEXES, nearest, unit_vectors

__all__ = [
    'ENGINES', 'INDEXES', 'PIPELINES', 'Engine', 'MXNetEngine', 'Pipeline', 'make_engine',
    'nearest', 'pipeline', 'unit_vectors',
]  # fmt: skip
