"""Disks that are full, read-only, failing or gone, clocks that jump, and many processes at once.

What writes files is stopped in the middle: by an error of the system at a random file operation, by
a limit of a file's size, by a small disk, by a disk that becomes read-only, by a folder that is
removed. It must say so in one line, leave no part of a file, and leave what was there before or the
new files; what is half of both must be refused when it is read.
"""

import contextlib
import ctypes
import errno
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import originals
from files import digest
from target import REFUSED, RIGHT, Target, Unequal, judge
from writers import WRITERS, writer_of

import bert
from model_zoo.app.corpus import Corpus
from model_zoo.checkpoint import read_tensors
from model_zoo.errors import ZooError
from model_zoo.pretrained.archives import unpacked
from model_zoo.tasks.squad import encode_squad, read_squad

__all__ = ['targets']

EVENTS = ('os.rename', 'os.remove', 'os.mkdir', 'shutil.move')
CLONE_NEWNS = 0x20000  # of Linux
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT, errno.EACCES, errno.ESTALE)


class _Fault:
    """Something that happens at a file operation in a folder; an audit hook can't be removed."""

    def __init__(self):
        self.folder = self.act = None
        self.left = 0
        sys.addaudithook(self._watch)

    def _watch(self, event, arguments):
        if self.act is None or event not in ('open', *EVENTS):
            return
        path = arguments[0]
        if isinstance(path, (str, os.PathLike)) and os.fspath(path).startswith(self.folder):
            self.left -= 1
            if self.left == 0:
                act, self.act = self.act, None
                act(os.fspath(path))

    @contextlib.contextmanager
    def at(self, folder, number, act):
        self.folder, self.left, self.act = str(folder), number, act
        try:
            yield
        finally:
            self.act = None


# -- what happens to them -----------------------------------------------------------------------


def _fail(rng):
    code = rng.choice(ERRORS)

    def act(path):
        raise OSError(code, os.strerror(code), path)

    return act


