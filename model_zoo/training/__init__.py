"""The training loop: objectives, checkpoints, callbacks, interruption, workers."""

from .callbacks import Callback, ProgressLogger, TensorBoardWriter
from .checkpoint import Checkpoint, CheckpointStore, check_same_config
from .host_trainer import HostTrainer
from .interrupt import Interrupted, InterruptGuard, StopRequested
from .loop import TrainingLoop
from .loss_scale import LossScale
from .objective import Objective, mean_over_examples
from .plan import Checkpoints, Evaluation, Plan
from .predict import predict
from .profiler import Profiler
from .seed import seed_all
from .state import TrainingState
from .update_log import DivergedError
from .updater import Updater
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
