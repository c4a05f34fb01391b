"""Models in use: from texts to results."""

from .engine import Engine, MXNetEngine
from .engines import ENGINES, make_engine
from .factory import PIPELINES, pipeline
from .pipeline import Pipeline

__all__ = ['ENGINES', 'PIPELINES', 'Engine', 'MXNetEngine', 'Pipeline', 'make_engine', 'pipeline']
