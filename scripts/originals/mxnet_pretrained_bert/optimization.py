"""BERT's optimizer and the schedules, by the names of ``optimization.py``."""

from model_zoo.optimizer import (
    BertAdam,
    ConstantLR,
    WarmupConstantSchedule,
    WarmupCosineSchedule,
    WarmupCosineWithHardRestartsSchedule,
    WarmupCosineWithWarmupRestartsSchedule,
    WarmupLinearSchedule,
)

__all__ = [
    'BertAdam',
    'ConstantLR',
    'SCHEDULES',
    'WarmupConstantSchedule',
    'WarmupCosineSchedule',
    'WarmupCosineWithHardRestartsSchedule',
    'WarmupCosineWithWarmupRestartsSchedule',
    'WarmupLinearSchedule',
]

#: name of a schedule -> its class
SCHEDULES = {
    None: ConstantLR,
    'none': ConstantLR,
    'warmup_cosine': WarmupCosineSchedule,
    'warmup_constant': WarmupConstantSchedule,
    'warmup_linear': WarmupLinearSchedule,
}
