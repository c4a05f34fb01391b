"""Long work in tasks: what calls a function elsewhere, and notes about what is finished."""

import abc
import collections
import contextlib
import hashlib
import json
import logging
import os
import secrets
import sys
from typing import Optional

from ..errors import InputError, MissingExtraError
from .files import remove_leftovers, write_json
from .reading import read_json
from .remote import exists, file_size, is_folder, is_url, join, names_in, remove_file

__all__ = ['Executor', 'FinishedTasks', 'RayTasks', 'join_cluster']

logger = logging.getLogger(__name__)

_FOLDER = '.done'


class Executor(abc.ABC):
    """Calls of one function, ahead of the use of their results. It is a context manager."""

    most_waiting = 1

    @abc.abstractmethod
    def submit(self, *arguments):
        """Have the function called, when there is room for it."""

    def map(self, arguments):
        """Call the function with each tuple of arguments; few results wait at a time."""
        waiting = collections.deque()
        try:
            for call in arguments:
                waiting.append(self.submit(*call))
                if len(waiting) > self.most_waiting:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for result in waiting:
                result.cancel()

    @abc.abstractmethod
    def close(self):
        """End what works for it."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


class RayTasks(Executor):
    """Tasks of a Ray cluster that call one function.

    A task whose worker or machine is lost is done again elsewhere, and an error of the function is
    raised where its result is asked for. The machines of the cluster need this project, and see
    the same files.
    """

    def __init__(self, function, address='auto'):
        ray, self._is_own = join_cluster(address)
        self._ray = ray
        self._function = ray.put(function)
        # -1: as often as it takes; each loss of a worker costs the task that it was at
        self._call = ray.remote(num_cpus=1, max_retries=-1)(_call)
        self.most_waiting = 2 * max(1, int(ray.cluster_resources().get('CPU', 1)))

    def submit(self, *arguments):
        return _Task(self._ray, self._call.remote(self._function, *arguments))

    def close(self):
        """Leave the cluster."""
        self._function = None
        if self._is_own:
            self._ray.shutdown()


class _Task:
    """A result that a worker makes."""

    def __init__(self, ray, reference):
        self._ray, self._reference = ray, reference

    def result(self):
        try:
            return self._ray.get(self._reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except self._ray.exceptions.RayError as error:
            line = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise InputError(f'a task on the Ray cluster failed: {line}') from error

    def cancel(self):
        self._ray.cancel(self._reference)


def _call(function, *arguments):
    return function(*arguments)


def join_cluster(address='local', store_bytes=None, shows_logs=False):
    """Use a Ray cluster, unless this process uses one already.

    Workers of a cluster of this machine alone run at the same priority as other processes. It
    listens at 127.0.0.1 alone, unless the process has imported Ray before, and serves who knows the
    user's token (``~/.ray/auth_token``, which is made for the user alone to read).
    """
    try:
        with _bound_to_loopback() if address == 'local' else contextlib.nullcontext():
            import ray
    except ImportError as error:
        raise MissingExtraError.of('ray', 'ray') from error
    if ray.is_initialized():
        return ray, False
    os.environ.setdefault('RAY_USAGE_STATS_ENABLED', '0')  # which Ray sends to its makers
    os.environ.setdefault('RAY_worker_niceness', '0')  # by default others go before its workers
    options = {'address': address, 'log_to_driver': shows_logs}
    options['logging_level'] = 'WARNING' if shows_logs else 'ERROR'
    if address == 'local':
        _make_token()
        options.update(include_dashboard=False, _node_ip_address='127.0.0.1')
        if store_bytes is not None:
            options['object_store_memory'] = store_bytes
    try:
        ray.init(**options)
    except Exception as error:  # ConnectionError, ValueError, RuntimeError or gRPC's
        lines = str(error).strip().splitlines() or [type(error).__name__]
        # a traceback of the server's, of which the last line has the cause
        cause = ' '.join(dict.fromkeys([lines[0], lines[-1]]))
        raise InputError(
            f'`ray` {address}: no Ray cluster can be reached ({cause}); start one, set '
            "RAY_AUTH_MODE=token if it asks for Ray's token, or give 'local' for a cluster of this "
            'machine alone'
        ) from error
    return ray, True


@contextlib.contextmanager
def _bound_to_loopback():
    """Where Ray is imported, its clusters of this machine have the address 127.0.0.1."""
    name = 'RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER'  # whether clusters of several machines are made
    if 'ray' in sys.modules or name in os.environ:
        yield
        return
    os.environ[name] = '0'
    try:
        yield
    finally:
        del os.environ[name]


def _make_token():
    """Make the token of the user's clusters: Ray would let other users of the machine read it."""
    if {'RAY_AUTH_TOKEN', 'RAY_AUTH_TOKEN_PATH'}.intersection(os.environ):
        return
    path = os.path.expanduser('~/.ray/auth_token')
    with contextlib.suppress(OSError):  # of which Ray tells
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if os.stat(path).st_mode & 0o077:
                os.chmod(path, 0o600)
        else:
            with os.fdopen(handle, 'w') as file:
                file.write(secrets.token_hex(32))


class FinishedTasks:
    """The finished tasks of a job, each of which writes one file of a folder, or none.

    Parameters
    ----------
    shape : type or dict
        Of the facts that are noted; see `parse_json`.
    """

    def __init__(self, folder, job, shape):
        self._folder = folder
        self._shape = {'job': str, 'size': Optional[int], 'facts': shape}
        self._job = hashlib.sha256(json.dumps(job, default=str).encode()).hexdigest()

    def _note(self, name):
        return join(self._folder, _FOLDER, f'{name}.json')

    def _size(self, name):
        path = join(self._folder, name)
        return file_size(path) if exists(path) else None

    @staticmethod
    def forget(folder):
        """Remove the notes of a folder, whose files are about to be written by another job."""
        notes = join(folder, _FOLDER)
        if os.path.islink(notes):
            raise InputError(f'{notes!r} is a link, whose files may be of others: remove it')
        for name in names_in(notes) if is_folder(notes) else ():
            if name.endswith('.json'):
                remove_file(join(notes, name))

    @staticmethod
    def tidy(folder, names):
        """Remove what killed workers have left in a folder beside these files and their notes."""
        if is_url(folder):  # they write to this machine first
            return
        remove_leftovers(folder, set(names))
        if is_folder(join(folder, _FOLDER)):
            remove_leftovers(join(folder, _FOLDER), {f'{name}.json' for name in names})

    def get(self, name):
        """What `put` has noted of a file; None if it isn't finished, or has another size since.

        A damaged note is as good as none.
        """
        if not exists(self._note(name)):
            return None
        try:
            note = read_json(self._note(name), 'the note', self._shape)
        except InputError as error:
            logger.warning('%s; %s is made again', error, name)
            return None
        if (note['job'], note.get('size')) != (self._job, self._size(name)):
            return None
        return note['facts']

    def put(self, name, facts):
        """Note that a file is finished."""
        if not is_url(self._folder):
            os.makedirs(join(self._folder, _FOLDER), exist_ok=True)
        write_json(self._note(name), {'job': self._job, 'size': self._size(name), 'facts': facts})
