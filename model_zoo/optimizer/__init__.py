"""Optimizers and learning-rate schedules of BERT and GPT.

Importing this package registers ``'bertadam'``, ``'lamb'`` and ``'openaiadam'`` with MXNet, so that
``gluon.Trainer(params, 'bertadam', {...})`` finds them.
"""

from . import adam, host, schedules
from .adam import *  # noqa: F403
from .host import *  # noqa: F403
from .schedules import *  # noqa: F403

#: the names of the modules, which each declares in its own
__all__ = []
__all__ += adam.__all__
__all__ += host.__all__
__all__ += schedules.__all__
