"""scripts/bertology.py end to end, on small random models, and on MRPC."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from script_runs import SCRIPTS, read_json, run

from bert import BertForSequenceClassification, BertTokenizer
from gpt2 import GPT2LMHeadModel

SCRIPT = SCRIPTS / 'bertology.py'

LAYERS, HEADS = 2, 4
TEXT = 'The cat sat on the mat, and the dog lay on the rug. It was a warm day in May.\n' * 6


@pytest.fixture(scope='module')
def bert(tmp_path_factory):
    """A folder with a BERT, and one with a task's dev set whose labels the model agrees with."""
    folder, data = tmp_path_factory.mktemp('model'), tmp_path_factory.mktemp('data')
    sizes = {'num_hidden_layers': LAYERS, 'num_attention_heads': HEADS, 'intermediate_size': 24}
    options = {**sizes, 'scale': 0.6, 'seed': 3}
    model = tiny.save_bert(folder, 'abcdefghijklmnop', BertForSequenceClassification, **options)
    tokenizer = BertTokenizer(folder / 'vocab.txt', do_lower_case=True)
    random, lines = np.random.RandomState(0), ['sentence\tlabel']
    for number in range(24):
        words = ' '.join(random.choice(list('abcdefghijklmnop'), random.randint(2, 12)))
        ids = mx.nd.array([tokenizer.encode(words).input_ids], dtype='int32')
        right = int(model(ids).argmax(axis=1).asscalar())
        lines.append(f'{words}\t{right if number % 8 else 1 - right}')
    (data / 'dev.tsv').write_text('\n'.join(lines) + '\n', 'utf-8')
    return folder, data


@pytest.fixture(scope='module')
def gpt2(tmp_path_factory):
    """A folder with a GPT-2, and a text."""
    folder = tmp_path_factory.mktemp('gpt2')
    (folder / 'text.txt').write_text(TEXT, 'utf-8')
    tiny.save_gpt2(folder, n_layer=LAYERS, n_head=HEADS)
    return folder


def check_pruning(results):
    """What holds of every pruning."""
    pruning = results['pruning']
    before, after, metric = pruning['before'], pruning['after'], pruning['metric']
    off = sum(len(heads) for heads in pruning['pruned_heads'].values())
    assert after['heads'] == LAYERS * HEADS - off == np.sum(pruning['head_mask'])
    # query, key, value with their biases, and output of each head
    assert before['parameters'] - after['parameters'] == off * (4 * 16 * 4 + 3 * 4)
    assert after[metric] == pytest.approx(pruning['masked'][metric], rel=1e-4)
    accepted = [step for step in pruning['steps'] if step['accepted']]
    score = accepted[-1]['score'] if accepted else before[metric]
    assert after[metric] == pytest.approx(score, rel=1e-4)
    assert before[metric] == results['scores'][metric]
    assert pruning['speedup'] > 0
    return pruning


def test_bert_on_a_task(script, bert, tmp_path):
    model, data = bert
    common = ['--model_name_or_path', model, '--task_name', 'SST-2', '--data_dir', data]
    common += ['--try_masking', '--masking_threshold', 0.7, '--max_length', 16]
    assert run(script, *common, '--output_dir', tmp_path) == 0
    results = read_json(tmp_path)
    assert results['scores'] == {'accuracy': 0.875}
    assert np.shape(results['entropy']) == np.shape(results['importance']) == (LAYERS, HEADS)
    assert np.min(results['importance']) == 0 and np.max(results['importance']) == 1
    ranks = [rank for row in results['ranks'] for rank in row]
    assert ranks[np.argmax(results['importance'])] == 0 and type(ranks[0]) is int
    assert sorted(ranks) == list(range(LAYERS * HEADS))
    pruning = check_pruning(results)
    assert pruning['pruned_heads'] and pruning['after']['accuracy'] >= 0.7 * 0.875

    # the pruned model can be looked at again: it has what the other lacks
    argv = ['--model', tmp_path / 'pruned_model', *common[2:], '--output_dir', tmp_path / 'again']
    assert run(script, *argv) == 0
    second = read_json(tmp_path / 'again')
    assert second['scores'] == {'accuracy': pruning['after']['accuracy']}
    mask = np.array(pruning['head_mask'])
    assert [[value is not None for value in row] for row in second['importance']] == mask.tolist()
    assert second['pruning']['before']['heads'] == mask.sum()


def test_a_language_model(script, gpt2, tmp_path):
    argv = ['--model', gpt2, '--dev_file', gpt2 / 'text.txt', '--try_masking']
    argv += ['--output_dir', tmp_path, '--max_length', 12]
    assert run(script, *argv) == 0
    results = read_json(tmp_path)
    assert results['scores']['perplexity'] == pytest.approx(1 / results['scores']['likelihood'])
    check_pruning(results)
    pruned = GPT2LMHeadModel.from_pretrained(str(tmp_path / 'pruned_model'))
    heads = [attention.num_heads for attention in pruned.transformer.attentions()]
    assert heads == np.sum(results['pruning']['head_mask'], axis=1).tolist()


def test_normalization_flags_and_subset(script, gpt2, tmp_path):
    argv = ['--model', gpt2, '--dev_file', gpt2 / 'text.txt', '--max_length', 12]
    argv += ['--data_subset', 3, '--output_dir', tmp_path]
    raw = ['--dont_normalize_importance_by_layer', '--dont_normalize_global_importance']
    assert run(script, *argv, *raw) == 0
    importance = np.array(read_json(tmp_path)['importance'])
    assert run(script, *argv, raw[1]) == 0
    by_layer = np.array(read_json(tmp_path)['importance'])
    np.testing.assert_allclose((by_layer**2).sum(1), 1)
    expected = importance / np.sqrt((importance**2).sum(1, keepdims=True))
    np.testing.assert_allclose(by_layer, expected, rtol=1e-4)
