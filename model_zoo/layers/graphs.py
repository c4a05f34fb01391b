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


@contextlib.contextmanager
def with_attributes(objects, **values):
    """Within the context these objects have other values of attributes."""
    before = [(each, name, getattr(each, name)) for each in objects for name in values]
    try:
        for each, name, _ in before:
            setattr(each, name, values[name])
        yield
    finally:
        for change in before:
            setattr(*change)


class Switch(threading.local):
    """A switch of each thread; it is off at first."""

    is_on = False

    def turned(self, is_on):
        """Turn the switch on or off inside a ``with``."""
        return with_attributes([self], is_on=is_on)


_standard = Switch()


def standard_operators():
    """Make this thread's blocks trace symbols with standard operators."""
    return _standard.turned(True)


def uses_standard_operators():
    """Return whether `standard_operators` is active in this thread."""
    return _standard.is_on
