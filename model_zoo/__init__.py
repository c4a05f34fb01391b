"""A zoo of transformers as MXNet Gluon HybridBlocks: the parts that all families share."""

from typing import TYPE_CHECKING

from . import environment

environment.prepare()

from . import optimizer  # noqa: E402, F401  Gluon's Trainer knows our optimizers by name
from .opening import open_model  # noqa: E402
from .zoo import get_model, join_gluonnlp, list_models, register_model  # noqa: E402

__version__ = '1.0.0.dev0'
__all__ = [
    'TextClassifier',
    'finetune',
    'get_model',
    'list_models',
    'open_model',
    'pipeline',
    'register_model',
]

join_gluonnlp()

if TYPE_CHECKING:
    from .app.finetune import finetune
    from .app.estimator import TextClassifier
    from .inference import pipeline


def __getattr__(name):
    """Import what only the use or the training of models needs."""
    if name == 'pipeline':
        from .inference import pipeline as value
    elif name == 'finetune':
        from .app.finetune import finetune as value
    elif name == 'TextClassifier':
        from .app.estimator import TextClassifier as value
    else:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    globals()[name] = value
    return value
