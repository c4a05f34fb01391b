"""Jobs that are killed before their operations on files, and what the next command makes."""

import os
import shutil
import sys

import pytest
from contract import CASES
from script_runs import assert_same_parameters, load_script, run

#: audit events of operations that change files -> the position of the path
CHANGES = {
    'os.rename': 1,
    'os.remove': 0,
    'os.mkdir': 0,
    'os.rmdir': 0,
    'os.truncate': 0,
}
KILLED = 137


def watch(folder, number=None):
    """End this process before its `number`-th change in a folder; returns the changes so far."""
    changes = []

    def hook(event, args):
        if event == 'open':
            path, writes = args[0], args[2] & (os.O_WRONLY | os.O_RDWR)
        else:
            path, writes = args[CHANGES[event]] if event in CHANGES else None, True
        if isinstance(path, (str, os.PathLike)) and writes and os.fspath(path).startswith(folder):
            changes.append((event, os.fspath(path)))
            if len(changes) == number:
                os._exit(KILLED)

    sys.addaudithook(hook)
    return changes


def in_fork(job, folder, number=None):
    """Run a job in a fork of this process; returns its exit status and its number of changes."""
    count_file = f'{folder}.count'
    process = os.fork()
    if process == 0:
        status = 1
        try:
            changes = watch(str(folder), number)
            status = job()
            with open(count_file, 'w') as file:
                file.write(str(len(changes)))
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return status, None if number else int(open(count_file).read())


def hidden(folder):
    """Names of temporary files and folders that a killed job has left."""
    return [
        path.name for path in folder.rglob('.*') if path.name not in ('.lock',) and path.exists()
    ]


SHORT = '--batch_size 64 --epochs 1 --ckpt_interval 3'
#: script -> flags of a short training
JOBS = {
    'finetune_classifier': SHORT,
    'finetune_tagging': SHORT,
    'train_lm gpt2': '--ckpt_interval 4',
}


@pytest.mark.slow
@pytest.mark.parametrize('name', JOBS)
def test_a_training_that_is_killed_anywhere_ends_the_same(name, tmp_path):
    case, flags = CASES[name], JOBS[name].split()
    data = tmp_path / 'data'
    data.mkdir()
    case.write(data)
    script = load_script(case.script)
    step = int(os.environ.get('ZOO_KILLS_STEP', 7))

    def train(folder, *more):
        return lambda: run(script, *case.again(data, folder), *flags, *more)

    whole = tmp_path / 'whole'
    status, count = in_fork(train(whole), whole)
    assert status == 0 and count > 20
    print(count, 'changes')
    problems = []
    for number in range(1, count + 1, step):
        folder = tmp_path / 'killed'
        shutil.rmtree(folder, ignore_errors=True)
        status, _ = in_fork(train(folder), folder, number)
        assert status == KILLED
        status, _ = in_fork(train(folder, '--resume'), folder)
        finished = (folder / 'results.json').exists()
        try:
            assert finished, 'no results'
            for path in (*whole.glob('*.params'), *whole.glob('best_model/model.*')):
                assert_same_parameters(path, folder / path.relative_to(whole))
            assert not hidden(folder), hidden(folder)
            assert sorted(os.listdir(folder)) == sorted(os.listdir(whole))
        except (AssertionError, OSError) as error:
            problems.append((number, status, str(error)[:300]))
    assert not problems
