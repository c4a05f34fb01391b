"""What the commands share: flags, the choice of a model, run folders, results."""

from .arguments import (
    add_fields,
    add_settings,
    check_at_least_one,
    check_files,
    check_length,
    check_training_arguments,
    find_contexts,
)
from .engines import check_engine_arguments, engine_forward, load_exported
from .job import (
    BATCH_SIZES,
    TOTALS,
    UPDATE_NUMBERS,
    PartialOutput,
    data_checksum,
    describe,
    describe_model,
    describe_vocab,
    job_of,
)
from .model_choice import ModelChoice, family_of
from .originals import add_originals, convert_originals, load_script, original_main, parse_settings
from .report import Curves, plot_curves, write_eval_results, write_results
from .run import Outcome, Run, Training, make_updater
from .run_folder import RunFolder, upload_files, working_file
from .task_run import Evaluator, TaskRun, make_task_model, run_task

__all__ = [
    'BATCH_SIZES',
    'TOTALS',
    'UPDATE_NUMBERS',
    'Curves',
    'Evaluator',
    'ModelChoice',
    'Outcome',
    'PartialOutput',
    'Run',
    'RunFolder',
    'Training',
    'add_fields',
    'add_originals',
    'check_at_least_one',
    'check_engine_arguments',
    'check_files',
    'check_length',
    'check_training_arguments',
    'convert_originals',
    'data_checksum',
    'describe',
    'describe_model',
    'describe_vocab',
    'engine_forward',
    'family_of',
    'find_contexts',
    'job_of',
    'load_exported',
    'load_script',
    'TaskRun',
    'make_task_model',
    'make_updater',
    'original_main',
    'plot_curves',
    'run_task',
    'add_settings',
    'parse_settings',
    'upload_files',
    'working_file',
    'write_eval_results',
    'write_results',
]
