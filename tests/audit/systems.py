"""Disks that are full, read-only, failing or gone, clocks that jump, and many processes at once.

What writes files is stopped in the middle: by an error of the system at a random file operation, by
a limit of a file's size, by a small disk, by a disk that becomes read-only, by a folder that is
removed; or something else is in the place of its file: a device, a pipe, a link, a folder, a file
that nobody may write. It must say so in one line, leave no part of a file, and leave what was there
before or the new files; what is half of both must be refused when it is read. Where a run works for
a URL, below the folder for temporary files, another user has come first: nothing of theirs is used,
and nothing removed.
"""

import argparse
import contextlib
import ctypes
import errno
import multiprocessing
import os
import pathlib
import resource
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time

import hostile_s3
import local_s3
import numpy as np
import originals
import pytest
from files import digest
from local_hub import point_at, publish
from loopback import LoopbackServer, Resource
from target import REFUSED, RIGHT, Target, Unequal, judge
from writers import WRITERS, quiet, writer_of

import bert
from model_zoo.app.run_folder import RemoteFolder, RunFolder
from model_zoo.app.use import Corpus
from model_zoo.checkpoint import read_tensors
from model_zoo.errors import InputError, ZooError
from model_zoo.pretrained import download
from model_zoo.pretrained.find import copy_of, unpacked
from model_zoo.pretrained.hub import Repository
from model_zoo.tasks.squad import encode_squad, read_squad
from model_zoo.util import remote

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


# -- what is in the place of a file ------------------------------------------------------------


def _swap(kind, path, elsewhere):
    """Put something else in the place of a file that was written; returns what is to stay."""
    if kind == 'permissions':
        path.chmod(0o604)
        if os.geteuid() == 0:
            os.chown(path, 1234, 2345)
        return _facts(path)
    if kind == 'read-only':
        path.chmod(0o444)
        return _facts(path)
    target = elsewhere / path.name
    shutil.move(path, target)
    if kind == 'device':
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    elif kind == 'pipe':
        os.mkfifo(path)
    elif kind == 'socket':
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(os.path.relpath(path))
    elif kind == 'folder':
        path.mkdir()
        (path / 'mine').write_text('x')
    else:
        path.symlink_to(target)
        if kind == 'link to a folder':
            target.unlink()
            target.mkdir()
            (target / 'mine').write_text('x')
        elif kind == 'dangling link':
            target.unlink()
    return _facts(path)


def _facts(path):
    found = path.lstat()
    facts = [stat.S_IFMT(found.st_mode), found.st_uid, found.st_gid]
    if not path.is_symlink():
        return [*facts, stat.S_IMODE(found.st_mode), sorted(map(str, path.glob('*')))]
    return [*facts, os.readlink(path), sorted(map(str, path.glob('*')))]


TARGETS = ('permissions', 'read-only', 'device', 'pipe', 'socket', 'folder', 'link',
           'link to a folder', 'dangling link')  # fmt: skip


def _replace(shared, rng, folder):
    values, write, read, expected, _ = shared
    out, elsewhere = folder / 'out', folder / 'elsewhere'
    out.mkdir()
    elsewhere.mkdir()
    write(values[0], out)
    path = rng.choice(sorted(each for each in out.rglob('*') if each.is_file()))
    kind = rng.choice(TARGETS)
    (folder / 'kind.txt').write_text(f'{kind}: {path}')
    try:
        before = _swap(kind, path, elsewhere)
    except PermissionError:  # devices are root's
        return REFUSED
    content = path.read_bytes() if kind == 'read-only' else None
    with contextlib.ExitStack() as stack:
        if kind == 'pipe':
            stack.enter_context(_drained(path))
        outcome, why = judge(lambda: (write(values[1], out), RIGHT)[1])
    if outcome not in (RIGHT, REFUSED):
        raise Unequal(f'{kind} at {path.name}: {why}')
    if not os.path.lexists(path):
        raise Unequal(f'{kind} at {path.name} is gone')
    if _facts(path) != before or content is not None and path.read_bytes() != content:
        raise Unequal(f'{kind} at {path.name} was {before} and is {_facts(path)}')
    if outcome == RIGHT and kind in ('permissions', 'link', 'dangling link'):
        if digest(read(out)) != expected[1]:
            raise Unequal(f'{kind} at {path.name}: it holds something else')
    elif outcome == REFUSED and kind in ('permissions', 'link', 'dangling link', 'pipe', 'device'):
        raise Unequal(f'{kind} at {path.name} could be written to: {why}')
    return outcome


