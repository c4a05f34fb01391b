"""A function that runs on a Ray cluster, ahead of the use of its results."""

from ..errors import InputError
from .executor import Executor
from .ray_cluster import join_cluster

__all__ = ['RayTasks']


class RayTasks(Executor):
    """Tasks of a Ray cluster that call one function.

    A task whose worker or machine is lost is done again elsewhere, and an error of the function is
    raised where its result is asked for. The machines of the cluster need this project, and see
    the same files.

    Parameters
    ----------
    function : callable
        Can be pickled, as can its arguments and results.
    address : str
        See `join_cluster`.
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
