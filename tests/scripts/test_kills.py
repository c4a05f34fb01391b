"""Jobs that are killed before their operations on files, and what the next command makes."""

import os
import shutil

import pytest
from contract import CASES
from killed_jobs import KILLED, in_fork
from script_runs import assert_same_parameters, load_script, run


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