@contextlib.contextmanager
def _drained(path):
    """Read a pipe while it is written to."""
    handle = os.open(path, os.O_RDWR)  # so that neither side waits for the other
    done = threading.Event()

    def drain():
        while not done.is_set():
            if select.select([handle], [], [], 0.05)[0]:
                os.read(handle, 1 << 16)

    thread = threading.Thread(target=drain)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        os.close(handle)


# -- another user, where a run works for a URL ---------------------------------------------------

_ANOTHER = 65534  # a user and a group
URL = 'memory://audit/out'
INTRUSIONS = 'link', 'dangling link', 'file', 'open', 'not marked', 'left by a killed run'
OF_OTHERS = 'of another user', 'race'  # which root can play


def _as_a_folder():
    """As ``--output_dir URL``."""
    args = argparse.Namespace(output_dir=URL, seed=0)

    def main(argv):
        pathlib.Path(RunFolder(URL, args, 'log.txt').file('results.json')).write_text('x')

    status, said = quiet(main, [])
    if status:
        raise InputError(said.strip().splitlines()[-1])


def _intrude(kind, place, victim, rng):
    """Have a folder that looks like a run's, and has somebody's file, in the place of a run's."""
    if kind == 'not marked':
        for path in place.rglob('.of-*'):
            path.unlink()
    elif kind == 'open':
        place.chmod(rng.choice([0o777, 0o770, 0o702]))
    elif kind == 'of another user':
        for path in (place, *place.rglob('*')):
            os.chown(path, _ANOTHER, _ANOTHER)
    elif kind != 'left by a killed run':
        place.rename(victim)
        if kind == 'file':
            place.write_text('x')
        elif kind != 'race':
            place.symlink_to(victim if kind == 'link' else victim / 'none')
        if kind != 'race' and os.geteuid() == 0 and rng.random() < 0.5:
            os.lchown(place, _ANOTHER, _ANOTHER)


def _race(tmp, name, victim):
    """As another user, put a link or a folder where the run's folder will be, again and again."""
    os.chdir(tmp)  # which this user couldn't reach by its path
    os.setgroups([])
    os.setgid(_ANOTHER)
    os.setuid(_ANOTHER)
    while True:
        for act in (lambda: os.symlink(victim, name), lambda: os.unlink(name),
                    lambda: os.mkdir(name, 0o777), lambda: os.rmdir(name)):  # fmt: skip
            with contextlib.suppress(OSError):
                act()


def _all_in(folder):
    return {str(path): [*_facts(path), path.is_file() and path.read_bytes()]
            for path in folder.rglob('*')}  # fmt: skip


