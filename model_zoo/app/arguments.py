"""The flags that the training scripts have in common, and their checks."""

import dataclasses

from ..errors import InputError
from ..pretrained import local_path
from ..training.workers import BACKENDS
from ..util.remote import is_file, is_folder, is_url, join
from . import cli
from .devices import add_device_arguments, check_device_arguments
from .engines import add_engine_arguments, check_engine_arguments

__all__ = [
    'add_batch_tokens_argument',
    'add_comm_backend_argument',
    'add_inference_arguments',
    'add_training_arguments',
    'check_at_least_one',
    'check_batch_tokens',
    'check_files',
    'check_inference_arguments',
    'check_length',
    'check_rates',
    'check_training_arguments',
    'from_flags',
    'segment_files',
]

# flags of files that aren't read line by line
_COPIED = {'bert_config_file', 'model_file', 'sentencepiece', 'vocab'}


def add_training_arguments(parser, lengths_differ=True):
    """Add the flags of a training, with the defaults of GluonNLP's classifier script.

    A script changes a default by ``parser.set_defaults(lr=6.25e-5)`` after this.

    Parameters
    ----------
    parser : argparse.ArgumentParser
    lengths_differ : bool
        Whether examples are of different lengths, and so there is ``--batch_tokens``.
    """
    group = parser.add_argument_group('training')
    add = group.add_argument
    add('--gpu', type=int, nargs='?', const=0, help='number of the GPU, or 0; default: the CPU')
    add_device_arguments(group)
    add('--optimizer', default='bertadam')
    add('--epochs', type=cli.whole_number, default=3)
    add('--training_steps', type=int, help='number of updates; --epochs is ignored then')
    add('--batch_size', type=int, default=32)
    if lengths_differ:
        add_batch_tokens_argument(group)
    add('--dev_batch_size', type=int, default=8, help='for dev and test sets')
    add('--accumulate', type=int, help='number of batches per update')
    add('--lr', type=float, default=3e-5, help='highest learning rate')
    add('--epsilon', type=float, default=1e-6, help='of the optimizer')
    add('--wd', type=float, default=0.01, help='weight decay; none on biases and layer norms')
    add('--warmup_ratio', type=float, default=0.1, help='part of the updates with a growing rate')
    add('--as_bertadam', action='store_true', default=None, help="update as "
        "pytorch-pretrained-bert does: clip each parameter's gradient by itself, not all of them "
        'together, and let the warm-up end within an update')  # fmt: skip
    add('--seed', type=int, default=2)
    add('--early_stop', type=int, help='stop after this many epochs without a better score')

    add = parser.add_argument_group('output').add_argument
    add('--output_dir', default='./output_dir')
    add('--log_interval', type=int, default=10, help='in updates')
    add('--tensorboard', metavar='DIR', help="write TensorBoard's event files")
    add('--ckpt_interval', type=int, default=1000, help='save a checkpoint every so many updates; '
        'one is saved after each epoch anyhow')  # fmt: skip
    add('--keep_checkpoints', type=int, default=2, help='of how many last epochs to keep files, '
        'and how many of the newest checkpoints')  # fmt: skip
    add('--resume', action='store_true', help='go on from the newest checkpoint of --output_dir')
    add('--overwrite_output_dir', action='store_true', help='replace the training in --output_dir; '
        'else another one there is refused')  # fmt: skip


def add_batch_tokens_argument(group):
    """Add ``--batch_tokens``; `check_batch_tokens` checks it."""
    group.add_argument(
        '--batch_tokens',
        type=int,
        metavar='N',
        help='instead of --batch_size: batches of as many examples of like length as have N tokens '
        'together, padding counted',
    )


def check_batch_tokens(args):
    """Raise InputError, naming the flag, if ``--batch_tokens`` can't be used."""
    check_at_least_one(args, 'batch_tokens')
    if args.batch_tokens is not None and cli.is_given(args, 'batch_size'):
        raise InputError('--batch_tokens and --batch_size both say how large a batch is: give one')


def add_comm_backend_argument(parser):
    """Add ``--comm_backend``, for scripts that can train with Horovod."""
    parser.add_argument(
        '--comm_backend',
        choices=BACKENDS,
        help='horovod: train with the processes that horovodrun has started, --batch_size '
        'examples in each; device, the default: with one process',
    )
    parser.add_argument(
        '--allreduce_dtype',
        choices=['float16'],
        help='of --comm_backend horovod: send gradients in float16, half of the bytes, for slow '
        'networks',
    )


