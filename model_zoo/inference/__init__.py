"""Models in use: from texts to results."""

from .engine import Engine, MXNetEngine
from .factory import PIPELINES, pipeline
from .pipeline import Pipeline

__all__ = ['PIPELINES', 'Engine', 'MXNetEngine', 'Pipeline', 'pipeline']
