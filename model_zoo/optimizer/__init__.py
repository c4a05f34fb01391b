"""Optimizers and learning-rate schedules of BERT and GPT.

Importing this package registers ``'bertadam'``, ``'lamb'`` and ``'openaiadam'`` with MXNet, so that
``gluon.Trainer(params, 'bertadam', {...})`` finds them.
"""

from . import adam, host, schedules
from .adam import *
from .host import *
from .schedules import *

__all__ = [*adam.__all__, *host.__all__, *schedules.__all__]
