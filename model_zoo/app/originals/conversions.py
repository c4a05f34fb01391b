"""What the originals' flags come to in ours, where that is more than another name."""

import logging
import os

from ...errors import InputError
from ..arguments import check_at_least_one

__all__ = [
    'check_gpu_unwanted',
    'check_one_process',
    'choose_run',
    'count_epochs',
    'divide_train_batch_size',
    'go_on_with_output',
    'go_on_with_pretraining',
    'name_samples',
    'pad_to_max_len',
    'read_warmup_steps',
]


logger = logging.getLogger(__name__)


def divide_train_batch_size(args):
    """``--train_batch_size``, the examples of an update."""
    check_at_least_one(args, 'train_batch_size')
    if args.train_batch_size:
        parts = (args.accumulate or 1) * len((getattr(args, 'gpus', None) or '0').split(','))
        args.batch_size = args.train_batch_size // parts
        if not args.batch_size:
            raise InputError(
                f'--train_batch_size {args.train_batch_size} cannot be divided into '
                f'--gradient_accumulation_steps {parts}, or GPUs'
            )
        if args.train_batch_size % parts:
            logger.warning(
                '--train_batch_size %d is no multiple of --gradient_accumulation_steps %d, or '
                'GPUs: batches have %d examples, an update %d',
                args.train_batch_size, parts, args.batch_size, args.batch_size * parts,
            )  # fmt: skip


def count_epochs(args):
    """``--num_train_epochs``, which may be a fraction."""
    epochs = args.num_train_epochs
    if epochs is not None:
        if not 0 < epochs < float('inf'):
            raise InputError(f'--num_train_epochs {epochs:g}: give a number above 0')
        args.epochs = int(epochs) if epochs == int(epochs) else epochs


def check_one_process(args):
    """``--local_rank``, which torch's launcher gives to each of its processes."""
    if args.local_rank not in (None, -1):
        raise InputError(
            f'--local_rank {args.local_rank}: torch starts no processes here; horovodrun does, see '
            '--comm_backend'
        )


def check_gpu_unwanted(args):
    """``--no_cuda``."""
    if args.no_cuda and args.gpu is not None:
        raise InputError('--no_cuda and --gpu contradict one another: give one')


def choose_run(args):
    """``--do_train``, ``--do_eval`` and ``--do_predict``.

    The originals do what is asked for, and nothing by default. Ours train unless a flag says
    otherwise.
    """
    others = [getattr(args, name, None) for name in ('do_eval', 'do_predict', 'only_inference')]
    trains = args.do_train
    if trains is None:
        trains = not any(others)
    elif trains and args.only_inference:
        raise InputError('--do_train and --only_inference contradict one another: give one')
    if not trains and not any(others):
        raise InputError('nothing to do: give --do_train, --do_eval, --do_predict or several')
    if trains and any(others) and getattr(args, 'predict_file', '') is None and args.train_file:
        raise InputError('--do_predict: there is no --predict_file')
    args.only_inference = not trains


def pad_to_max_len(args):
    """``--pad``."""
    if args.pad:
        args.round_to = args.max_len


def go_on_with_output(args):
    """``--as_estimator``: what a TensorFlow Estimator makes of an output folder that is there."""
    if not args.as_estimator:
        return
    if not args.only_inference:
        has_training = _has_files(args.output_dir, 'checkpoints')
        args.resume |= has_training and not args.overwrite_output_dir
        return
    for trained in (args.output_dir, os.path.join(args.output_dir, 'best_model')):
        if os.path.isfile(os.path.join(trained, 'config.json')):
            args.bert_model = trained
            args.init_checkpoint = args.bert_config_file = args.vocab_file = None
            return


def go_on_with_pretraining(args):
    """``--as_estimator`` of the pre-training."""
    if not args.as_estimator:
        return
    if args.data:
        has_training = _has_files(args.ckpt_dir, 'checkpoints')
        args.resume |= has_training and not args.overwrite_output_dir
        return
    trained = os.path.join(args.ckpt_dir, 'model')
    if os.path.isdir(trained):
        args.model = trained
        args.init_checkpoint = args.bert_config_file = args.vocab_file = None


def _has_files(*path):
    folder = os.path.join(*path)
    return os.path.isdir(folder) and bool(os.listdir(folder))


def name_samples(args):
    """``--input_file`` with ``--do_train`` and ``--do_eval``, of the pre-training."""
    if args.input_file is None:
        return
    if not (args.do_train or args.do_eval):
        raise InputError('nothing to do: give --do_train, --do_eval or both')
    if args.do_train:
        args.data = args.data or args.input_file
    if args.do_eval:
        args.data_eval = args.data_eval or args.input_file


def read_warmup_steps(args):
    """``--num_warmup_steps``."""
    steps = args.num_warmup_steps
    if steps is None:
        return
    if not 0 <= steps < args.num_steps:
        raise InputError(
            f'--num_warmup_steps {steps}: give a number from 0 to below --num_train_steps '
            f'{args.num_steps}'
        )
    # the schedule rounds it down to whole updates again
    args.warmup_ratio = (steps + 0.5) / args.num_steps if steps else 0.0
