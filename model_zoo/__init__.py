"""A zoo of transformers as MXNet Gluon HybridBlocks: what all families of models share."""

from . import cli, threads

cli.end_quietly_until_run()
threads.use_all_processors()  # before MXNet loads

from .registry import get_model, join_gluonnlp, list_models, register_model  # noqa: E402

__version__ = '0.1.0'
__all__ = ['get_model', 'list_models', 'register_model']

join_gluonnlp()
