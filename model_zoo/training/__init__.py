"""What trains: flags, the loop, checkpoints, logs and curves; shared by all training scripts."""

from .arguments import (
    add_comm_backend_argument,
    add_inference_arguments,
    add_original_arguments,
    add_training_arguments,
    check_at_least_one,
    check_files,
    check_inference_arguments,
    check_length,
    check_rates,
    check_training_arguments,
    data_checksum,
    divide_train_batch_size,
    model_checksum,
    segment_files,
    training_config,
)
from .callbacks import ProgressLogger, TensorBoardWriter
from .checkpoint import Checkpoint, CheckpointStore, check_same_config
from .choice import ModelChoice, family_of, is_model_folder, parse_hparams
from .evaluate import (
    ChoiceEvaluator,
    ClassifierEvaluator,
    evaluate_segments,
    write_class_probabilities,
    write_predictions,
)
from .exported import load_exported
from .finetune import make_trainer, run_inference, run_training, start_run
from .host_trainer import HostTrainer
from .interrupt import Interrupted, InterruptGuard, StopRequested
from .labels import check_labels, labels_of_folder, name_labels
from .loop import Callback, DivergedError, TrainingLoop, TrainingState
from .loss_scale import LossScale
from .memory import CarriedMemory
from .objective import Objective, mean_over_examples
from .partial import PartialOutput
from .perplexity import evaluate_perplexity, measure_perplexity
from .plot import plot_curves
from .predict import predict
from .profiler import Profiler
from .report import library_versions, write_results
from .seed import seed_all
from .workers import BACKENDS, HorovodWorkers, Workers, make_workers

__all__ = [
    'BACKENDS',
    'Callback',
    'CarriedMemory',
    'Checkpoint',
    'CheckpointStore',
    'ChoiceEvaluator',
    'ClassifierEvaluator',
    'DivergedError',
    'HorovodWorkers',
    'HostTrainer',
    'InterruptGuard',
    'Interrupted',
    'LossScale',
    'ModelChoice',
    'Objective',
    'PartialOutput',
    'Profiler',
    'ProgressLogger',
    'StopRequested',
    'TensorBoardWriter',
    'TrainingLoop',
    'TrainingState',
    'Workers',
    'add_comm_backend_argument',
    'add_inference_arguments',
    'add_original_arguments',
    'add_training_arguments',
    'check_at_least_one',
    'check_files',
    'check_inference_arguments',
    'check_length',
    'check_labels',
    'check_rates',
    'check_same_config',
    'check_training_arguments',
    'data_checksum',
    'divide_train_batch_size',
    'evaluate_perplexity',
    'evaluate_segments',
    'family_of',
    'library_versions',
    'is_model_folder',
    'labels_of_folder',
    'load_exported',
    'make_trainer',
    'make_workers',
    'mean_over_examples',
    'measure_perplexity',
    'model_checksum',
    'name_labels',
    'parse_hparams',
    'plot_curves',
    'predict',
    'run_inference',
    'run_training',
    'seed_all',
    'segment_files',
    'start_run',
    'training_config',
    'write_class_probabilities',
    'write_predictions',
    'write_results',
]
