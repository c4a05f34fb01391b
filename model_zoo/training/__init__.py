"""The training loop: objectives, checkpoints, callbacks, interruption, workers."""

from .callbacks import (
    Callback,
    MLflowLogger,
    Profiler,
    ProgressLogger,
    TensorBoardWriter,
    WandbLogger,
)
from .checkpoint import Checkpoint, CheckpointStore, TrainingState, check_same_config, seed_all
from .loop import DivergedError, Interrupted, InterruptGuard, StopRequested, TrainingLoop
from .objective import Objective, mean_over_examples, predict
from .plan import Checkpoints, Evaluation, Plan
from .updater import HostTrainer, LossScale, Updater
from .workers import BACKENDS, HorovodWorkers, Workers, make_workers

__all__ = [
    'BACKENDS',
    'Callback',
    'Checkpoint',
    'CheckpointStore',
    'Checkpoints',
    'DivergedError',
    'Evaluation',
    'HorovodWorkers',
    'HostTrainer',
    'InterruptGuard',
    'Interrupted',
    'LossScale',
    'Objective',
    'Plan',
    'Profiler',
    'ProgressLogger',
    'StopRequested',
    'TensorBoardWriter',
    'WandbLogger',
    'MLflowLogger',
    'TrainingLoop',
    'TrainingState',
    'Updater',
    'Workers',
    'check_same_config',
    'make_workers',
    'mean_over_examples',
    'predict',
    'seed_all',
]
