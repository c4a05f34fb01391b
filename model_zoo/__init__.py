"""A zoo of transformers as MXNet Gluon HybridBlocks: the parts that all families share.

Importing it sets the environment's variables, and takes no time. MXNet is loaded, prepared by
`environment`, when it is first needed or imported; then Gluon's Trainer knows our optimizers by
name, and ``gluonnlp.model.get_model`` our models.
"""

import functools
import importlib.util
import sys
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

from . import environment, mxnet_import

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

if TYPE_CHECKING:
    from .app.estimator import TextClassifier
    from .app.finetune import finetune
    from .inference import pipeline
    from .opening import open_model
    from .zoo import get_model, list_models, register_model

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


def __getattr__(name):
    if name in _PLACES:
        value = getattr(importlib.import_module(f'.{_PLACES[name]}', __name__), name)
    elif importlib.util.find_spec(f'.{name}', __name__) is not None:
        value = importlib.import_module(f'.{name}', __name__)
    else:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    globals()[name] = value
    return value


class _Watch:
    """Prepares the import of MXNet, and afterwards loads what joins MXNet and GluonNLP.

    It waits until the outermost import of MXNet, GluonNLP or this package has ended, because their
    modules may need one another. Then it stops watching imports.
    """

    depth = 0

    def find_spec(self, name, path=None, target=None):
        if name not in ('mxnet', 'gluonnlp') and not name.startswith(f'{__name__}.'):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = functools.partial(self.run, spec.loader.exec_module)
        return spec

    def run(self, exec_module, module):
        self.depth += 1
        try:
            if module.__name__ == 'mxnet':
                with environment.prepared():
                    exec_module(module)
            else:
                exec_module(module)
        finally:
            self.depth -= 1
        if self.depth == 0 and 'mxnet' in sys.modules and self in sys.meta_path:
            sys.meta_path.remove(self)
            _join()


def _join():
    """Load the optimizers, and what `get_model` needs, which is GluonNLP's from now on, too."""
    for name in ('optimizer', 'opening', 'zoo'):
        importlib.import_module(f'.{name}', __name__)
    mxnet_import.mend_gluonnlp()


environment.set_variables()
if 'mxnet' in sys.modules:
    environment.prepare_late()
    _join()
else:
    sys.meta_path.insert(0, _Watch())
