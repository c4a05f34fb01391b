"""What the originals' flags come to in ours."""

import pytest
from json_files import cases
from refusals import refuses

from model_zoo.app import cli, originals
from model_zoo.app.originals import parse_settings
from model_zoo.tasks.settings import ClassificationSettings, PretrainingSettings, SquadSettings

CLASSES = {
    'finetune_classifier': ClassificationSettings,
    'finetune_squad': SquadSettings,
    'run_pretraining': PretrainingSettings,
}


def parse(command, *words, preset=()):
    return parse_settings(CLASSES[command], 'A test.', cli.Words(words, preset), command)


WHAT_IS_RUN = cases('app')['WHAT_IS_RUN']


@pytest.mark.parametrize('words, only_inference', WHAT_IS_RUN)
def test_what_is_run(words, only_inference):
    found = parse('finetune_classifier', *words.split())
    assert found.only_inference is only_inference


CONTRADICTIONS = [
    ('finetune_classifier', '--do_train=false', 'do_train'),
    ('finetune_squad', '--do_train --do_predict --train_file x', 'dev_file'),
    ('run_pretraining', '--input_file a --do_train=false --do_eval=false', 'do_eval'),
    ('run_pretraining', '--data a --num_warmup_steps 20 --num_steps 20', 'warmup_ratio'),
]


@pytest.mark.parametrize('command, words, name', CONTRADICTIONS)
def test_nothing_to_do_and_contradictions(command, words, name):
    with refuses(says=name):
        parse(command, *words.split())


@pytest.mark.parametrize('steps', [0, 1, 29, 99])
@pytest.mark.parametrize('total', [100, 123, 1000000])
def test_warmup_steps_are_whole_updates_of_the_schedule(steps, total):
    words = '--train_file', 'a', f'--num_warmup_steps={steps}', f'--num_steps={total}'
    found = parse('run_pretraining', *words)
    assert int(total * found.warmup_ratio) == steps  # as finetune_schedule rounds it


def test_samples():
    found = parse('run_pretraining', '--input_file=a,b', '--do_train', '--do_eval')
    assert (found.train_file, found.dev_file) == ('a,b', 'a,b')
    found = parse('run_pretraining', '--input_file=a', '--do_eval', '--num_steps=3')
    assert (found.train_file, found.dev_file, found.training_steps) == (None, 'a', 3)


@pytest.mark.parametrize(('words', 'size'), [('', 24), ('--accumulate 2', 12), ('--gpus 0,1', 12)])
def test_examples_of_an_update(words, size):
    found = parse('finetune_classifier', '--train_batch_size=24', *words.split())
    assert found.batch_size == size


def test_an_originals_defaults_are_overridden_by_a_file_and_by_flags(tmp_path):
    preset = '--train_batch_size=32', '--lr=1e-3', '--seed=42', '--clip_each'
    (tmp_path / 'run.yaml').write_text('seed: 7\nlr: 5e-5\nreduce_memory: false\n')
    config = f'--config={tmp_path}/run.yaml'
    found = parse('finetune_classifier', config, '--lr=0.5', preset=preset)
    assert (found.batch_size, found.lr, found.seed, found.clip_each) == (32, 0.5, 7, True)
    assert found.given == {'lr', 'seed'}
    (tmp_path / 'run.yaml').write_text('batch_size: 7\nmodel: mine\n')
    found = parse('finetune_classifier', config, '--batch_tokens=64', '--checkpoint=x')
    assert found.given == {'batch_tokens', 'checkpoint'} and found.batch_size == 32


def test_the_log_says_once_why_a_flag_has_no_effect(capsys):
    def main(argv):
        parser = cli.parser('A test.')
        parser.add_argument('--gpu', type=int)
        assert originals.parse(parser, argv, 'extract_features').gpu is None
        cli.setup_logging()
        cli.setup_logging()

    assert cli.run(main, ['--use_tpu=True', '--tpu-name', 'x', '--no_cuda']) == 0
    told = capsys.readouterr().err
    for flag in ('use_tpu', 'tpu_name'):
        assert told.count(f'--{flag} has no effect: there is no TPU') == 1
    assert 'no_cuda' not in told and 'master' not in told
