"""The tracing of graphs: by one thread at a time, and with other runtimes' operators."""

import contextlib
import threading

from mxnet.gluon import HybridBlock

__all__ = ['LOCK', 'LockedGraph', 'standard_operators', 'uses_standard_operators']

#: One lock for all blocks. While Gluon traces a block, its name scopes belong to one thread. And
#: two threads that pass graphs to MXNet's engine at once can deadlock: the operators of both write
#: to the same shared buffers in different order. MXNet computes after the lock is released.
LOCK = threading.RLock()


class LockedGraph(HybridBlock):
    """A HybridBlock whose graph is chosen, built and started by one thread at a time."""

    def _call_cached_op(self, *inputs):
        with LOCK:
            return super()._call_cached_op(*inputs)


class _State(threading.local):
    active = False


_state = _State()


@contextlib.contextmanager
def standard_operators():
    """Make this thread's blocks trace symbols with standard operators."""
    before = uses_standard_operators()
    _state.active = True
    try:
        yield
    finally:
        _state.active = before


def uses_standard_operators():
    """Return whether `standard_operators` is active in this thread."""
    return _state.active
