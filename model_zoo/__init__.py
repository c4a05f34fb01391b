"""A zoo of transformers as MXNet Gluon HybridBlocks: what all families of models share."""

from typing import TYPE_CHECKING

from .util import processor, startup, threads

startup.end_quietly_until_run()
startup.check_imports()
threads.use_all_processors()  # before MXNet loads
threads.bound_kernel_memory()
threads.copy_on_one_thread()
processor.use_all_instructions()

from . import moved, optimizer  # noqa: E402, F401  Gluon's Trainer knows our optimizers by name
from .opening import open_model  # noqa: E402
from .registry import get_model, join_gluonnlp, list_models, register_model  # noqa: E402

__version__ = '0.2.0.dev0'
__all__ = ['get_model', 'list_models', 'open_model', 'pipeline', 'register_model']

join_gluonnlp()
moved.keep_old_paths()

if TYPE_CHECKING:
    from .inference import pipeline


def __getattr__(name):
    """`pipeline`, which loads what only the use of models needs."""
    if name != 'pipeline':
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    from .inference import pipeline

    return pipeline
