"""The job of a run: all that must be the same when it is resumed."""

import dataclasses
import itertools
import zlib

import numpy as np

from .plan import Checkpoints
from .settings import BatchTokensSettings, Settings, TrainingSettings


def on_resume(args, *kinds):
    """Names of settings of some kinds of ``on_resume``; see `setting`."""
    return (type(args) if isinstance(args, Settings) else _OriginalSettings).on_resume(*kinds)


@dataclasses.dataclass
class _OriginalSettings(BatchTokensSettings, TrainingSettings):
    """The settings among the flags of Pytorchic BERT's scripts."""


def job_of(args, free=(), **described):
    """The job of a run, for training checkpoints; without the flags that are `free`."""
    left_out = {*on_resume(args, 'free', 'run'), *free}
    flags = {name: value for name, value in vars(args).items() if name not in left_out}
    if flags.get('batch_tokens') is not None:
        flags['batch_size'] = None  # nothing depends on it
    return {**flags, **described}


def checkpoints_of(args, store, job, num_devices, draws_updates):
    """The `Checkpoints` of a run's flags.

    `draws_updates` says that the loader draws the samples of an update for all devices together.
    """
    return Checkpoints(
        store,
        None if store is None else args.ckpt_interval,
        {**job, 'gpus': num_devices},
        on_resume(args, 'size'),
        (*on_resume(args, 'number'), 'gpus') if draws_updates else (),
        on_resume(args, 'total'),
        {
            **(args.defaults() if isinstance(args, Settings) else {}),
            'gpus': 1,
            'class_names': job.get('class_names'),
        },
        type(args).aliases() if isinstance(args, Settings) else {},
    )


def data_checksum(values):
    """A checksum by which another run recognizes the same data."""
    checksum = 0
    for value in values:
        content = value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
        checksum = zlib.crc32(content, checksum)
    return f'{checksum:08x}'


def describe(count, unit, values):
    """Data in a job: their number, unit and `data_checksum`."""
    return f'{count} {unit} with checksum {data_checksum(values)}'


def describe_vocab(vocab):
    """A vocabulary in a job, independent of its file."""
    return describe(len(vocab), 'tokens', vocab.idx_to_token)


def describe_model(model):
    """A block that the run doesn't change, in a job: its configuration and parameters."""
    parameters = model.collect_params().values()
    values = (parameter.data(parameter.list_ctx()[0]).asnumpy() for parameter in parameters)
    checksum = data_checksum(itertools.chain([model.config.to_dict()], values))
    return f'parameters with checksum {checksum}'
