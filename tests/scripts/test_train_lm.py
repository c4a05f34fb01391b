"""scripts/train_lm.py end to end: each family on a made-up text, tiny models."""

import json
import os
import shutil

import mxnet as mx
import numpy as np
import pytest
from contract import SIZES
from contract import lm as arguments
from script_runs import (
    SCRIPTS,
    assert_same_model,
    assert_two_workers_train_as_one,
    run,
    train_in_workers,
)
from toy_data import WORDS

from gpt2 import GPT2LMHeadModel
from gpt2.tokenizer import GPT2Tokenizer
from transfo_xl import TransfoXLLMHeadModel
from transfo_xl.tokenizer import TransfoXLTokenizer

CASE = 'train_lm gpt'


@pytest.fixture(scope='module')
def trained(toys):
    """Family -> output folder of a training."""
    return {family: toys(f'train_lm {family}').trained for family in SIZES}


@pytest.mark.parametrize('family', SIZES)
def test_perplexity_falls_and_files_are_written(trained, family, data):
    results = json.loads((trained[family] / 'results.json').read_text())
    first, last = (epoch['report']['dev'] for epoch in results['training']['epochs'])
    training = results['training']
    assert training['tokens_per_second'] > 0 and 'samples_per_second' not in training
    assert last['perplexity'] < first['perplexity'] < results['vocab_size'] / 3
    assert last['perplexity'] == pytest.approx(np.exp(last['loss']))
    words = len((data / 'eval.txt').read_text().split())
    assert last['words'] == pytest.approx(words, abs=8)  # streams leave out a few
    per_word = last['loss'] * last['tokens'] / last['words']
    assert last['word_perplexity'] == pytest.approx(np.exp(per_word))
    assert (trained[family] / 'curves.png').stat().st_size > 1000
    assert 'per token' in (trained[family] / 'log_lm.txt').read_text()
    assert {'config.json', 'model.params'} <= set(os.listdir(trained[family] / 'best_model'))


def test_gpt2_reads_its_folder(trained, data):
    folder = str(trained['gpt2'] / 'best_model')
    tokenizer = GPT2Tokenizer.from_pretrained(folder)
    model = GPT2LMHeadModel.from_pretrained(folder)
    assert len(tokenizer) == model.config.vocab_size == 290
    words = mx.nd.array([tokenizer.encode('the lobster')], dtype='int32')
    scores, _ = model(words)
    following = tokenizer.convert_ids_to_tokens(int(scores[0, -1].argmax(0).asscalar()))
    assert ' sea'.startswith(tokenizer.decode([tokenizer.encoder[following]]))


def test_transformer_xl_reads_its_folder(trained):
    folder = str(trained['transfo_xl'] / 'best_model')
    model = TransfoXLLMHeadModel.from_pretrained(folder)
    assert (model.config.tgt_len, model.config.mem_len) == (8, 8)
    tokenizer = TransfoXLTokenizer.from_pretrained(folder)
    assert len(tokenizer) == model.config.vocab_size == len(WORDS) + 2
    scores, _ = model(mx.nd.array([tokenizer.encode('the lobster')], dtype='int32'))
    assert tokenizer.get_sym(scores[0, -1].argmax(0).asscalar()) == 'sea'


@pytest.mark.parametrize('family', SIZES)
def test_evaluation_and_further_training_of_a_folder(script, trained, data, tmp_path, family):
    folder = trained[family] / 'best_model'
    argv = ['--model', folder, '--eval_file', data / 'eval.txt', '--output_dir', tmp_path]
    assert run(script, *argv) == 0
    found = json.loads((tmp_path / 'inference.json').read_text())['dev']['dev']
    expected = json.loads((trained[family] / 'results.json').read_text())['best']['dev']
    assert found['loss'] == pytest.approx(expected['loss'], abs=1e-5)
    train = ['--train_file', data / 'train.txt', '--training_steps', '3', '--lr', '1e-4']
    assert run(script, *argv, *train) == 0
    results = json.loads((tmp_path / 'results.json').read_text())
    assert results['training']['log'][0]['loss'] < 1.5 * expected['loss']


def test_vocabulary_and_cutoffs_of_transformer_xl(script, data, tmp_path):
    more = ['--learn_vocab', '9', '--cutoffs', '3', '6', '--training_steps', '2', '--ext_len', '4']
    assert run(script, *arguments(data, tmp_path, 'transfo_xl', *more)) == 0
    config = json.loads((tmp_path / 'best_model' / 'config.json').read_text())
    assert (config['vocab_size'], config['cutoffs'], config['ext_len']) == (8, [3, 6], 4)


def test_transformer_xl_in_float16_with_mirrored_layers(script, data, tmp_path):
    losses = []
    for name, more in (('full', []), ('half', ['--dtype', 'float16', '--mirror'])):
        more += ['--training_steps', '6', '--log_interval', '1']
        assert run(script, *arguments(data, tmp_path / name, 'transfo_xl', *more)) == 0
        training = json.loads((tmp_path / name / 'results.json').read_text())['training']
        losses.append(np.array([record['loss'] for record in training['log']]))
    assert 'loss_scale' in training['log'][0]
    full, half = losses
    assert len(full) == 6
    assert 0 < np.abs(half - full).max() < 1e-3 * full[0] and training['log'][-1]['skipped'] == 0


@pytest.mark.parametrize('family', ['gpt2', 'transfo_xl'])
def test_two_workers_train_as_one(script, data, tmp_path, family):
    def arguments_to(output, *more):
        return arguments(data, output, family, *more)

    assert_two_workers_train_as_one(script, SCRIPTS / 'train_lm.py', arguments_to, tmp_path)


def test_two_workers_remember_each_its_own_when_resumed(data, tmp_path):
    more = ['--training_steps', 4, '--ckpt_interval', 2, '--keep_checkpoints', 9]
    more += ['--comm_backend', 'horovod']
    argv = arguments(data, tmp_path / 'whole', 'transfo_xl', *more)
    train_in_workers(2, SCRIPTS / 'train_lm.py', *argv)
    shutil.copytree(tmp_path / 'whole', tmp_path / 'broken')
    for path in (tmp_path / 'broken' / 'checkpoints').glob('step-00000004-*'):
        shutil.rmtree(path)
    shutil.rmtree(tmp_path / 'broken' / 'best_model')
    argv = arguments(data, tmp_path / 'broken', 'transfo_xl', *more, '--resume')
    said = train_in_workers(2, SCRIPTS / 'train_lm.py', *argv)
    assert 'resuming from' in said and 'step-00000002' in said
    assert_same_model(tmp_path / 'whole', tmp_path / 'broken')
