"""A zoo of transformers as MXNet Gluon HybridBlocks: the parts that all families share.

Importing it takes no time. MXNet is loaded when it is first needed or imported; then Gluon's
Trainer knows our optimizers by name, and ``gluonnlp.model.get_model`` our models. `mxnet_import`
says how.
"""

import importlib.util
from typing import TYPE_CHECKING

from . import mxnet_import

__version__ = '1.0.0.dev0'
if TYPE_CHECKING:
    from .app.estimator import TextClassifier as TextClassifier
    from .app.finetune import finetune as finetune
    from .inference import pipeline as pipeline
    from .opening import open_model as open_model
    from .zoo import get_model as get_model
    from .zoo import list_models as list_models
    from .zoo import register_model as register_model

#: public name -> the module that has it
_PLACES = {
    'TextClassifier': 'app.estimator',
    'finetune': 'app.finetune',
    'get_model': 'zoo',
    'list_models': 'zoo',
    'open_model': 'opening',
    'pipeline': 'inference',
    'register_model': 'zoo',
}
__all__ = sorted(_PLACES)


def __getattr__(name):
    if name in _PLACES:
        value = getattr(importlib.import_module(f'.{_PLACES[name]}', __name__), name)
    elif importlib.util.find_spec(f'.{name}', __name__) is not None:
        value = importlib.import_module(f'.{name}', __name__)
    else:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    globals()[name] = value
    return value


mxnet_import.begin()
