"""Ray: a cluster of this machine or of several, and calls of a function on it."""

import contextlib
import os
import sys

from ..environment import set_meanwhile
from ..errors import InputError, MissingExtraError


class RayTasks:
    """Calls of one function on a Ray cluster, which repeats those whose worker is lost.

    The machines of the cluster need this project, and see the same files.
    """

    def __init__(self, function, address):
        self._ray, self._is_own = join_cluster(address)
        self._function = self._ray.put(function)
        # -1: without limit; each loss of a worker costs only the task that it was running
        self._call = self._ray.remote(num_cpus=1, max_retries=-1)(_call)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._is_own:
            self._ray.shutdown()

    def map(self, arguments):
        """Return the function's results for tuples of arguments, in their order."""
        references = [self._call.remote(self._function, *each) for each in arguments]
        try:
            for reference in references:
                yield self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            with contextlib.suppress(Exception):  # the other results aren't needed
                for reference in references:
                    self._ray.cancel(reference)
            if isinstance(error, self._ray.exceptions.RayTaskError):
                raise error.cause from None
            line = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise InputError(f'a task on the Ray cluster failed: {line}') from error


def _call(function, *arguments):
    return function(*arguments)


def join_cluster(address, shows_logs=False):
    """Use a Ray cluster, unless this process uses one already.

    Returns ``ray``, and whether this call has joined the cluster.

    A cluster of this machine alone ('local') listens at 127.0.0.1, unless the process has imported
    Ray before, and serves who knows the user's token (``~/.ray/auth_token``).
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
    options = {}
    if address == 'local':
        options = {'include_dashboard': False, '_node_ip_address': '127.0.0.1'}
        folder = os.path.expanduser('~/.ray')  # Ray lets others read the token that it writes there
        with contextlib.suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            os.chmod(folder, 0o700)
    try:
        ray.init(address, log_to_driver=shows_logs, logging_level='ERROR', **options)
    except Exception as error:  # ConnectionError, ValueError, RuntimeError or gRPC's
        # of a traceback of the server's, the last line has the cause
        cause = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        problem = f"{address}: no cluster can be reached ({cause}); 'local' is this machine alone"
        raise InputError(problem, field='ray') from error
    return ray, True


def _bound_to_loopback():
    """Set the address of this machine's clusters to 127.0.0.1 if Ray is imported inside."""
    name = 'RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER'  # whether clusters of several machines are made
    return set_meanwhile(name, None if 'ray' in sys.modules or name in os.environ else '0')
