"""scripts/train_lm.py end to end: each family on a made-up text, tiny models."""

import mxnet as mx
import numpy as np
import pytest
from contract import SIZES
from contract import lm as arguments
from script_runs import read_json, run
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
    results = read_json(trained[family])
    first, last = (epoch['report']['dev'] for epoch in results['training']['epochs'])
    training = results['training']
    assert training['tokens_per_second'] > 0 and 'samples_per_second' not in training
    assert last['perplexity'] < first['perplexity'] < results['vocab_size'] / 3
    assert last['perplexity'] == pytest.approx(np.exp(last['loss']))
    words = len((data / 'eval.txt').read_text().split())
    assert last['words'] == pytest.approx(words, abs=8)  # streams leave out a few
    per_word = last['loss'] * last['tokens'] / last['words']
    assert last['word_perplexity'] == pytest.approx(np.exp(per_word))
    assert 'per token' in (trained[family] / 'log_lm.txt').read_text()


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


def test_vocabulary_and_cutoffs_of_transformer_xl(script, data, tmp_path):
    more = ['--learn_vocab', '9', '--cutoffs', '3', '6', '--training_steps', '2', '--ext_len', '4']
    assert run(script, *arguments(data, tmp_path, 'transfo_xl', *more)) == 0
    config = read_json(tmp_path / 'best_model', 'config.json')
    assert (config['vocab_size'], config['cutoffs'], config['ext_len']) == (8, [3, 6], 4)


def test_transformer_xl_in_float16(script, data, tmp_path):
    losses = []
    for name, more in (('full', []), ('half', ['--dtype', 'float16'])):
        more += ['--training_steps', '6', '--log_interval', '1']
        assert run(script, *arguments(data, tmp_path / name, 'transfo_xl', *more)) == 0
        training = read_json(tmp_path / name)['training']
        losses.append(np.array([record['loss'] for record in training['log']]))
    assert 'loss_scale' in training['log'][0]
    full, half = losses
    assert len(full) == 6
    assert 0 < np.abs(half - full).max() < 1e-3 * full[0] and training['log'][-1]['skipped'] == 0
