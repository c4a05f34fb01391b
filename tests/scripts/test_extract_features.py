"""scripts/extract_features.py end to end, on a small random model."""

import json
import re

import mxnet as mx
import numpy as np
import pytest
import tiny
from script_runs import SCRIPTS, run

from bert import BertModel, BertTokenizer

SCRIPT = SCRIPTS / 'extract_features.py'

WORDS = [*'abcdefghij', '.', '##x', 'ä', '|']
NUMBER = r'(?<=[ \[])-?\d+\.\d+(?:e-\d+)?'
LINES = [
    'a b c',
    'a bx . ||| c ||| d e',  # the last separator counts
    '',
    ' h i j h i j h i j h i j ||| a a a ',
    'ä A',
    'a |||b',
]


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A model's folder, and input.txt."""
    folder = tmp_path_factory.mktemp('model')
    (folder / 'input.txt').write_text('\n'.join(LINES) + '\n', 'utf-8')
    tiny.save_bert(folder, WORDS, cased=True, seed=3, num_hidden_layers=3)
    return folder


def extract(script, folder, output, *more):
    argv = ['--input_file', folder / 'input.txt', '--output_file', output]
    argv += [] if '--init_checkpoint' in more else ['--model', folder]
    return run(script, *argv, *more)


@pytest.fixture(scope='module')
def output(script, folder):
    path = folder / 'output.jsonl'
    assert extract(script, folder, path, '--layers', '-1,0', '--max_length', 12) == 0
    return path


def expected(folder, texts, pair=None, max_length=12):
    """Tokens and the states of all layers for one text, found without batches."""
    tokenizer = BertTokenizer(folder / 'vocab.txt', do_lower_case=False)
    row = tokenizer.encode(texts, pair, max_length=max_length)
    model = BertModel.from_pretrained(str(folder), output_all_encodings=True, use_pooler=False)
    words, types = (mx.nd.array([each], dtype='int32') for each in (row.input_ids, row.token_types))
    return row.tokens, [state[0].asnumpy() for state in model(words, types)]


def test_values(output, folder):
    texts = [['a b c'], ['a bx . ||| c', 'd e'], [''], ['h i j ' * 4, 'a a a'], ['ä A'], ['a |||b']]
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    for row, text in zip(rows, texts):
        tokens, states = expected(folder, *text)
        assert list(row) == ['linex_index', 'features']
        assert [feature['token'] for feature in row['features']] == tokens
        for place, layer in enumerate((2, 0)):
            values = [feature['layers'][place]['values'] for feature in row['features']]
            np.testing.assert_allclose(values, states[layer], atol=2e-6)
    tokens = [[feature['token'] for feature in row['features']] for row in rows]
    assert ' '.join(tokens[1]) == '[CLS] a b ##x . | | | [SEP] d e [SEP]'
    assert tokens[2] == ['[CLS]', '[SEP]'] and len(tokens[3]) == 12
    assert tokens[4] == ['[CLS]', 'ä', '[UNK]', '[SEP]']


def test_googles_command_line(script, folder, output, tmp_path):
    files = ['--init_checkpoint', folder / 'model.params', '--vocab_file', folder / 'vocab.txt']
    files += ['--bert_config_file', folder / 'config.json', '--do_lower_case=False']
    options = ['--layers=-1,0', '--max_length=12', '--batch_size=8']
    assert extract(script, folder, tmp_path / 'x.jsonl', *files, *options) == 0
    one, other = (path.read_text() for path in (tmp_path / 'x.jsonl', output))
    assert re.sub(NUMBER, '', one) == re.sub(NUMBER, '', other)
    left, right = (list(map(float, re.findall(NUMBER, text))) for text in (one, other))
    assert len(left) > 1000
    np.testing.assert_allclose(left, right, atol=2e-6)
    # upper case is unknown to this vocabulary
    files[-1] = '--do_lower_case'
    assert extract(script, folder, tmp_path / 'x.jsonl', *files, *options) == 0
    row = json.loads((tmp_path / 'x.jsonl').read_text().splitlines()[4])
    assert [each['token'] for each in row['features']] == ['[CLS]', 'a', 'a', '[SEP]']


def test_lines_that_look_like_pairs(script, folder, tmp_path):
    flags = ['--layers=0', '--max_length=12', '--input_file', tmp_path / 'pairs.txt']
    lines = ['a|||b', 'a ||| b', '||| b', 'a ||| ', 'a|||b ||| c', 'a | b', ' |||', 'a ||| b|||']
    (tmp_path / 'pairs.txt').write_text('\n'.join(lines) + '\n', 'utf-8')
    assert extract(script, folder, tmp_path / 'x.jsonl', *flags) == 0
    rows = [json.loads(line) for line in (tmp_path / 'x.jsonl').read_text().splitlines()]
    tokens = [[feature['token'] for feature in row['features']] for row in rows]
    assert [row.count('[SEP]') for row in tokens] == [1, 2, 1, 1, 2, 1, 1, 2]
