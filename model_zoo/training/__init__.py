"""The training loop: objectives, checkpoints, callbacks, interruption, workers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .callbacks import (
        Callback,
        MLflowLogger,
        Profiler,
        ProgressLogger,
        TensorBoardWriter,
        WandbLogger,
    )
    from .checkpoint import (
        Checkpoint,
        CheckpointStore,
        TrainingState,
        check_same_config,
        optimizer_tensors,
        seed_all,
    )
    from .job import Job
    from .loop import DivergedError, Interrupted, InterruptGuard, StopRequested, TrainingLoop
    from .objective import Objective, mean_over_examples, outputs_of, predict
    from .updater import HostTrainer, LossScale, Updater
    from .workers import BACKENDS, BUCKET_BYTES, HorovodWorkers, Workers, make_workers

__all__ = [
    'BACKENDS',
    'BUCKET_BYTES',
    'Callback',
    'Checkpoint',
    'CheckpointStore',
    'DivergedError',
    'HorovodWorkers',
    'HostTrainer',
    'InterruptGuard',
    'Interrupted',
    'Job',
    'LossScale',
    'MLflowLogger',
    'Objective',
    'Profiler',
    'ProgressLogger',
    'StopRequested',
    'TensorBoardWriter',
    'TrainingLoop',
    'TrainingState',
    'Updater',
    'WandbLogger',
    'Workers',
    'check_same_config',
    'make_workers',
    'mean_over_examples',
    'optimizer_tensors',
    'outputs_of',
    'predict',
    'seed_all',
]


def __getattr__(name):
    """Load the public names, which need MXNet, only when one of them is used."""
    if name in __all__:
        from . import callbacks, checkpoint, job, loop, objective, updater, workers

        for module in (callbacks, checkpoint, job, loop, objective, updater, workers):
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
