"""The job of a run: all that must be the same when it is resumed, and its finished part."""

import contextlib
import itertools
import logging
import os
import zlib

import numpy as np

from ..errors import CheckpointError, InputError
from ..training.checkpoint import check_same_config
from ..training.loop import Interrupted, StopRequested
from ..util.files import lock_file, put_in_place, remove_leftovers, writable_target, write_json
from ..util.reading import read_json

logger = logging.getLogger(__name__)


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


_JOB, _RECORDS, _ENDS, _LOCK = 'job.json', 'records', 'ends', 'lock'


class PartialOutput:
    """Records of finished work, in the folder ``OUTPUT.part`` until the output is complete.

    Use it in a ``with`` statement, unless it `is_complete` already. `StopRequested` within it
    becomes `Interrupted`. However the run ends, each record is there whole or not at all. A folder
    without a record is removed. InputError if the output or the folder can't be used, or has
    records of another job; CheckpointError if the folder is damaged.

    Parameters
    ----------
    job : dict
        Flag without its dashes -> value, plain JSON: what must be the same for a run to go on
        (`job_of`).
    resume : bool
        Go on with what an earlier run has left; without it, that is refused.
    results : str, optional
        JSON file that has the job under the key ``job`` if the output is complete; default: the
        output.
    """

    def __init__(self, path, job, resume=False, results=None):
        self.path = self.target(path)
        self.folder = f'{self.path}.part'
        self._job, self._resume = job, resume
        self._results = results or self.path
        self._ends = [0]

    @staticmethod
    def target(path):
        """The file to write for a path; for a link, its target."""
        target = writable_target(path)
        if target is None:
            raise InputError(
                f'cannot write {path!r}: it is not a regular file; give the name of a file, beside '
                'which what is finished can be kept'
            )
        return target

    def is_complete(self):
        """Whether the run to resume has done this job to its end; logs that."""
        if not self._resume or os.path.exists(self.folder) or not os.path.isfile(self.path):
            return False
        try:
            finished = read_json(self._results, shape={'job': dict})
        except InputError:
            return False
        check_same_config(finished['job'], self._job)
        logger.info('%s is already complete', self.path)
        return True

    @property
    def count(self):
        return len(self._ends) - 1

    def __enter__(self):
        with self._reporting(), contextlib.ExitStack() as stack:
            if not os.path.isdir(self.folder):
                os.mkdir(self.folder)
            message = f'another run is writing {self.path!r}: wait for it'
            stack.callback(lock_file(self._file(_LOCK), message).release)
            self._begin()
            self._records, self._index = (
                stack.enter_context(open(self._file(name), 'ab')) for name in (_RECORDS, _ENDS)
            )
            self._records.truncate(self._ends[-1])
            self._index.truncate(8 * self.count)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, error_class, *error):
        with contextlib.suppress(OSError):  # of a full disk, which append has told of
            self._stack.close()
        if not self.count:
            self.remove()
        if error_class is StopRequested:
            if not self.count:
                raise Interrupted('nothing was finished yet') from None
            raise Interrupted(
                f'what is finished is in {self.folder}; the same command with --resume continues'
            ) from None

    def _file(self, name):
        return os.path.join(self.folder, name)

    @contextlib.contextmanager
    def _reporting(self):
        try:
            yield
        except OSError as error:
            kept = ''
            if self.count:
                kept = f'; what is finished stays in {self.folder}, and --resume continues from it'
            raise InputError(
                f'cannot write {self.path!r}: {error.strerror or error}{kept}'
            ) from error

    def _begin(self):
        if self._resume:
            self._take_back()
        ends = self._read_ends()
        if ends and not self._resume:
            raise InputError(
                f'{self.folder!r} has the results of an interrupted run: add --resume to continue '
                'it, or remove that folder to start again'
            )
        saved = self._read_job() if self._resume else None
        if saved is not None:
            check_same_config(saved, self._job, f'remove {self.folder!r} to start again')
            self._ends += ends
            logger.info('resuming from %s', self.folder)
            return
        if self._resume:
            logger.warning('nothing to resume in %s: starting from the beginning', self.folder)
        for name in (_RECORDS, _ENDS):  # before the job that they will seem to be of
            with contextlib.suppress(FileNotFoundError):
                os.remove(self._file(name))
        write_json(self._file(_JOB), self._job)

    def _take_back(self):
        """Undo a `publish` if the run ended before its `remove`."""
        if os.path.exists(self._file(_RECORDS)) or not os.path.isfile(self.path):
            return
        with contextlib.suppress(FileNotFoundError):
            ends = np.fromfile(self._file(_ENDS), '<i8')
            if len(ends) and ends[-1] == os.path.getsize(self.path):
                os.replace(self.path, self._file(_RECORDS))

    def _read_job(self):
        if not os.path.exists(self._file(_JOB)):
            return None
        try:
            return read_json(self._file(_JOB), shape=dict)
        except InputError as error:
            raise CheckpointError(
                f'{self.folder!r} is damaged: remove it to start again ({error})'
            ) from error

    def _read_ends(self):
        """Ends of the records that are whole."""
        try:
            ends = np.fromfile(self._file(_ENDS), '<i8')
            size = os.path.getsize(self._file(_RECORDS))
        except FileNotFoundError:
            return []
        broken = (ends > size) | (np.diff(ends, prepend=0) <= 0)
        return ends[: np.argmax(broken)].tolist() if broken.any() else ends.tolist()

    def append(self, record):
        """Add a record."""
        end = self._ends[-1] + len(record)
        with self._reporting():
            self._records.write(record)
            self._records.flush()
            self._index.write(np.int64(end).astype('<i8').tobytes())
            self._index.flush()
        self._ends.append(end)

    @property
    def sizes(self):
        """Sizes of the records in bytes: numpy.ndarray, (count,), int64."""
        return np.diff(np.array(self._ends, np.int64))

    def __iter__(self):
        with open(self._file(_RECORDS), 'rb') as file:
            for size in self.sizes.tolist():
                yield file.read(size)

    def publish(self):
        """Join the records as the output; call `remove` next."""
        with self._reporting():
            os.fsync(self._records.fileno())
        put_in_place({self._file(_RECORDS): self.path})

    def remove(self):
        """Remove the folder, unless it has files of others: the output is complete."""
        with contextlib.suppress(OSError):
            remove_leftovers(self.folder)
            for name in (_RECORDS, _ENDS, _JOB, _LOCK):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(self._file(name))
            os.rmdir(self.folder)
