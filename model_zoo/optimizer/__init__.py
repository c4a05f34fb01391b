"""Optimizers and learning-rate schedules of BERT and GPT.

Importing this package registers ``'bertadam'``, ``'lamb'`` and ``'openaiadam'`` with MXNet, so that
``gluon.Trainer(params, 'bertadam', {...})`` finds them.
"""

from .bert_adam import BERTAdam
from .gradients import clip_grad_global_norm, grad_global_norm
from .lamb import LAMB
from .openai_adam import OpenAIAdam
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
from .weight_decay import NO_DECAY, disable_weight_decay

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
