"""Processes that try targets. What an attempt does to its process ends in the table, too."""

import contextlib
import json
import logging
import os
import pathlib
import re
import selectors
import shutil
import signal
import time
import traceback

from target import FAILED, unlimited

__all__ = ['Pool']

#: times an attempt's processor time: while it does nothing, and in all; other programs want the
#: processor, too
PATIENCE, MOST_PATIENCE = 15, 150


class Pool:
    """Forks that live until an attempt kills them.

    Parameters
    ----------
    targets : dict of str to Target
    folder : pathlib.Path
        Each process works in a folder of its own in it.
    kept : pathlib.Path
        Where the files of failed attempts go.
    workers : int
    """

    def __init__(self, targets, folder, kept, workers):
        self._targets, self._kept = targets, kept
        self._slots = [_Slot(targets, folder / f'worker{number}') for number in range(workers)]

    def run(self, choose, tell, until):
        """Try targets until a time.

        Parameters
        ----------
        choose : callable
            ``choose() -> (target's name, first seed, count)``, or None where all is tried.
        tell : callable
            ``tell(name, seed, outcome, why)`` for each attempt; ``tell(name, None, None, seconds)``
            behind those of one choice.
        until : float
            Of time.monotonic.
        """
        try:
            while time.monotonic() < until:
                for slot in self._slots:
                    if slot.task is None:
                        task = choose()
                        if task is not None:
                            slot.started = time.monotonic()
                            slot.begin(*task)
                if all(slot.task is None for slot in self._slots):
                    return
                self._wait(tell)
        finally:
            for slot in self._slots:
                slot.end()

    def _wait(self, tell):
        with selectors.DefaultSelector() as selector:
            for slot in self._slots:
                if slot.task is not None:
                    selector.register(slot.answers, selectors.EVENT_READ, slot)
            ready = [key.data for key, _ in selector.select(0.5)]
        for slot in self._slots:
            if slot in ready:
                self._take(slot, tell)
            elif slot.task is not None and slot.waits_too_long():
                slot.end()
                self._failed(slot, tell, 'it hangs')

    def _take(self, slot, tell):
        for answer in slot.read():
            if answer is None:
                code = slot.end()
                name = signal.Signals(-code).name if code < 0 else f'exit status {code}'
                self._failed(slot, tell, f'{slot.said()}its process ended: {name}')
                return
            if 'begun' in answer:
                slot.seed, slot.since = answer['begun'], time.monotonic()
            elif 'outcome' in answer:
                seed, outcome, why = answer['seed'], answer['outcome'], answer['why']
                if outcome == FAILED:
                    self._keep(slot, seed, why)
                    slot.go_on()
                tell(slot.task, seed, outcome, why)
            else:
                self._end(slot, tell)

    def _failed(self, slot, tell, why):
        """Tell of an attempt that has ended its process; another one makes the next attempts."""
        self._keep(slot, slot.seed, why)
        tell(slot.task, slot.seed, FAILED, why)
        if slot.seed + 1 < slot.last:
            slot.begin(slot.task, slot.seed + 1, slot.last - slot.seed - 1)
        else:
            self._end(slot, tell)

    def _end(self, slot, tell):
        name, slot.task = slot.task, None
        tell(name, None, None, time.monotonic() - slot.started)

    def _keep(self, slot, seed, why):
        name = slot.task
        target = self._kept / f'{name.replace("/", "-").replace(" ", "_")}-{seed}'
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        case = {'target': name, 'seed': seed, 'why': why}
        (target / 'case.json').write_text(json.dumps(case, indent=2))
        with contextlib.suppress(OSError, shutil.Error):
            shutil.copytree(slot.folder / 'attempt', target / 'attempt', symlinks=True)


class _Slot:
    """A place for one process at a time."""

    def __init__(self, targets, folder):
        self._targets, self.folder = targets, folder
        self.folder.mkdir(parents=True)
        self.pid = self.task = self.seed = self.answers = self._orders = None
        self.started = self.since = self.last = self._moved = 0
        self._used_before = None
        self._rest = b''

    def begin(self, name, first, count):
        if self.pid is None:
            self._fork()
        self.task, self.seed, self.last, self._rest = name, first, first + count, b''
        self.since = time.monotonic()
        self._order({'target': name, 'first': first, 'count': count})

    def go_on(self):
        """Answer a process that waits for its files to be copied."""
        self._order({})

    def _order(self, what):
        with contextlib.suppress(OSError):  # it has ended, as reading will tell
            os.write(self._orders, json.dumps(what).encode() + b'\n')

    def read(self):
        """Yield answers; None if the process has ended."""
        data = os.read(self.answers, 1 << 20)
        self._rest += data
        *lines, self._rest = self._rest.split(b'\n')
        yield from map(json.loads, lines)
        if not data:
            yield None

    def said(self):
        """What the process has printed last."""
        path = self.folder / 'output.txt'
        return path.read_text(errors='replace')[-3000:] if path.exists() else ''

    def waits_too_long(self):
        now, used = time.monotonic(), self._used()
        if used != self._used_before:
            self._used_before, self._moved = used, now
        seconds = self._targets[self.task].seconds
        waited, idle = now - self.since, now - max(self.since, self._moved)
        return idle > PATIENCE * seconds or waited > MOST_PATIENCE * seconds

    def _used(self):
        """Processor time of the process and of those that it has waited for."""
        try:
            fields = pathlib.Path(f'/proc/{self.pid}/stat').read_text().rpartition(')')[2].split()
        except OSError:
            return None
        return fields[11:15]

    def end(self):
        """Kill the process and what it has begun; returns its exit status."""
        if self.pid is None:
            return 0
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.answers)
        os.close(self._orders)
        self.pid = None
        return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def _fork(self):
        orders, self._orders = os.pipe()
        self.answers, answers = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(self._orders)
            os.close(self.answers)
            try:
                _work(self._targets, self.folder, orders, answers)
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        with contextlib.suppress(OSError):
            os.setpgid(self.pid, self.pid)
        os.close(orders)
        os.close(answers)


def _work(targets, folder, orders, answers):
    """In the process: try what is ordered."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log = os.open(folder / 'output.txt', os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    logging.disable(logging.WARNING)
    shared, attempt = {}, pathlib.Path(folder / 'attempt')
    with os.fdopen(orders) as lines:
        for line in lines:
            order = json.loads(line)
            target = targets[order['target']]
            if target.name not in shared:
                unlimited()
                own = folder / re.sub(r'\W+', '-', target.name)  # commas join paths
                shutil.rmtree(own, ignore_errors=True)  # of a process before this one
                own.mkdir()
                shared[target.name] = target.prepare(own)
            for seed in range(order['first'], order['first'] + order['count']):
                _say(answers, begun=seed)
                outcome, why = target.outcome(shared[target.name], seed, attempt)
                unlimited()
                _say(answers, seed=seed, outcome=outcome, why=why)
                if outcome == FAILED:
                    lines.readline()  # its files are copied meanwhile
            _say(answers, done=True)


def _say(answers, **what):
    data = json.dumps(what).encode() + b'\n'
    while data:
        data = data[os.write(answers, data) :]
