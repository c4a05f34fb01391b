"""Optimizers and learning-rate schedules of BERT and GPT.

Importing this package registers ``'bertadam'``, ``'lamb'`` and ``'openaiadam'`` with MXNet, so that
``gluon.Trainer(params, 'bertadam', {...})`` finds them.
"""

from .adam import LAMB, NO_DECAY, BERTAdam, OpenAIAdam, disable_weight_decay
from .host import clip_grad_global_norm, grad_global_norm
from .schedules import (
    SCHEDULES,
    ConstantLR,
    Schedule,
    WarmupConstantSchedule,
    WarmupCosineSchedule,
    WarmupCosineWithHardRestartsSchedule,
    WarmupCosineWithWarmupRestartsSchedule,
    WarmupLinearSchedule,
    finetune_schedule,
    get_schedule,
)

__all__ = [
    'LAMB',
    'NO_DECAY',
    'SCHEDULES',
    'BERTAdam',
    'ConstantLR',
    'OpenAIAdam',
    'Schedule',
    'WarmupConstantSchedule',
    'WarmupCosineSchedule',
    'WarmupCosineWithHardRestartsSchedule',
    'WarmupCosineWithWarmupRestartsSchedule',
    'WarmupLinearSchedule',
    'clip_grad_global_norm',
    'disable_weight_decay',
    'finetune_schedule',
    'get_schedule',
    'grad_global_norm',
]
