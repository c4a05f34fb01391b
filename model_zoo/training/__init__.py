"""The training loop: objectives, checkpoints, callbacks, interruption, workers."""

from .callbacks import ProgressLogger, TensorBoardWriter
from .checkpoint import Checkpoint, CheckpointStore, check_same_config
from .host_trainer import HostTrainer
from .interrupt import Interrupted, InterruptGuard, StopRequested
from .loop import Callback, DivergedError, TrainingLoop, TrainingState
from .loss_scale import LossScale
from .objective import Objective, mean_over_examples
from .predict import predict
from .profiler import Profiler
from .seed import seed_all
from .workers import BACKENDS, HorovodWorkers, Workers, make_workers

__all__ = [
    'BACKENDS',
    'Callback',
    'Checkpoint',
    'CheckpointStore',
    'DivergedError',
    'HorovodWorkers',
    'HostTrainer',
    'InterruptGuard',
    'Interrupted',
    'LossScale',
    'Objective',
    'Profiler',
    'ProgressLogger',
    'StopRequested',
    'TensorBoardWriter',
    'TrainingLoop',
    'TrainingState',
    'Workers',
    'check_same_config',
    'make_workers',
    'mean_over_examples',
    'predict',
    'seed_all',
]
