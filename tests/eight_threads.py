"""The same work in eight threads at once."""

import multiprocessing.pool
import threading

THREADS = 8
TIMEOUT = 120  # a deadlock fails the test
#: the same ones for all tests: MXNet keeps 5 MB for good for each thread that computes
POOL = multiprocessing.pool.ThreadPool(THREADS)


def together(results):
    """``results(number)`` of eight threads, in order of their numbers."""
    start = threading.Barrier(THREADS)

    def work(number):
        start.wait(TIMEOUT)
        return results(number)

    return POOL.map_async(work, range(THREADS), 1).get(TIMEOUT)
