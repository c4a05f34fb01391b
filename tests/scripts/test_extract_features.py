"""scripts/extract_features.py end to end, on a small random model."""

import importlib.util
import json
import pathlib
import re

import mxnet as mx
import numpy as np
import pytest

from bert import BertConfig, BertModel, BertTokenizer
from model_zoo import cli

SCRIPT = pathlib.Path(__file__).parents[2] / 'scripts' / 'extract_features.py'
TOKENS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *'abcdefghij', '.', '##x', 'ä', '|']
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
def script():
    spec = importlib.util.spec_from_file_location('extract_features', SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A model's folder, and input.txt."""
    folder = tmp_path_factory.mktemp('model')
    (folder / 'vocab.txt').write_text('\n'.join(TOKENS) + '\n', 'utf-8')
    (folder / 'input.txt').write_text('\n'.join(LINES) + '\n', 'utf-8')
    mx.random.seed(3)
    model = BertModel(BertConfig(
        vocab_size=len(TOKENS), hidden_size=16, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=24,
    ))  # fmt: skip
    model.initialize(mx.init.Normal(0.5))
    model.save_pretrained(str(folder), BertTokenizer(folder / 'vocab.txt', do_lower_case=False))
    return folder


def run(script, folder, output, *more):
    argv = ['--input_file', folder / 'input.txt', '--output_file', output]
    argv += [] if '--init_checkpoint' in more else ['--bert_model', folder]
    return cli.run(script.main, list(map(str, [*argv, *more])))


@pytest.fixture(scope='module')
def output(script, folder):
    path = folder / 'output.jsonl'
    assert run(script, folder, path, '--layers', '-1,0', '--max_seq_length', 12) == 0
    return path


def expected(folder, texts, pair=None, max_length=12):
    """Tokens and the states of all layers for one text, found without batches."""
    tokenizer = BertTokenizer(folder / 'vocab.txt', do_lower_case=False)
    row = tokenizer.encode(texts, pair, max_length=max_length)
    model = BertModel.from_pretrained(str(folder), output_all_encodings=True, use_pooler=False)
    words, types = (mx.nd.array([each], dtype='int32') for each in (row.input_ids, row.token_types))
    return row.tokens, [state[0].asnumpy() for state in model(words, types)]


def test_structure_is_googles(output):
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [list(row) for row in rows] == [['linex_index', 'features']] * len(LINES)
    assert [row['linex_index'] for row in rows] == list(range(len(LINES)))
    for row in rows:
        for feature in row['features']:
            assert list(feature) == ['token', 'layers']
            assert [list(layer) for layer in feature['layers']] == [['index', 'values']] * 2
            assert [layer['index'] for layer in feature['layers']] == [-1, 0]
            for layer in feature['layers']:
                assert len(layer['values']) == 16
                assert layer['values'] == [round(value, 6) for value in layer['values']]
    assert output.read_bytes().isascii()  # as json.dumps of the original


def test_values(output, folder):
    texts = [('a b c', None), ('a bx . ||| c', 'd e'), ('', None),
             ('h i j h i j h i j h i j', 'a a a'), ('ä A', None), ('a |||b', None)]  # fmt: skip
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    for row, (text, pair) in zip(rows, texts):
        tokens, states = expected(folder, text, pair)
        assert [feature['token'] for feature in row['features']] == tokens
        for place, layer in enumerate((2, 0)):
            values = [feature['layers'][place]['values'] for feature in row['features']]
            np.testing.assert_allclose(values, states[layer], atol=2e-6)
    tokens = [[feature['token'] for feature in row['features']] for row in rows]
    assert ' '.join(tokens[1]) == '[CLS] a b ##x . | | | [SEP] d e [SEP]'
    assert tokens[2] == ['[CLS]', '[SEP]'] and len(tokens[3]) == 12
    assert tokens[4] == ['[CLS]', 'ä', '[UNK]', '[SEP]']


@pytest.mark.parametrize('batch_size', [1, 2, 32])
def test_arrays_hold_the_same(script, output, folder, tmp_path, batch_size):
    options = ['--layers=-1,0', '--max_seq_length', 12, '--batch_size', batch_size]
    assert run(script, folder, tmp_path / 'x.npz', *options) == 0
    with np.load(tmp_path / 'x.npz', allow_pickle=False) as file:
        arrays = dict(file)
    assert arrays['layers'].tolist() == [-1, 0] and arrays['values'].dtype == np.float32
    assert arrays['bounds'].shape == (len(LINES) + 1,)
    bounds = zip(arrays['bounds'], arrays['bounds'][1:])
    for line, (start, stop) in zip(output.read_text().splitlines(), bounds):
        features = json.loads(line)['features']
        assert arrays['tokens'][start:stop].tolist() == [each['token'] for each in features]
        values = [[layer['values'] for layer in each['layers']] for each in features]
        np.testing.assert_allclose(arrays['values'][start:stop], values, atol=2e-6)
    assert arrays['values'].shape == (arrays['bounds'][-1], 2, 16)


def test_googles_command_line(script, folder, output, tmp_path):
    files = ['--init_checkpoint', folder / 'model.params', '--vocab_file', folder / 'vocab.txt']
    files += ['--bert_config_file', folder / 'config.json', '--do_lower_case=False']
    options = ['--layers=-1,0', '--max_seq_length=12', '--batch_size=8']
    assert run(script, folder, tmp_path / 'x.jsonl', *files, *options) == 0
    one, other = (path.read_text() for path in (tmp_path / 'x.jsonl', output))
    assert re.sub(NUMBER, '', one) == re.sub(NUMBER, '', other)
    left, right = (list(map(float, re.findall(NUMBER, text))) for text in (one, other))
    assert len(left) > 1000
    np.testing.assert_allclose(left, right, atol=2e-6)
    # upper case is unknown to this vocabulary
    files[-1] = '--do_lower_case'
    assert run(script, folder, tmp_path / 'x.jsonl', *files, *options) == 0
    row = json.loads((tmp_path / 'x.jsonl').read_text().splitlines()[4])
    assert [each['token'] for each in row['features']] == ['[CLS]', 'a', 'a', '[SEP]']


def test_lines_that_are_cut_are_counted(script, folder, tmp_path, capsys):
    assert run(script, folder, tmp_path / 'x.npz', '--layers=0', '--max_seq_length=12') == 0
    assert '2 of 6 lines have more than 12 tokens and were cut' in capsys.readouterr().err
    assert run(script, folder, tmp_path / 'x.npz', '--layers=0', '--max_seq_length=24') == 0
    told = capsys.readouterr().err
    assert 'were cut' not in told and '6 lines' in told


def test_input_is_not_held_in_memory(script, folder, tmp_path):
    """After a pool of batches its vectors are handed out before more lines are read."""
    parse = ['--input_file', 'x', '--output_file', 'y', '--bert_model', str(folder), '--layers=-1']
    args = script.parse_arguments([*parse, '--batch_size', '2', '--max_seq_length', '12'])
    model, tokenizer = script.make_model(args, mx.cpu())
    taken = []
    lines = (taken.append(number) or 'a b' for number in range(100))
    results = script.extract(args, model, tokenizer, lines, mx.cpu())
    for count in range(1, 30):
        next(results)
        assert len(taken) <= count + 2 * script.POOL


def test_failure_leaves_no_half_file(script, folder, tmp_path, monkeypatch):
    path = tmp_path / 'x.npz'
    path.write_text('old')
    original = script.extract

    def failing(*args):
        yield next(original(*args))
        raise script.InputError('enough')

    monkeypatch.setattr(script, 'extract', failing)
    assert run(script, folder, path, '--max_seq_length', '12') == 1
    assert path.read_text() == 'old' and [each.name for each in tmp_path.iterdir()] == ['x.npz']


def test_outputs_that_are_not_finite(script, folder, tmp_path, monkeypatch, capsys):
    original = script.make_model

    def make_model(*args):
        model, tokenizer = original(*args)
        model.word_embed.weight.data()[TOKENS.index('ä')] = np.inf
        return model, tokenizer

    monkeypatch.setattr(script, 'make_model', make_model)
    assert run(script, folder, tmp_path / 'x.jsonl', '--layers=0', '--max_seq_length=12') == 1
    assert "error: the model's outputs are not finite for 'ä A" in capsys.readouterr().err
    assert not (tmp_path / 'x.jsonl').exists()


@pytest.mark.parametrize(
    ('argv', 'message'),
    [
        (['--layers', '3'], '--layers 3: the model has 3 layers: give numbers from -3 to 2'),
        (['--layers', '-4'], '--layers -4: the model has 3 layers'),
        (['--layers', '-1'], '--max_seq_length 128: the model takes 24 tokens at most'),
        (['--max_seq_length', '2'], '--max_seq_length 2: give 3 or more'),
        (['--batch_size', '0'], '--batch_size 0: give 1 or more'),
        (['--input_file', 'none.txt'], "--input_file 'none.txt': no such file"),
        (['--input_file', 'EMPTY'], '--input_file .* is empty'),
        (['--input_file', 'LATIN'], 'latin.txt, line 2: byte 0xe4 at position 0 is not UTF-8'),
        (['--output_file', 'INPUT'], '--output_file .* is the input'),
        (['--output_file', 'no/x.jsonl', '--layers=0', '--max_seq_length=9'], 'cannot write'),
        (['--init_checkpoint', 'x.ckpt'], '--init_checkpoint, --bert_config_file and --vocab_file'),
    ],
)
def test_bad_input_is_one_clear_line(script, folder, tmp_path, capsys, argv, message):
    (tmp_path / 'empty.txt').touch()
    (tmp_path / 'latin.txt').write_bytes(b'a\n\xe4\n')
    names = {
        'EMPTY': tmp_path / 'empty.txt',
        'LATIN': tmp_path / 'latin.txt',
        'INPUT': folder / 'input.txt',
    }
    argv = [names.get(word, word) for word in argv]
    assert run(script, folder, tmp_path / 'x.jsonl', *argv) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith('error: ')]
    assert len(lines) == 1
    assert re.search(message, lines[0])


def test_bad_layers(script, folder, tmp_path, capsys):
    with pytest.raises(SystemExit):
        run(script, folder, tmp_path / 'x.jsonl', '--layers', '1,x')
    assert "argument --layers: invalid layer_numbers value: '1,x'" in capsys.readouterr().err
