"""A function that runs in several processes, ahead of the use of its results."""

import concurrent.futures
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from concurrent.futures.process import BrokenProcessPool

from ...errors import reporting

_function = None  # of a worker process


class Processes:
    """Worker processes that call one function; with a count of 0 a thread of this process does.

    The first call starts them, from a server process that has imported the modules once: this
    process may have threads, a GPU or a network in use by then, which don't survive a fork. They
    end with the ``with`` block, and with this process, whatever ends it.
    """

    def __init__(self, function, count):
        self._function = function
        self._count = count
        self._executor = None

    def submit(self, *arguments):
        """Call the function in a process, when one is free; return a future, for `result_of`."""
        if self._executor is None:
            self._executor = self._start()
        with _reporting_a_kill():
            return self._executor.submit(_call if self._count else self._function, *arguments)

    def _start(self):
        if not self._count:
            return concurrent.futures.ThreadPoolExecutor(1)
        has_server = 'forkserver' in multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context('forkserver' if has_server else 'spawn')
        if has_server:
            context.set_forkserver_preload([f'{__package__}.sources'])
        arguments = _set_up, (dict(os.environ), self._function)
        return concurrent.futures.ProcessPoolExecutor(self._count, context, *arguments)

    def map(self, arguments):
        """Yield the function's results for tuples of arguments, in their order."""
        futures = [self.submit(*call) for call in arguments]
        try:
            yield from map(result_of, futures)
        finally:
            for future in futures:
                future.cancel()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """End the processes after their current calls."""
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None


def result_of(future):
    """Wait for the result of a future."""
    with _reporting_a_kill():
        return future.result()


def _reporting_a_kill():
    problem = 'a worker process was killed, perhaps for want of memory: use fewer'
    return reporting(problem, errors=BrokenProcessPool)


def _set_up(environment, function):
    global _function
    os.environ.update(environment)  # the server's is as old as the server
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the first process's to handle
    os.environ['TOKENIZERS_PARALLELISM'] = 'false'  # there are processes enough
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent():
    multiprocessing.connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)


def _call(*arguments):
    return _function(*arguments)
