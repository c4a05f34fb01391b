"""The job of a run: all that must be the same when it is resumed."""

import itertools
import zlib

import numpy as np

#: flags that are the size of a worker's batch, of which one is given
BATCH_SIZES = ('batch_size', 'batch_tokens')
#: flags by which an update has several batches
UPDATE_NUMBERS = ('accumulate', 'gpus')
#: flags of the number of updates, which may be another when a training is resumed
TOTALS = ('epochs', 'training_steps', 'num_steps')

# What may differ when a run is resumed: where things are, and what is shown of them.
NOT_OF_THE_JOB = {
    'calib_mode',
    'ckpt_interval',
    'comm_backend',
    'deploy',
    'dev_batch_size',
    'encoding',
    'engine',
    'gpu',
    'gpus',
    'keep_checkpoints',
    'log_interval',
    'mirror',
    'model_prefix',
    'no_resume_state',
    'num_calib_batches',
    'only_calibration',
    'only_inference',
    'optimize_on_cpu',
    'output_dir',
    'overwrite_output_dir',
    'precision',
    'quantized_dtype',
    'resume',
    'save_last',
    'tensorboard',
}


def job_of(args, free=(), **described):
    """The job of a run, for training checkpoints and the records of other long runs."""
    left_out = {*NOT_OF_THE_JOB, *free}
    flags = {name: value for name, value in vars(args).items() if name not in left_out}
    if flags.get('batch_tokens') is not None:
        flags['batch_size'] = None  # nothing depends on it
    return {**flags, **described}


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
