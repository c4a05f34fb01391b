"""A zoo of transformers as MXNet Gluon HybridBlocks: the parts that all families share.

Importing it takes no time. MXNet is loaded when it is first needed or imported; then Gluon's
Trainer knows our optimizers by name, and ``gluonnlp.model.get_model`` our models. `mxnet_import`
says how.
"""

import importlib.util
from typing import TYPE_CHECKING

from . import mxnet_import
from .families import names_later

__version__ = '1.0.0.dev0'
if TYPE_CHECKING:
    from .app.estimator import TextClassifier as TextClassifier
    from .app.finetune import finetune as finetune
    from .inference import pipeline as pipeline
    from .opening import open_model as open_model
    from .zoo import get_model as get_model
    from .zoo import list_models as list_models
    from .zoo import register_model as register_model

_PLACES = {
    '.app.estimator': 'TextClassifier',
    '.app.finetune': 'finetune',
    '.inference': 'pipeline',
    '.opening': 'open_model',
    '.zoo': 'get_model list_models register_model',
}
_find, __all__ = names_later(__name__, _PLACES)


def __getattr__(name):
    if name not in __all__ and importlib.util.find_spec(f'.{name}', __name__) is not None:
        return importlib.import_module(f'.{name}', __name__)
    globals()[name] = value = _find(name)
    return value


mxnet_import.begin()