@contextlib.contextmanager
def _small_files(size):
    """No file may become larger."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@contextlib.contextmanager
def _small_disk(folder, kilobytes):
    """`folder` is a disk of its own."""
    mount = ['mount', '-t', 'tmpfs', '-o', f'size={kilobytes}k', 'tmpfs', str(folder)]
    subprocess.run(mount, check=True)
    try:
        yield
    finally:
        subprocess.run(['umount', '-l', str(folder)], check=True)


def _read_only(folder):
    subprocess.run(['mount', '-o', 'remount,ro', str(folder)], check=True)


_fault = None  # of this process; an audit hook stays
_may_mount = False


def _set_up():
    """Once in a process: its hook, and mounts that end with it and that no other one sees."""
    global _fault, _may_mount
    if _fault is None:
        _fault = _Fault()
        _may_mount = ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0 and not subprocess.call(
            ['mount', '--make-rprivate', '/']
        )


def _prepare(name):
    def prepare(folder):
        _set_up()
        values, write, read = writer_of(name, folder)
        expected = []
        for number, value in enumerate(values):
            place = folder / f'whole{number}' / 'out'
            place.mkdir(parents=True, exist_ok=True)
            write(value, place)
            expected.append(digest(read(place)))
        sizes = [path.stat().st_size for path in place.rglob('*') if path.is_file()]
        return values, write, read, expected, sizes

    return prepare


def _disturb(shared, rng, folder):
    values, write, read, expected, sizes = shared
    out = folder / 'out'
    out.mkdir()
    kinds = ['error', 'error', 'size', 'gone', 'clock']
    kind = rng.choice([*kinds, 'disk', 'read-only'] if _may_mount else kinds)
    (folder / 'kind.txt').write_text(kind)
    number = rng.randrange(1, 16)
    with contextlib.ExitStack() as stack:
        if kind in ('disk', 'read-only'):
            total = sum(sizes) // 1024
            size = rng.randint(total + 4 * len(sizes) + 4, 2 * total + 4 * len(sizes) + 8)
            stack.enter_context(_small_disk(out, size if kind == 'disk' else 1 << 14))
        write(values[0], out)
        with contextlib.ExitStack() as trouble:
            if kind == 'error':
                trouble.enter_context(_fault.at(out, number, _fail(rng)))
            elif kind == 'size':
                trouble.enter_context(_small_files(rng.randrange(max(sizes) + 10)))
            elif kind == 'gone':
                trouble.enter_context(_fault.at(out, number, lambda path: shutil.rmtree(out)))
            elif kind == 'read-only':
                trouble.enter_context(_fault.at(out, number, lambda path: _remount(out)))
            elif kind == 'clock':
                trouble.enter_context(_wild_clock(rng, out))
            outcome, why = judge(lambda: (write(values[1], out), RIGHT)[1])
        if outcome not in (RIGHT, REFUSED):
            raise Unequal(f'{kind} at {number}: {why}')
        return _judge_left(out, read, expected, outcome, kind)


def _remount(out):
    with contextlib.suppress(subprocess.CalledProcessError):  # a file is open for writing
        _read_only(out)


def _judge_left(out, read, expected, outcome, kind):
    """What there is now is the old, the new, or refused."""
    if kind != 'read-only':  # nothing can be removed there
        left = [str(path) for path in out.rglob('*.part')]
        if left:
            raise Unequal(f'{kind} has left {left}')
    try:
        found = digest(read(out))
    except ZooError:
        if outcome == RIGHT and kind != 'gone':
            raise Unequal(f'{kind}: what it says it has written is refused') from None
        return REFUSED
    except OSError:
        if kind != 'gone' and outcome == RIGHT:
            raise
        return REFUSED
    if found not in expected or (outcome == RIGHT and kind != 'gone' and found != expected[1]):
        raise Unequal(f'{kind}: it holds neither the old nor the new, or not what it says')
    return RIGHT if outcome == RIGHT else REFUSED


@contextlib.contextmanager
def _wild_clock(rng, folder):
    """Time jumps, to and fro, and files are of the future or of long ago."""
    original = time.time
    for path in folder.rglob('*'):
        moment = rng.choice([0, 1, 2**31, 4e9, original() + 1e6])
        os.utime(path, (moment, moment))
    time.time = lambda: original() + rng.choice([-1e9, -100.0, 0, 1e6, 3e9])
    try:
        yield
    finally:
        time.time = original


# -- many processes -----------------------------------------------------------------------------


def _squad_cache(folder):
    tokenizer = bert.BertTokenizer(str(folder / 'vocab.txt'))
    squad = read_squad(str(folder / 'squad.json'), True, True)
    return digest(encode_squad(squad, tokenizer, str(folder / 'cache')))


def _unpacked(folder):
    target = unpacked(str(folder / 'x.tar.gz'), str(folder / 'cache'))
    return digest(read_tensors(os.path.join(target, 'model.params'))[0])


def _vectors(folder):
    corpus = Corpus(str(folder / 'corpus.txt'))
    found = corpus.vectors(lambda texts: (np.full(4, len(each), 'f4') for each in texts), ['x'])
    return digest(np.array(found))


def _corpus_file(folder):
    (folder / 'corpus.txt').write_text('the cat\nsleeps\n' * 50)


CACHES = {'squad': (originals.squad, _squad_cache), 'archive': (originals.archives, _unpacked),
          'vectors': (_corpus_file, _vectors)}  # fmt: skip


def _use_cache(function, folder, answer):
    try:
        found = function(folder)
    except BaseException as error:  # it is told by the parent
        found = f'{type(error).__name__}: {error}'
    answer.write_text(found)


def _together(name):
    make, function = CACHES[name]

    def prepare(folder):
        shutil.rmtree(folder / 'cache', ignore_errors=True)
        make(folder)
        expected = function(folder)
        return folder, expected

    def attempt(shared, rng, folder):
        source, expected = shared
        for path in source.iterdir():
            if path.is_file() and path.suffix != '.npy':
                shutil.copy(path, folder)
        context = multiprocessing.get_context('fork')
        answers = [folder / f'answer{number}.txt' for number in range(8)]
        processes = [context.Process(target=_use_cache, args=(function, folder, answer))
                     for answer in answers]  # fmt: skip
        for process in processes:
            process.start()
        killed = rng.sample(processes[:4], rng.choice([0, 1, 2]))
        time.sleep(rng.random() * 0.05)
        for process in killed:
            process.kill()
        for process in processes:
            process.join()
        found = [each.read_text() for each in answers if each.exists()]
        found = list(filter(None, found))  # who was killed may have written nothing
        if any(each != expected for each in found) or len(found) < 8 - len(killed):
            raise Unequal(f'{len(found)} answers, {sorted(set(found))}')
        if function(folder) != expected:
            raise Unequal('afterwards it is another')
        return RIGHT

    return Target(f'systems/8 processes, {name}', prepare, attempt, seconds=60, memory=None,
                  batch=3)  # fmt: skip


def targets():
    made = [Target(f'systems/{name}', _prepare(name), _disturb, seconds=60, memory=None,
                   batch=10)
            for name in (*WRITERS, 'learn vocab')]  # fmt: skip
    return [*made, *map(_together, CACHES)]