def _meet_others(_, rng, folder):
    tmp, victim = folder / 'tmp', folder / 'victim'
    tmp.mkdir()
    tmp.chmod(0o1777)
    kind = rng.choice([*INTRUSIONS, *OF_OTHERS] if os.geteuid() == 0 else INTRUSIONS)
    use = _as_a_folder
    (folder / 'kind.txt').write_text(f'{kind}: {use.__name__}')
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setattr(tempfile, 'tempdir', str(tmp))
        for name in remote.sizes_in('memory://audit'):
            remote.remove_file(f'memory://audit/{name}')
        path = RemoteFolder(URL).path
        ours = pathlib.Path(path).parent
        (ours / 'below').mkdir()
        for name in ('thesis.txt', 'below/thesis.txt'):
            (ours / name).write_text('x')
        is_above = kind == 'race' or kind != 'not marked' and rng.random() < 0.5
        place = ours.parent if is_above else ours
        _intrude(kind, place, victim, rng)
        if kind == 'race':
            context = multiprocessing.get_context('fork')
            racer = context.Process(target=_race, args=(tmp, place.name, victim))
            racer.start()
            stack.callback(racer.join)
            stack.callback(racer.kill)
        where = victim if kind == 'race' else folder
        before = _all_in(where)
        outcome, why = judge(lambda: (use(), RIGHT)[1])
        after = _all_in(where)
    if outcome not in (RIGHT, REFUSED):
        raise Unequal(f'{kind}: {why}')
    if kind == 'left by a killed run':
        if outcome == REFUSED or list(ours.parent.iterdir()):
            raise Unequal(f'{kind}: {why or "it was not removed"}')
    elif after != before:
        changed = [path for path in {**before, **after} if before.get(path) != after.get(path)]
        raise Unequal(f'{kind}: {changed} are not as they were')
    elif outcome == RIGHT and kind != 'race':
        raise Unequal(f'{kind}: it was used')
    sent = set(remote.sizes_in('memory://audit'))
    wanted = {'out/log.txt', 'out/results.json'}
    if sent != (wanted if outcome == RIGHT else set()):
        raise Unequal(f'{kind}: {sent} was sent')
    return outcome


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

    def embed(texts, on_batch):
        return (np.full(4, len(text), 'f4') for text in texts)

    return digest(np.array(corpus.vectors(embed, ['x'])))


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


ODD = ['', '-1', '\xb2', 'x', '9' * 30, '../../outside', '/tmp/audit-outside', 'bytes 5-1/2',
       'bytes 3-/x', '"', 'http://[', 'file:///etc/passwd', '1' * 40, '"v2"']  # fmt: skip
HEADERS = ['Content-Length', 'Content-Range', 'ETag', 'Location', 'Last-Modified',
           'X-Linked-Etag', 'X-Linked-Size', 'X-Repo-Commit']  # fmt: skip
BODY = bytes(range(256)) * 800


def _serve(folder):
    """A hub on this machine; this process takes it for the one that there is."""
    from huggingface_hub import constants

    server = LoopbackServer().__enter__()
    download.BACKOFF = 0.001
    os.environ['no_proxy'] = '127.0.0.1'
    constants.HF_HUB_OFFLINE = False
    point_at(server.url)
    return server


def _download(server, rng, folder):
    """A file of a server that breaks off, lies and changes its mind: whole, or not at all."""
    from huggingface_hub import constants

    constants.HF_HUB_CACHE = str(folder / 'hub')
    publish(server, 'me/tiny', {'file': BODY})
    resource = server.resources['/me/tiny/resolve/main/file']
    resource.cuts = [rng.randrange(len(BODY)) for _ in range(rng.choice([0, 1, 6]))]
    resource.mixes, resource.ranges = rng.random() < 0.5, rng.random() < 0.8
    resource.status = rng.choice([200, 200, 200, 302])
    if rng.random() < 0.7:
        resource.headers[rng.choice(HEADERS)] = rng.choice(ODD)
    server.headers_of_404['X-Error-Code'] = 'EntryNotFound'
    server.headers_of_404['X-Repo-Commit'] = rng.choice(ODD)
    path = str(folder / 'downloads' / 'file')
    if rng.random() < 0.5:  # a part of another version is there
        server.resources['/f'] = Resource(BODY[::-1], cuts=[100_000])
        download.ATTEMPTS = 1
        with contextlib.suppress(ZooError):
            download.download(server.url + 'f', path)
    download.ATTEMPTS, server.resources['/f'] = 3, resource
    try:
        if rng.random() < 0.5:
            path = Repository('me/tiny').file(rng.choice(['file', 'none']))
        else:
            path = download.download(server.url + 'f', path)
    finally:
        if os.path.exists('/tmp/audit-outside') or list(folder.parent.rglob('outside*')):
            raise Unequal('a file was written to another folder')
    with open(path, 'rb') as file:
        if file.read() != BODY:
            raise Unequal('the file is not what the server has')
    return RIGHT


