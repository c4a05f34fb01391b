"""Optimizers and learning-rate schedules of BERT and GPT.

Importing this package registers ``'bertadam'``, ``'lamb'`` and ``'openaiadam'`` with MXNet, so that
``gluon.Trainer(params, 'bertadam', {...})`` finds them.
"""

from .adam import LAMB, NO_DECAY, BERTAdam, OpenAIAdam, disable_weight_decay
from .host import clip_grad_global_norm, grad_global_norm
from .schedules import (
    SCHEDULES,
    ConstantLR,
    WarmupConstantSchedule,
    WarmupCosineSchedule,
    WarmupCosineWithHardRestartsSchedule,
    WarmupCosineWithWarmupRestartsSchedule,
    WarmupLinearSchedule,
    finetune_schedule,
    get_schedule,
)

__all__ = [
    'BERTAdam',
    'LAMB',
    'OpenAIAdam',
    'SCHEDULES',
    'ConstantLR',
    'WarmupConstantSchedule',
    'WarmupCosineSchedule',
    'WarmupCosineWithHardRestartsSchedule',
    'WarmupCosineWithWarmupRestartsSchedule',
    'WarmupLinearSchedule',
    'finetune_schedule',
    'get_schedule',
    'NO_DECAY',
    'disable_weight_decay',
    'clip_grad_global_norm',
    'grad_global_norm',
]
