"""Graphs for other runtimes: of operators that these know, the batch first.

MXNet's interleaved attention wants the sequence's axis first and one weight for query, key and
value. Other runtimes recognize an attention, and compute it as one operator, where its three
products stand apart and the batch comes first, as in PyTorch's exports.
"""

import contextlib
import threading

__all__ = ['standard_operators', 'uses_standard_operators']

_state = threading.local()


@contextlib.contextmanager
def standard_operators():
    """Let this thread's blocks trace symbols with standard operators."""
    before = uses_standard_operators()
    _state.active = True
    try:
        yield
    finally:
        _state.active = before


def uses_standard_operators():
    """Whether `standard_operators` is active in this thread."""
    return getattr(_state, 'active', False)
