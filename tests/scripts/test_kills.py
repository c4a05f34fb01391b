"""Jobs that are killed before their operations on files, and what the next command makes."""

import os
import shutil

import pytest
from contract import CASES
from killed_jobs import KILLED, in_fork
from script_runs import assert_same_parameters, load_script, run

#: each such operation would take minutes
EVERY = int(os.environ.get('ZOO_TEST_KILLS', 11))


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