KEYS = ['a', 'sub/b', '../outside', '/outside', 'a/../../outside', '..', 'x//y', '<b>\x85',
        '%2e%2e/c', 'a' * 300, 'sub']  # fmt: skip
PIECES = [b'', b'x' * 10, BODY * 40, b'<Error><Code>NoSuchKey</Code></Error>', b'\xff\0',
          hostile_s3.BOMB.encode()]  # fmt: skip


def _serve_s3(folder):
    """An S3 server on this machine, which this process asks; it waits less than usually."""
    server = hostile_s3.HostileS3()
    os.environ['AWS_MAX_ATTEMPTS'] = '1'
    local_s3.set_up(pytest.MonkeyPatch(), server.port)
    remote._DELAYS, remote._PATIENCE, remote._MOST_LISTED = (0,), 5, 5000
    return server


def _copy_from_s3(server, rng, folder):
    """A model's folder of a bucket with odd keys, from a server that lies now and then."""
    keys = rng.sample(KEYS, rng.randrange(1, len(KEYS)))
    server.objects = {f'm/{key}': BODY[: rng.randrange(len(BODY))] for key in keys}
    before, left = dict(server.objects), rng.choice([0, 0, rng.randrange(1, 12)])

    def lie(handler, method, key, query):
        nonlocal left
        left -= 1
        if left:
            return False
        kind = rng.randrange(4)
        if kind == 0:
            handler.list([(f'm/{rng.random()}', rng.choice([-1, 0, 1 << 62]), 'a')] * 1000,
                         '<IsTruncated>true</IsTruncated>'
                         f'<NextContinuationToken>{rng.random()}</NextContinuationToken>')
            left = rng.choice([0, 1])  # it ends, or doesn't
        elif kind == 1:
            server.objects.update(dict.fromkeys(server.objects, BODY[::-1]))
            return False
        else:
            handler.say(rng.choice([200, 206, 307, 400, 403, 412, 503]), rng.choice(PIECES),
                        **{rng.choice(['ETag', 'Content_Range', 'Location']): rng.choice(ODD)})
        return True

    server.wrong = lie
    try:
        copied = copy_of(f's3://{hostile_s3.BUCKET}/m', str(folder / 'copy' / 'x'))
    except OSError as error:
        if '\n' in str(error.strerror) or not error.strerror:
            raise Unequal(f'not one line: {error}') from error
        return REFUSED
    finally:
        if list(folder.rglob('outside*')) or list(folder.rglob('*.part')):
            raise Unequal('a file outside of the folder, or a part')
    for path in filter(os.path.isfile, (os.path.join(copied, key) for key in keys)):
        with open(path, 'rb') as file:
            content = file.read()
        key = f'm/{os.path.relpath(path, copied)}'
        if content not in (before.get(key), BODY[::-1]) and content not in PIECES:
            raise Unequal(f'{key} is a mixture')
    return RIGHT


def targets():
    made = [Target(f'systems/{name}', _prepare(name), _disturb, seconds=60, memory=None,
                   batch=10)
            for name in (*WRITERS, 'learn vocab')]  # fmt: skip
    made += [Target(f'systems/in the place of {name}', _prepare(name), _replace, seconds=60,
                    memory=None, batch=10)
             for name in WRITERS if name != 'checkpoint']  # fmt: skip
    made.append(Target('systems/another user', lambda folder: None, _meet_others, memory=None,
                       batch=10))
    made.append(Target('systems/downloads', _serve, _download, memory=None))
    made.append(Target('systems/s3', _serve_s3, _copy_from_s3, memory=None, batch=5))
    return [*made, *map(_together, CACHES)]
