"""What the originals' flags come to in ours."""

import argparse

import pytest

from model_zoo.app import cli
from model_zoo.app import originals as conversions
from model_zoo.app.originals import SCRIPTS, TABLE, Original, add_originals, convert_originals
from model_zoo.errors import InputError


def args(**fields):
    return argparse.Namespace(**fields)


@pytest.mark.parametrize(
    ('train', 'evaluate', 'predict', 'only_inference'),
    [
        (None, None, False, False),  # ours train unless a flag says otherwise
        (True, None, False, False),
        (True, True, True, False),
        (None, True, False, True),
        (None, None, True, True),
        (False, True, False, True),
        (False, None, True, True),
    ],
)
def test_what_is_run(train, evaluate, predict, only_inference):
    given = args(do_train=train, do_eval=evaluate, do_predict=predict, only_inference=False)
    conversions.choose_run(given)
    assert given.only_inference is only_inference


def test_nothing_to_do_and_contradictions():
    for convert, fields in (
        (conversions.choose_run, {'do_train': False, 'do_predict': None, 'only_inference': False}),
        (conversions.choose_run, {'do_train': True, 'do_predict': None, 'only_inference': True}),
        (conversions.check_one_process, {'local_rank': 3}),
        (conversions.check_gpu_unwanted, {'no_cuda': True, 'gpu': 0}),
    ):
        with pytest.raises(InputError):
            convert(args(**fields))
    conversions.check_one_process(args(local_rank=-1))
    conversions.check_gpu_unwanted(args(no_cuda=True, gpu=None))


@pytest.mark.parametrize('steps', [0, 1, 29, 99])
@pytest.mark.parametrize('total', [100, 123, 1000000])
def test_warmup_steps_are_whole_updates_of_the_schedule(steps, total):
    found = args(num_warmup_steps=steps, training_steps=total, warmup_ratio=0.5)
    conversions.read_warmup_steps(found)
    assert int(total * found.warmup_ratio) == steps  # as finetune_schedule rounds it


def test_samples():
    found = args(input_file='a,b', do_train=True, do_eval=True, train_file=None, dev_file=None)
    conversions.name_samples(found)
    assert (found.train_file, found.dev_file) == ('a,b', 'a,b')
    found = args(input_file='a', do_train=None, do_eval=True, train_file=None, dev_file=None)
    conversions.name_samples(found)
    assert (found.train_file, found.dev_file) == (None, 'a')
    with pytest.raises(InputError):
        conversions.name_samples(args(input_file='a', do_train=False, do_eval=False))


@pytest.mark.parametrize(
    ('accumulate', 'gpus', 'size'), [(None, None, 24), (2, None, 12), (3, '0,1', 4)]
)
def test_examples_of_an_update(accumulate, gpus, size):
    found = args(train_batch_size=24, accumulate=accumulate, gpus=gpus, batch_size=32)
    conversions.divide_train_batch_size(found)
    assert found.batch_size == size


def test_flags_name_flags_that_go_along():
    for flags in TABLE.values():
        for original in flags.values():
            if isinstance(original, Original) and original.with_flag:
                assert flags[original.with_flag].convert is not None
    assert {script.ours for script in SCRIPTS.values()} - {'generate_gpt2'} <= set(TABLE)


def test_the_log_says_once_why_a_flag_has_no_effect(tmp_path, capsys):
    def main(argv):
        parser = cli.parser('A test.')
        parser.add_argument('--gpu', type=int)
        add_originals(parser, 'extract_features')
        found = parser.parse_args(argv)
        convert_originals(found, 'extract_features')
        assert vars(found) == {'gpu': None}
        cli.setup_logging()
        cli.setup_logging()

    assert cli.run(main, ['--use_tpu=True', '--tpu-name', 'x', '--no_cuda']) == 0
    told = capsys.readouterr().err
    for flag in ('use_tpu', 'tpu_name'):
        assert told.count(f'--{flag} has no effect: there is no TPU') == 1
    assert 'no_cuda' not in told and 'master' not in told