def check_training_arguments(args):
    """Raise InputError, naming the flag, if a value of `add_training_arguments` can't be used."""
    check_at_least_one(
        args,
        'epochs',
        'training_steps',
        'batch_size',
        'dev_batch_size',
        'accumulate',
        'early_stop',
        'log_interval',
        'ckpt_interval',
        'keep_checkpoints',
    )
    if hasattr(args, 'batch_tokens'):
        check_batch_tokens(args)
    check_device_arguments(args)
    check_rates(args)


def check_rates(args):
    """Raise InputError, naming the flag, if a rate of the optimizer or schedule can't be used."""
    for name in ('lr', 'epsilon', 'wd'):
        if not 0 <= getattr(args, name) < float('inf'):
            raise InputError(f'--{name} {getattr(args, name)}: give a number from 0 up')
    if not 0 <= args.warmup_ratio < 1:
        raise InputError(f'--warmup_ratio {args.warmup_ratio}: give a number from 0 to below 1')


def check_at_least_one(args, *names):
    """Raise InputError, naming the flag, if one of these was given as less than 1."""
    for name in names:
        value = getattr(args, name)
        if value is not None and value < 1:
            raise InputError(f'--{name} {value}: give 1 or more')


def from_flags(kind, args):
    """An object of a dataclass, from the flags with the names of its fields."""
    names = [field.name for field in dataclasses.fields(kind) if hasattr(args, field.name)]
    return kind(**{name: getattr(args, name) for name in names})


def check_length(args, name, model):
    """Raise InputError, naming the flag, if it asks for more tokens than a model takes."""
    length, longest = getattr(args, name), model.context_length
    if length > longest:
        raise InputError(f'--{name} {length}: the model takes {longest} tokens at most')


def check_files(args, *names):
    """Raise InputError, naming the flag, if one of these was given and isn't a file.

    A flag whose file a library opens gets the path of a copy, where it was a URL.
    """
    for name in names:
        path = getattr(args, name)
        if path is not None and name in _COPIED and is_url(path):
            path, _ = local_path(path)
            setattr(args, name, path)
        if path is not None and not is_file(path):
            problem = 'is a directory, not a file' if is_folder(path) else 'no such file'
            raise InputError(f'--{name} {path!r}: {problem}')


def add_inference_arguments(parser):
    """Add the flags of a run that doesn't train; call it after `add_training_arguments`."""
    add = parser.add_argument_group('inference').add_argument
    add('--only_inference', action='store_true', help='evaluate the dev set and predict the test')
    add('--deploy', action='store_true', help='--only_inference with an exported model')
    add('--model_prefix', help='--deploy reads PREFIX-symbol.json and PREFIX-0000.params')
    add_engine_arguments(parser)


def check_inference_arguments(args):
    """Raise InputError if flags of `add_inference_arguments` contradict each other."""
    needs = [
        ('deploy', 'only_inference', args.deploy and not args.only_inference),
        ('deploy', 'model_prefix', args.deploy and not args.model_prefix),
        ('model_prefix', 'deploy', args.model_prefix and not args.deploy),
    ]
    for flag, other, missing in needs:
        if missing:
            raise InputError(f'--{flag} needs --{other}')
    check_engine_arguments(args, args.only_inference)
    if args.resume and args.only_inference:
        raise InputError('--resume continues a training: give it or --only_inference, not both')


def segment_files(args, is_file=is_file, **names):
    """The files of a task's segments, named by ``--SEGMENT_file`` or found in ``--data_dir``.

    Parameters
    ----------
    args : argparse.Namespace
    is_file : callable
        Whether a path is of something that the task reads.
    **names
        Segment -> tuple of the names that its file may have in the folder.

    Returns
    -------
    dict
        Segment -> path, for the existing files.
    """
    files = {segment: getattr(args, f'{segment}_file') for segment in names}
    given = [segment for segment, path in files.items() if path and not is_file(path)]
    check_files(args, *(f'{segment}_file' for segment in given))
    if args.data_dir is not None:
        found = {}
        for segment, own in names.items():
            paths = (join(args.data_dir, name) for name in own)
            found[segment] = next(filter(is_file, paths), None)
        if not any(found.values()):
            expected = ', '.join(' or '.join(own) for own in names.values())
            raise InputError(f'--data_dir {args.data_dir!r} has none of {expected}')
        files = {segment: path or found[segment] for segment, path in files.items()}
    return {segment: path for segment, path in files.items() if path}
