"""Jobs that are killed before their operations on files, and what the next command makes."""

import os
import shutil
import sys

import pytest
from contract import CASES
from script_runs import assert_same_parameters, load_script, run

#: audit events of operations that change files -> the position of the path
CHANGES = {'os.rename': 1, 'os.remove': 0, 'os.mkdir': 0, 'os.rmdir': 0, 'os.truncate': 0}
KILLED = 137
#: each such operation would take minutes
EVERY = int(os.environ.get('ZOO_TEST_KILLS', 11))


def end_before(number, folder):
    """End this process before its `number`-th change in a folder; returns the changes so far."""
    changes = []

    def hook(event, args):
        if event == 'open':
            path, changes_it = args[0], args[2] & (os.O_WRONLY | os.O_RDWR)
        else:
            path, changes_it = args[CHANGES.get(event, 0)] if event in CHANGES else None, True
        is_path = isinstance(path, (str, os.PathLike)) and changes_it
        if is_path and os.fspath(path).startswith(folder):
            changes.append(path)
            if len(changes) == number:
                os._exit(KILLED)

    sys.addaudithook(hook)
    return changes


def in_fork(job, folder, number=None):
    """Run a job in a fork of this process; returns its exit status and its number of changes."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        status = 1
        try:
            changes = end_before(number, str(folder))
            status = job()
            os.write(writer, str(len(changes)).encode())
        finally:
            os._exit(status)
    os.close(writer)
    with open(reader) as file:
        count = int(file.read() or 0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), count


SHORT = '--batch_size 64 --epochs 1 --ckpt_interval 3'
#: script -> flags of a short training
JOBS = {
    'finetune_classifier': SHORT,
    'finetune_tagging': SHORT,
    'train_lm gpt2': '--ckpt_interval 4',
}


@pytest.mark.slow
@pytest.mark.parametrize('name', JOBS)
def test_a_training_that_is_killed_and_resumed_ends_the_same(name, tmp_path):
    case, flags = CASES[name], JOBS[name].split()
    data, whole = tmp_path / 'data', tmp_path / 'whole'
    data.mkdir()
    case.write(data)
    script = load_script(case.script)

    def train(folder, *more):
        return lambda: run(script, *case.again(data, folder), *flags, *more)

    status, count = in_fork(train(whole), whole)
    assert status == 0 and count > 20
    for number in range(1, count + 1, EVERY):
        folder = tmp_path / f'killed-{number}-of-{count}'
        assert in_fork(train(folder), folder, number)[0] == KILLED
        in_fork(train(folder, '--resume'), folder)  # which refuses a training that had ended
        for path in (*whole.glob('*.params'), *whole.glob('best_model/model.*')):
            assert_same_parameters(path, folder / path.relative_to(whole))
        names = {str(path.relative_to(folder)) for path in folder.rglob('*')}
        assert names == {str(path.relative_to(whole)) for path in whole.rglob('*')}
        shutil.rmtree(folder)
