"""scripts/run_pretraining.py end to end, on small models and made-up shards."""

import json
import os
from unittest import mock

import pytest
from arrays import assert_equal
from contract import interrupt
from refusals import refuses
from script_runs import SCRIPTS, assert_same_model, parameters, read_json, refusal, run, without
from toy_data import COUNTED, LENGTH, MASKS, PRETRAINED, SPECIAL, make_samples, write_shards

from bert import BertForPreTraining
from model_zoo.checkpoint.readers import SUMS, write_sums
from model_zoo.tasks.pretraining.files import write_shard
from model_zoo.tokenization.vocab import load_vocab

SCRIPT = SCRIPTS / 'run_pretraining.py'


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """A folder with vocab.txt and the shards train-0.npz, train-1.npz and eval.npz."""
    folder = tmp_path_factory.mktemp('data')
    write_shards(folder)
    return folder


@pytest.fixture
def arguments(data, tmp_path):
    return lambda *more: [
        *('--data', str(data / 'train-*.npz'), '--data_eval', str(data / 'eval.npz')),
        *('--vocab_file', str(data / 'vocab.txt'), *PRETRAINED, '--lr', '1e-2'),
        *('--batch_size', '8', '--output_dir', str(tmp_path / 'ckpt'), *map(str, more)),
    ]


def checkpoints(folder):
    return sorted(path.name for path in (folder / 'checkpoints').iterdir())


def test_a_run(script, arguments, data, tmp_path):
    """It learns, logs as GluonNLP does, and leaves what other scripts take."""
    argv = arguments('--num_steps', 12, '--log_interval', 4, '--eval_interval', 6)
    assert run(script, *argv) == 0
    folder = tmp_path / 'ckpt'
    log = (folder / 'log_phase1.txt').read_text()
    assert [f'[step {step}]\tmlm_loss=' in log for step in (4, 8, 12)] == [True] * 3
    assert log.count('Eval mlm_loss=') == 2
    assert 'throughput=' in log and ' ms/step' in log and 'Train cost=' in log
    assert checkpoints(folder) == ['step-00000006-epoch-1-batch-1', 'step-00000012-epoch-2-batch-2']
    results = read_json(folder)
    assert [record['step'] for record in results['training']['log']] == [4, 6, 8, 12]
    report = results['training']['epochs'][1]['report']['eval']
    assert set(report) == {'mlm_loss', 'mlm_acc', 'nsp_loss', 'nsp_acc'}
    assert (folder / 'curves.png').read_bytes().startswith(b'\x89PNG')
    model = BertForPreTraining.from_pretrained(str(folder / 'model'))
    assert model.config.vocab_size == len(SPECIAL) + len(COUNTED)
    assert (folder / 'model' / 'vocab.txt').is_file()


def test_begins_from_its_own_model_and_evaluates(script, arguments, data, tmp_path):
    assert run(script, *arguments('--num_steps', 3)) == 0
    other = ['--model', tmp_path / 'ckpt' / 'model', '--data_eval', data / 'eval.npz']
    assert run(script, *other, '--output_dir', tmp_path / 'other') == 0
    trained = read_json(tmp_path / 'ckpt')['training']['epochs'][-1]['report']['eval']
    evaluated = read_json(tmp_path / 'other', 'evaluation.json')['eval']
    assert evaluated == pytest.approx(trained, rel=1e-5)
    for folder, metrics, step in (('ckpt', trained, 3), ('other', evaluated, 0)):
        lines = (tmp_path / folder / 'eval_results.txt').read_text().splitlines()
        assert lines == [  # as Google's script has them
            f'global_step = {step}',
            f'loss = {metrics["mlm_loss"] + metrics["nsp_loss"]}',
            f'masked_lm_accuracy = {metrics["mlm_acc"]}',
            f'masked_lm_loss = {metrics["mlm_loss"]}',
            f'next_sentence_accuracy = {metrics["nsp_acc"]}',
            f'next_sentence_loss = {metrics["nsp_loss"]}',
        ]


