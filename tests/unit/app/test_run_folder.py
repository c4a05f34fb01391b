"""A run's folder: one run at a time, and none writes over another training."""

import subprocess

import pytest
from refusals import refuses
from script_runs import start

from model_zoo.app.run_folder import RunFolder
from model_zoo.training.settings import TrainingSettings

HOLDER = """
import argparse, sys, time
from model_zoo.app.run_folder import RunFolder
settings = argparse.Namespace(output_dir=sys.argv[1], seed=0)
folder = RunFolder(settings, 'log.txt')
print('ready', flush=True)
time.sleep(3600)
"""


def open_folder(path, trains=True, **settings):
    return RunFolder(TrainingSettings(output_dir=path, **settings), 'log.txt', trains=trains)


@pytest.fixture
def trained(tmp_path):
    """A folder with a training's files, and two of the user's."""
    folder = tmp_path / 'out'
    for name in ('checkpoints/step-00000003-epoch-1-batch-0', 'best_model', 'exported'):
        (folder / name).mkdir(parents=True)
    for name in ('results.json', 'curves.png', 'model_bert_MRPC_0.params', 'notes.txt'):
        (folder / name).write_text('{}')
    return folder


def test_evaluation_resuming_and_overwriting_are_not(trained):
    before = set(trained.rglob('*'))
    open_folder(trained, trains=False)
    open_folder(trained, resume=True)
    open_folder(trained, overwrite_output_dir=True)
    assert before <= set(trained.rglob('*'))  # until the training begins


def test_overwriting_removes_the_training_alone(trained):
    folder = open_folder(trained, overwrite_output_dir=True)
    folder.clear()
    left = {path.name for path in trained.iterdir()} - {'.lock', 'log.txt'}
    assert left == {'checkpoints', 'exported', 'notes.txt'}
    assert not list((trained / 'checkpoints').iterdir())


def test_resume_needs_a_checkpoint(trained):
    (trained / 'checkpoints' / 'step-00000003-epoch-1-batch-0').rmdir()
    for resume in (False, True):
        with refuses(says='overwrite_output_dir'):
            open_folder(trained, resume=resume)


def test_a_second_process_is_refused_until_the_first_has_ended(tmp_path):
    with start('-c', HOLDER, tmp_path / 'out', stdout=subprocess.PIPE) as first:
        try:
            assert first.stdout.readline() == 'ready\n'
            with refuses(says=str(tmp_path / 'out')):
                open_folder(tmp_path / 'out', trains=False)
        finally:
            first.kill()
    open_folder(tmp_path / 'out')


def test_a_closed_folder_may_be_opened(tmp_path):
    folder = open_folder(tmp_path)
    folder.close()
    open_folder(tmp_path)


def test_leftovers_of_a_killed_run_are_removed(tmp_path):
    for name in ('best_model', 'model', 'vocab'):
        (tmp_path / name).mkdir()
    leftovers = ['.curves.png0123abcd.part', 'best_model/.model.params89abcdef.part']
    leftovers += ['model/.config.json89abcdef.part', 'vocab/.vocab.json89abcdef.part']
    others = ['.part', 'features.part', '.hidden.part', 'curves.png']
    for name in (*leftovers, *others):
        (tmp_path / name).write_text('x')
    open_folder(tmp_path, trains=False)
    assert not any((tmp_path / name).exists() for name in leftovers)
    assert all((tmp_path / name).exists() for name in others)


LEFT = [({}, 0, {0, 2}), ({'keep_state': True}, 1, {0, 2})]
LEFT += [({'keep_checkpoints': number}, 2, {0, 1, 2}) for number in (2, 3)]


@pytest.mark.parametrize('options, checkpoints, epochs', LEFT)
def test_what_a_finished_training_leaves(tmp_path, options, checkpoints, epochs):
    for number in range(3):
        (tmp_path / f'model_toy_{number}.params').write_text(f'{number}')
    for name in ('step-00000002-epoch-1-batch-0', 'step-00000004-epoch-2-batch-0'):
        (tmp_path / 'checkpoints' / name).mkdir(parents=True)
    (tmp_path / 'model_notes.txt').write_text('')
    folder = open_folder(tmp_path, trains=False)
    best, last = (folder.file(f'model_toy_{number}.params') for number in (0, 2))
    folder.tidy({best, last}, TrainingSettings(**options))
    left = sorted((tmp_path / 'checkpoints').iterdir())
    assert len(left) == checkpoints
    assert not left or left[-1].name.startswith('step-00000004')
    assert {int(path.stem[-1]) for path in tmp_path.glob('model_*.params')} == epochs
    assert (tmp_path / 'model_notes.txt').exists()
