"""A training that goes on with another number of workers, whose batches make the same update."""

import shutil

import pytest
from script_runs import SCRIPTS, assert_same_model, refusal, run, train_in_workers, without

SIZES = '--batch_size', '--batch-size', '--train_batch_size'
HOROVOD = ['--comm_backend', 'horovod']
SCHEDULE = ['--training_steps', '4', '--ckpt_interval', '2', '--keep_checkpoints', '9']


@pytest.fixture
def train(toys):
    """``train(case, workers, output, *flags)``; runs a training of 4 updates without dropout."""

    def train(case, workers, output, *flags):
        toy = toys(case)
        argv = without(toy.case.again(toy.data, output), *SIZES, '--training_steps')
        argv += [*SCHEDULE, *map(str, flags)]
        if workers == 1:
            assert run(toy.script, *argv) == 0
            return ''
        return train_in_workers(workers, SCRIPTS / f'{toy.case.script}.py', *argv, *HOROVOD)

    return train


def forget_the_second_half(folder):
    """Take a folder back to its second update."""
    for path in (folder / 'checkpoints').iterdir():
        if int(path.name.split('-')[1]) > 2:
            shutil.rmtree(path)
    shutil.rmtree(folder / 'best_model')
    for path in (*folder.glob('*.params'), folder / 'results.json'):
        path.unlink()


WORKERS = [
    ('finetune_swag', 2, 1, ['--batch_size', 10], ['--batch_size', 5]),
    ('train_lm transfo_xl', 2, 2, [], ['--batch_size', 2]),  # each remembers its own
]


@pytest.mark.parametrize('case, first, second, whole, half', WORKERS)
def test_another_number_of_workers_goes_on(train, tmp_path, case, first, second, whole, half):
    flags = {1: whole, 2: half}
    train(case, first, tmp_path / 'whole', *flags[first])
    shutil.copytree(tmp_path / 'whole', tmp_path / 'other')
    forget_the_second_half(tmp_path / 'other')
    train(case, second, tmp_path / 'other', *flags[second], '--resume')
    log = next((tmp_path / 'other').glob('log_*.txt')).read_text('utf-8')
    assert 'resuming from' in log and 'step-00000002' in log
    tolerance = 0 if first == second else 1e-5
    assert_same_model(tmp_path / 'whole', tmp_path / 'other', tolerance)


def test_another_size_of_the_update_is_refused(train, toys, tmp_path, capsys):
    toy = toys('finetune_swag')
    train('finetune_swag', 2, tmp_path, '--batch_size', 5)
    forget_the_second_half(tmp_path)
    argv = [*toy.case.again(toy.data, tmp_path), *SCHEDULE, '--batch_size', 5, '--resume']
    assert 'batch_size x np' in refusal(capsys, toy.script, *argv)
    argv += ['--batch_size', 10, '--accumulate', 1]
    assert '--accumulate is 1 and was 2' in refusal(capsys, toy.script, *argv)
