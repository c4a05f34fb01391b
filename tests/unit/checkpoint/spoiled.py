"""Files that were cut off or spoiled, and the memory that reading one takes."""

import contextlib
import tracemalloc

import numpy as np

from model_zoo.errors import CheckpointError

__all__ = ['damaged', 'peak_of']


def damaged(content, count, cut):
    """`content`, cut off or with up to four other bytes, as often as `count` says."""
    random = np.random.RandomState(0)
    for place in random.randint(0, len(content), count):
        spoiled = bytearray(content[:place] if cut else content)
        for _ in range(0 if cut else random.randint(1, 4)):
            spoiled[random.randint(len(content))] = random.randint(256)
        yield bytes(spoiled)


def peak_of(read, *arguments):
    """The most memory that reading took, in bytes; an error is fine."""
    tracemalloc.start()
    with contextlib.suppress(CheckpointError):
        read(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak
