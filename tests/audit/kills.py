"""Trainings that are killed (kill -9) at any moment, and go on as if nothing had been.

The moment is a number of what a training does to files, at which most can go wrong, or a time. A
training may be killed again while it goes on. In the end all it has written must be, byte by byte,
what an unbroken one writes.
"""

import importlib.util
import json
import os
import pathlib
import shutil

import contract
import toy_data
import warm
from script_runs import ROOT, SCRIPTS, run_workers
from target import RIGHT, Target, Unequal

from model_zoo.errors import InputError

__all__ = ['targets']

#: what a training does to files
CHILD = """
import json, os, runpy, signal, sys, threading, time
program, *argv = sys.argv[1:]
plan = json.loads(os.environ['AUDIT_KILL'])
count, began = 0, time.time()
mine = os.environ.get('HOROVOD_RANK', '0') == str(plan.get('rank', 0))

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def watch(event, arguments):
    global count
    writes = event == 'open' and isinstance(arguments[2], int) and arguments[2] & 3
    if writes or event in ('os.rename', 'os.remove', 'os.mkdir', 'os.rmdir', 'shutil.rmtree'):
        count += 1
        if count == plan.get('event'):
            die()

if mine:
    sys.addaudithook(watch)
    if 'seconds' in plan:
        threading.Timer(plan['seconds'], die).start()
sys.argv = [program, *argv]
sys.path.insert(0, os.path.dirname(program))
try:
    runpy.run_path(program, run_name='__main__')
except SystemExit as end:
    if end.code:
        raise
if mine and 'file' in plan:
    with open(plan['file'], 'w') as file:
        json.dump({'event': count, 'seconds': time.time() - began}, file)
"""
TIMEOUT = 1200
PRETRAINING = ['--hparams', 'num_layers=1,units=16', 'hidden_size=32,num_heads=2,max_length=16']


def _pretraining(data, output, *more):
    return ['--data', data / 'train-*.npz', '--data_eval', data / 'eval.npz', '--vocab_file',
            data / 'vocab.txt', *PRETRAINING, '--lr', '1e-2', '--batch_size', 8, '--num_steps', 6,
            '--ckpt_dir', output, *more]  # fmt: skip


class _Training:
    """A training that is killed.

    Parameters
    ----------
    script : str
    write : callable
        ``write(folder)`` writes its data.
    arguments : callable
        ``arguments(data, output) -> list``.
    workers : int
        Processes, which Horovod joins.
    """

    def __init__(self, script, write, arguments, workers=1):
        self.program = SCRIPTS / f'{script}.py'
        self.write, self.arguments, self.workers = write, arguments, workers

    def prepare(self, folder):
        folder = folder.with_name(f'{folder.name}-made')  # once for all processes here
        data, whole = folder / 'data', folder / 'whole'
        if not (folder / 'moments.json').exists():
            shutil.rmtree(folder, ignore_errors=True)
            data.mkdir(parents=True)
            self.write(data)
            status, said = self.run(data, whole, {'file': str(folder / 'moments.json')})
            if status:
                raise Unequal(f'the unbroken training ends with {status}: {said[-2000:]}')
        return data, whole, json.loads((folder / 'moments.json').read_text())

    def run(self, data, output, plan):
        argv = [self.program, *self.arguments(data, output), '--ckpt_interval', 2]
        if list(output.glob('checkpoints*/step-*')):
            argv.append('--resume')
        command = ['-c', CHILD, *map(str, argv)]
        os.environ['AUDIT_KILL'] = json.dumps(plan)  # which the processes inherit
        if self.workers > 1:
            done = run_workers(self.workers, *command, timeout=TIMEOUT)
            codes = [each.returncode for each in done]
            return next(filter(None, codes), 0), '\n'.join(each.stdout for each in done)
        environment = {**os.environ, 'PYTHONPATH': str(ROOT), 'OMP_NUM_THREADS': '1'}
        done = warm.run(command, env=environment, timeout=TIMEOUT)
        return done.returncode, done.stderr

    def attempt(self, shared, rng, folder):
        data, whole, moments = shared
        output, kills = folder / 'out', []
        for _ in range(rng.choice([1, 1, 2])):
            moment = {'rank': rng.randrange(self.workers)}
            if rng.random() < 0.6:
                moment['event'] = rng.randint(1, moments['event'])
                if moment['rank']:
                    moment['event'] = min(moment['event'], 12)  # it writes little
            else:
                moment['seconds'] = rng.random() * moments['seconds']
            status, said = self.run(data, output, moment)
            kills.append([moment, status])
            (folder / 'kills.json').write_text(json.dumps(kills))
            if status not in (0, -9) and self.workers == 1:
                raise Unequal(f'{kills}: {said[-3000:]}')
            if not status:
                break
        if status:
            status, said = self.run(data, output, {})
            if status:
                raise Unequal(f'{kills}, and then {status}: {said[-3000:]}')
        if not any(code for _, code in kills):
            raise InputError('the training had ended before it was to be killed')
        _compare(whole, output)
        return RIGHT


def _compare(whole, output):
    """That two folders have the same files but for what tells the time."""
    for path in sorted(whole.rglob('*')):
        name = path.relative_to(whole)
        if not path.is_file() or path.suffix in ('.txt', '.html', '.png', '.md', '.lock'):
            continue
        if path.name in ('state.json', 'SHA256SUMS', 'results.json', '.lock'):
            continue  # of seconds
        other = output / name
        if not other.exists():
            raise Unequal(f'{name} is missing')
        if path.read_bytes() != other.read_bytes():
            raise Unequal(f'{name} differs')
    best = [json.loads((each / 'results.json').read_text())['training']['epochs']
            for each in (whole, output)]  # fmt: skip
    scores = [[(each['epoch'], each['step'], each['score']) for each in epochs] for epochs in best]
    if scores[0] != scores[1]:
        raise Unequal(f'the epochs {scores[0]} and {scores[1]}')
    left = [each.name for each in output.rglob('*.part')]
    if left:
        raise Unequal(f'left behind: {left}')


def targets():
    trainings = {
        **{name: _Training(case.script, case.write, case.again)
           for name, case in contract.CASES.items()},
        'run_pretraining': _Training('run_pretraining', toy_data.write_shards, _pretraining),
        'run_pretraining_hvd, 2 processes': _Training(
            'run_pretraining_hvd', toy_data.write_shards, _pretraining, 2),
        'train_lm gpt2, 2 processes': _Training(
            'train_lm', toy_data.write_texts, lambda data, output: [
                *contract.lm(data, output, 'gpt2', '--training_steps', 6), '--comm_backend',
                'horovod'], 2),
    }  # fmt: skip
    if not _has_horovod():
        trainings = {name: each for name, each in trainings.items() if each.workers == 1}
    return [Target(f'kills/{name}', each.prepare, each.attempt, seconds=300, memory=None,
                   batch=1)
            for name, each in trainings.items()]  # fmt: skip


def _has_horovod():
    found = importlib.util.find_spec('horovod')
    return bool(found) and (pathlib.Path(found.origin).parent / 'mxnet').is_dir()
