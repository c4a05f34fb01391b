"""What trains: the loop, checkpoints, logs and curves; shared by all training scripts."""

from .callbacks import ProgressLogger, TensorBoardWriter
from .checkpoint import Checkpoint, CheckpointStore, check_same_config
from .interrupt import Interrupted, InterruptGuard, StopRequested
from .loop import Callback, DivergedError, TrainingLoop, TrainingState
from .plot import plot_curves
from .predict import predict
from .report import library_versions, write_results
from .seed import seed_all

__all__ = [
    'Callback',
    'Checkpoint',
    'CheckpointStore',
    'DivergedError',
    'Interrupted',
    'InterruptGuard',
    'ProgressLogger',
    'StopRequested',
    'TensorBoardWriter',
    'TrainingLoop',
    'TrainingState',
    'check_same_config',
    'library_versions',
    'plot_curves',
    'predict',
    'seed_all',
    'write_results',
]