def test_accumulation_and_several_batches_sizes(script, arguments, tmp_path):
    """8 samples at once or in parts, in which the counts of masks differ; the last batch has 4."""
    argv = arguments('--num_steps', 10, '--optimizer', 'lamb', '--lr', '1e-3')
    argv[argv.index('--hparams') + 1] += ',dropout=0.0'
    folders = tmp_path / '8', tmp_path / '1'
    for folder, size in zip(folders, (8, 1)):
        ways = ['--batch_size', size, '--accumulate', 8 // size, '--output_dir', folder]
        assert run(script, *argv, *ways) == 0
    assert_same_model(*folders, 1e-6)


def test_batches_by_tokens(script, arguments, data, tmp_path, capsys):
    """One name for the flags that GluonNLP has for this."""
    argv = arguments('--num_steps', 6, '--ckpt_interval', 3)
    assert '--batch_tokens and --batch_size' in refusal(capsys, script, *argv, '--batch_tokens', 64)
    by_tokens = [*without(argv, '--batch_size'), '--batch_tokens', '64']
    assert run(script, *by_tokens) == 0
    assert ' x 64 tokens' in (tmp_path / 'ckpt' / 'log_phase1.txt').read_text()
    os.rename(tmp_path / 'ckpt', tmp_path / 'by_tokens')
    assert run(script, *argv, '--batch_size', 64, '--use_avg_len', '--num_buckets', 10) == 0
    assert_same_model(tmp_path / 'ckpt', tmp_path / 'by_tokens')
    said = refusal(capsys, script, *by_tokens, '--total_batch_size', 8)
    assert '--batch_tokens' in said and '--total_batch_size' in said


def test_an_earlier_training_is_neither_replaced_nor_resumed_as_another(
    script, arguments, data, tmp_path, capsys
):
    assert run(script, *arguments('--num_steps', 4, '--ckpt_interval', 2)) == 0
    before = checkpoints(tmp_path / 'ckpt')
    for field, *flags in (
        ('--resume', '--num_steps', 2),
        ('--warmup_ratio', '--num_steps', 4, '--resume', '--warmup_ratio', 0.5),
        ('--data', '--num_steps', 4, '--resume', '--data', data / 'train-0.npz'),
    ):
        assert field in refusal(capsys, script, *arguments(*flags))
    assert checkpoints(tmp_path / 'ckpt') == before


def test_a_training_of_an_earlier_version_is_resumed(script, arguments, tmp_path):
    """Whose job has neither the number of GPUs nor names of classes, and GluonNLP's names."""
    assert run(script, *arguments('--num_steps', 2, '--ckpt_interval', 2)) == 0
    (folder,) = (tmp_path / 'ckpt' / 'checkpoints').iterdir()
    state = json.loads((folder / 'state.json').read_text())
    for name in ('gpus', 'class_names', 'batch_tokens'):
        del state['config'][name]
    for name, older in (('train_file', 'data'), ('training_steps', 'num_steps')):
        state['config'][older] = state['config'].pop(name)
    (folder / 'state.json').write_text(json.dumps(state))
    write_sums(str(folder / SUMS), [str(path) for path in folder.glob('*.*')])
    assert run(script, *arguments('--num_steps', 4, '--resume')) == 0
    assert checkpoints(tmp_path / 'ckpt')[-1].startswith('step-00000004')


def test_ctrl_c_leaves_the_model_as_it_is(script, arguments, tmp_path):
    with interrupt(2):
        assert run(script, *arguments('--num_steps', 9)) == 130
    results, folder = read_json(tmp_path / 'ckpt'), tmp_path / 'ckpt'
    assert results['interrupted'] == {'step': 2, 'of': 9} and results['model'] == 'model'
    (checkpoint,) = (folder / 'checkpoints').iterdir()
    saved = BertForPreTraining.from_pretrained(str(folder / 'model'))
    model = BertForPreTraining(saved.config)
    model.load_parameters(str(checkpoint / 'model.params'))
    assert_equal(saved.own_tensors(), model.own_tensors())


def test_a_disk_that_is_too_small_is_found_first(script, arguments, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr('shutil.disk_usage', lambda path: mock.Mock(free=2**12))
    assert 'GB of room' in refusal(capsys, script, *arguments('--num_steps', 9))
    assert not (tmp_path / 'ckpt' / 'checkpoints').exists()


def test_start_step(script, arguments, tmp_path, capsys):
    argv = arguments('--num_steps', 6, '--ckpt_interval', 2, '--keep_checkpoints', 9)
    assert run(script, *argv) == 0
    os.rename(tmp_path / 'ckpt' / 'model', tmp_path / 'model')
    assert run(script, *argv, '--start_step', '2') == 0
    assert_same_model(tmp_path / 'ckpt', tmp_path)
    assert 'has no checkpoint of step 3' in refusal(capsys, script, *argv, '--start_step', '3')


def test_phase_2_goes_on_with_the_parameters_of_phase_1(script, arguments, data, tmp_path, capsys):
    argv = arguments('--num_steps', 4, '--warmup_ratio', 0)
    assert run(script, *argv) == 0
    folder = tmp_path / 'ckpt'
    phase1 = parameters(folder / 'model' / 'model.safetensors')
    phase2 = [*argv, '--phase2', '--phase1_num_steps', '4', '--lr', '0', '--num_steps', '3']
    assert run(script, *phase2) == 0
    assert_equal(parameters(folder / 'model' / 'model.safetensors'), phase1)
    state = json.loads(next((folder / 'checkpoints_phase2').glob('*/state.json')).read_text())
    assert state['state']['step'] == 3
    assert state['update_counts']['num_update'] == 7  # of the optimizer, whose moments go on
    assert len(checkpoints(folder)) == 1
    assert (folder / 'log_phase2.txt').is_file()
    for wrong in ([*argv, '--phase2'], [*phase2, '--start_step', '2']):
        with refuses(says='phase1_num_steps'):
            script.main(list(map(str, wrong)))


def test_synthetic_data_and_profile(script, arguments, data, tmp_path):
    argv = arguments('--synthetic_data', '--max_length', LENGTH, '--num_steps', 14)
    path = tmp_path / 'profile' / 'events.json'
    argv += ['--max_predictions_per_seq', MASKS, '--profile', path, '--data', data / 'none*.npz']
    assert run(script, *argv) == 0
    assert json.loads(path.read_text())['traceEvents']
    log = (tmp_path / 'ckpt' / 'log_phase1.txt').read_text()
    assert 'FullyConnected' in log


def test_max_eval_steps_cuts_after_so_many_batches(script, arguments, data, tmp_path):
    """The scores are those of a file with exactly the samples of these batches."""
    assert run(script, *arguments('--num_steps', 2)) == 0
    first, vocab = tmp_path / 'first.npz', load_vocab(str(data / 'vocab.txt'))
    write_shard(str(first), make_samples(18, 2).take(slice(4)), vocab)
    argv = ['--model', tmp_path / 'ckpt' / 'model', '--batch_size_eval', 4]
    argv += ['--output_dir', tmp_path / 'evaluation']
    scores = []
    for more in (['--data_eval', data / 'eval.npz', '--max_eval_steps', 1], ['--data_eval', first]):
        assert run(script, *argv, *more) == 0
        scores.append(read_json(tmp_path / 'evaluation', 'evaluation.json')['eval'])
    assert scores[0] == scores[1]
