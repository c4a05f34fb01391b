"""Command lines that are wrong, and what their one line of complaint says."""

from .models import MODELS
from .texts import TEXTS
from .training import TRAINING

__all__ = ['BAD_INPUT']

#: name of a case -> BadInput
BAD_INPUT = {**TRAINING, **MODELS, **TEXTS}
