"""A zoo of transformers as MXNet Gluon HybridBlocks: what all families of models share."""

from .util import startup, threads

startup.end_quietly_until_run()
threads.use_all_processors()  # before MXNet loads

from . import moved, optimizer  # noqa: E402, F401  Gluon's Trainer knows our optimizers by name
from .inference import pipeline  # noqa: E402
from .opening import open_model  # noqa: E402
from .registry import get_model, join_gluonnlp, list_models, register_model  # noqa: E402

__version__ = '0.2.0.dev0'
__all__ = ['get_model', 'list_models', 'open_model', 'pipeline', 'register_model']

join_gluonnlp()
moved.keep_old_paths()
