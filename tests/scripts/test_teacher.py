"""scripts/finetune_classifier.py --teacher: a small model learns from a large one."""

import pytest
from contract import classifier, killed
from script_runs import SCRIPTS, assert_same_model, read_json, refusal, run

from bert import BertForSequenceClassification
from model_zoo.opening import open_model

SCRIPT = SCRIPTS / 'finetune_classifier.py'


@pytest.fixture(scope='module')
def data(toys):
    return toys('finetune_classifier').data


@pytest.fixture(scope='module')
def teacher(script, data, tmp_path_factory):
    """The folder of the best model of a teacher with two layers."""
    folder = tmp_path_factory.mktemp('teacher')
    argv = classifier(data, folder)
    argv[argv.index('--hparams') + 1] = 'num_layers=2,units=32'
    assert run(script, *argv) == 0
    return folder / 'best_model'


def arguments(data, teacher, output, *more):
    argv = classifier(data, output, *more, test=False)
    start, end = argv.index('--from_scratch'), argv.index('--batch_size')
    return [*argv[:start], *argv[end:], '--teacher', teacher]


def accuracy(folder):
    return read_json(folder)['best']['dev']['accuracy']


def test_a_student_of_fewer_layers_learns_and_goes_on(script, data, teacher, tmp_path):
    whole, cut = tmp_path / 'whole', tmp_path / 'cut'
    more = ['--student_layers', '1', '--epochs', '2', '--ckpt_interval', '10']
    broken = arguments(data, teacher, cut, *more)
    assert run(script, *arguments(data, teacher, whole, *more)) == 0
    assert accuracy(whole) >= 0.9 and accuracy(teacher.parent) >= 0.9
    training = read_json(whole)['training']
    parts = [training['log'][-1][f'{name}_loss'] for name in ('states', 'teacher', 'labels')]
    # the states' is the mean over tokens, the others' over examples
    assert sum(parts) == pytest.approx(training['log'][-1]['loss'], rel=0.1)
    with killed(45):
        run(script, *broken)
    assert run(script, *broken, '--resume') == 0
    assert_same_model(whole, cut)
    student, tokenizer, _ = open_model(str(whole / 'best_model'))
    assert isinstance(student, BertForSequenceClassification)
    assert student.config.num_hidden_layers == 1
    assert len(tokenizer.vocab) == student.config.vocab_size


def test_another_teacher_is_another_training(script, data, teacher, tmp_path, capsys):
    more = ['--student_layers', '1', '--training_steps', '4', '--keep_state']
    assert run(script, *arguments(data, teacher, tmp_path, *more)) == 0
    other = tmp_path / 'best_model'
    said = refusal(capsys, script, *arguments(data, other, tmp_path, *more), '--resume')
    assert 'teacher' in said and 'cannot resume' in said
    argv = arguments(data, teacher, tmp_path / 'new', '--student_layers', '3')
    said = refusal(capsys, script, *argv)
    assert 'a student of 3 layers has more than its teacher, 2' in said
