"""What the audit tries, and what it calls good."""

import dataclasses
import os
import pathlib
import random
import re
import resource
import shutil
import traceback
from typing import Callable, Optional

from model_zoo.errors import PretrainedNotFoundError, ZooError

__all__ = ['CHANGED', 'FAILED', 'OUTCOMES', 'REFUSED', 'RIGHT', 'Target', 'Unequal']

#: equal to what it should be; refused in one line; read as other data, which the format can't
#: tell from its own; anything else
RIGHT, REFUSED, CHANGED, FAILED = OUTCOMES = 'right', 'refused', 'changed', 'failed'
LONGEST_MESSAGE = 6000
MUCH = 1 << 18  # kilobytes


class Unequal(AssertionError):
    """A result is not what it should be."""


@dataclasses.dataclass(frozen=True)
class Target:
    """A thing that is tried again and again.

    Parameters
    ----------
    name : str
        ``part/what``.
    prepare : callable
        ``prepare(folder) -> object`` makes what all attempts share; called once in each process.
    attempt : callable
        ``attempt(shared, random, folder) -> outcome``; what it leaves in the empty folder is kept
        if it fails. A ZooError means that it was refused, any other exception that it failed.
    again : callable, optional
        ``again(shared, folder) -> outcome`` repeats an attempt with what is in the folder.
    seconds : int
        Of the processor, for one attempt.
    memory : int or None
        Bytes that an attempt may take beyond what the process had.
    batch : int
        Attempts that a process makes in turn.
    """

    name: str
    prepare: Callable
    attempt: Callable
    again: Optional[Callable] = None
    seconds: int = 20
    memory: Optional[int] = 1 << 30
    batch: int = 25

    def random(self, seed):
        return random.Random(f'{self.name}:{seed}')

    def outcome(self, shared, seed, folder):
        """(outcome, why) of an attempt, whose limits hold until `unlimited`."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        os.chdir(folder)  # what is written to a relative path isn't left elsewhere
        self._limit()
        return judge(lambda: self.attempt(shared, self.random(seed), folder))

    def _limit(self):
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(used.ru_utime + used.ru_stime) + 1 + self.seconds
        _set_soft(resource.RLIMIT_CPU, seconds)
        if self.memory is not None:
            pages = int(pathlib.Path('/proc/self/statm').read_text().split()[0])
            _set_soft(resource.RLIMIT_AS, pages * resource.getpagesize() + self.memory)


def unlimited():
    """Lift the limits of the last attempt."""
    for kind in (resource.RLIMIT_CPU, resource.RLIMIT_AS):
        _set_soft(kind, resource.getrlimit(kind)[1])


def _set_soft(kind, value):
    resource.setrlimit(kind, (value, resource.getrlimit(kind)[1]))


def judge(call):
    """The outcome of a call, and what there is to say of it."""
    pathlib.Path('/proc/self/clear_refs').write_text('5')  # the peak begins anew
    before = _peak()
    try:
        return call(), ''
    except ZooError as error:
        message = str(error)
        # missing weights are told of in a few lines: what is missing and its cures
        lines = 8 if isinstance(error, PretrainedNotFoundError) else 1
        if message.count('\n') >= lines or len(message) > LONGEST_MESSAGE or not message:
            return FAILED, f'a message of {len(message)} characters: {message[:500]!r}'
        if _lacked_memory(error) and _peak() > before + MUCH:
            return FAILED, f'the memory was full: {message[:500]}'
        return REFUSED, message
    except BaseException as error:  # a panic of Rust is no Exception
        unlimited()
        text = ''.join(traceback.format_exception(type(error), error, error.__traceback__))
        return FAILED, text[-6000:]


def _peak():
    """The most kilobytes that this process has had."""
    return int(re.search(r'VmHWM:\s+(\d+)', pathlib.Path('/proc/self/status').read_text())[1])


def _lacked_memory(error):
    """Whether a refusal was made of a MemoryError, which others of the machine may get first."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error is not None
