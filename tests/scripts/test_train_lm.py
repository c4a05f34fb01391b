"""scripts/train_lm.py end to end: each family on a made-up text, tiny models."""

import importlib.util
import json
import os
import pathlib
import random
import re
import signal
import string

import mxnet as mx
import numpy as np
import pytest

from gpt2 import GPT2LMHeadModel
from gpt2.tokenizer import GPT2Tokenizer
from model_zoo.app import cli
from model_zoo.checkpoint import read_tensors
from transfo_xl import TransfoXLLMHeadModel
from transfo_xl.tokenizer import TransfoXLTokenizer

SCRIPT = pathlib.Path(__file__).parents[2] / 'scripts' / 'train_lm.py'
SIZES = {
    'gpt': 'num_layers=1,units=32,num_heads=2,max_length=16,dropout=0',
    'gpt2': 'num_layers=1,units=32,num_heads=2,max_length=16,dropout=0',
    'transfo_xl': 'num_layers=1,units=32,embed_size=32,hidden_size=64,num_heads=2,head_size=16,'
    'div_val=2,dropout=0',
}
WORDS = ['the', 'lobster', 'sea', 'claw', 'blue', 'red', 'old', 'sees', 'eats', 'and']


@pytest.fixture(scope='module')
def script():
    spec = importlib.util.spec_from_file_location('train_lm', SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """Texts in which a word says which one follows, most of the time; and GPT's vocabulary."""
    folder = tmp_path_factory.mktemp('data')
    rng = random.Random(1)
    for name, lines in (('train', 150), ('eval', 30)):
        text = []
        for _ in range(lines):
            place, line = rng.randrange(len(WORDS)), []
            for _ in range(rng.randint(4, 12)):
                line.append(WORDS[place])
                place = (place + 1) % len(WORDS) if rng.random() < 0.9 else rng.randrange(10)
            text.append(' '.join(line))
        (folder / f'{name}.txt').write_text('\n'.join(text) + '\n')
    letters = string.ascii_lowercase
    tokens = ['<unk>', *letters, *(f'{letter}</w>' for letter in letters), 'th', 'the</w>']
    (folder / 'vocab.json').write_text(json.dumps({t: n for n, t in enumerate(tokens)}))
    (folder / 'merges.txt').write_text('#version: 0.2\nt h\nth e</w>\n')
    return folder


def arguments(data, output, family, *more):
    """The command line for a small model."""
    vocab = {
        'gpt': ['--vocab_file', data],  # the folder
        'gpt2': ['--learn_vocab', '290'],
        'transfo_xl': ['--tgt_len', '8', '--mem_len', '8'],
    }
    texts = ['--train_file', data / 'train.txt', '--eval_file', data / 'eval.txt']
    model = ['--family', family, '--from_scratch', '--hparams', SIZES[family], *vocab[family]]
    options = ['--lr', '1e-2', '--batch_size', '4', '--log_interval', '10', '--epochs', '2']
    return [*texts, *model, *options, '--output_dir', output, *more]


def run(script, argv):
    return cli.run(script.main, list(map(str, argv)))


@pytest.fixture(scope='module')
def trained(script, data, tmp_path_factory):
    """Family -> output folder of a training."""
    folders = {family: tmp_path_factory.mktemp(family) for family in SIZES}
    for family, output in folders.items():
        assert run(script, arguments(data, output, family)) == 0
    return folders


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
    assert run(script, argv) == 0
    found = json.loads((tmp_path / 'inference.json').read_text())['dev']['dev']
    expected = json.loads((trained[family] / 'results.json').read_text())['best']['dev']
    assert found['loss'] == pytest.approx(expected['loss'], abs=1e-5)
    train = ['--train_file', data / 'train.txt', '--training_steps', '3', '--lr', '1e-4']
    assert run(script, [*argv, *train]) == 0
    results = json.loads((tmp_path / 'results.json').read_text())
    assert results['training']['log'][0]['loss'] < 1.5 * expected['loss']


@pytest.mark.parametrize('family', ['gpt2', 'transfo_xl'])
def test_interrupted_and_resumed_is_as_unbroken(
    script, data, tmp_path, monkeypatch, capsys, family
):
    """Also in the middle of an epoch, with what Transformer-XL remembers."""
    whole, broken = tmp_path / 'whole', tmp_path / 'broken'
    steps = ['--training_steps', '9']
    assert run(script, arguments(data, whole, family, *steps)) == 0
    kind = script.StreamModel if family == 'transfo_xl' else script.BlockModel
    mean_loss, calls = kind.mean_loss, []

    def interrupting(self, batch):
        calls.append(1)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return mean_loss(self, batch)

    monkeypatch.setattr(kind, 'mean_loss', interrupting)
    assert run(script, arguments(data, broken, family, *steps)) == 130
    assert len(calls) == 5 and '--resume' in capsys.readouterr().err
    argv = arguments(data, broken, family, *steps, '--resume')
    assert run(script, [*argv, '--lr', '1e-3']) == 1
    assert '--lr is 0.001 and was 0.01' in capsys.readouterr().err
    assert run(script, argv) == 0
    one, other = (read_tensors(path / 'best_model' / 'model.params')[0] for path in (whole, broken))
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_vocabulary_and_cutoffs_of_transformer_xl(script, data, tmp_path):
    more = ['--learn_vocab', '9', '--cutoffs', '3', '6', '--training_steps', '2', '--ext_len', '4']
    assert run(script, arguments(data, tmp_path, 'transfo_xl', *more)) == 0
    config = json.loads((tmp_path / 'best_model' / 'config.json').read_text())
    assert (config['vocab_size'], config['cutoffs'], config['ext_len']) == (8, [3, 6], 4)


@pytest.mark.parametrize(
    ('argv', 'message'),
    [
        (['--family', 'gpt2', '--eval_file', 'none.txt'], "--eval_file 'none.txt': no such file"),
        (['--eval_file', 'EVAL'], 'give --model, a name or a folder, or --family'),
        (['--eval_file', 'EVAL', '--model', 'gpt3'], "unknown pretrained model 'gpt3'"),
        (['--eval_file', 'EVAL', '--model', 'bert_12_768_12'], 'is a bert: give one of gpt, gpt2'),
        (['--eval_file', 'EVAL', '--model', 'gpt2', '--family', 'gpt'], "--model 'gpt2' is a gpt2"),
        (['--eval_file', 'EVAL', '--model', 'FOLDER'], 'config.json does not tell the family'),
        (['--family', 'gpt2', '--mem_len', '4'], '--mem_len is not for gpt2: leave it out'),
        (['--family', 'transfo_xl', '--block_size', '4'], '--block_size is not for transfo_xl'),
        (['--family', 'transfo_xl', '--cutoffs', '4'], '--cutoffs needs --from_scratch'),
        (['--family', 'gpt2', '--learn_vocab', '300'], '--learn_vocab needs --from_scratch and'),
        (['NEW', '--family', 'gpt', '--learn_vocab', '300'], '--learn_vocab learns GPT-2'),
        (['NEW', '--family', 'gpt2', '--learn_vocab', '9'], '9 byte pairs is too small: give 258'),
        (['NEW', '--family', 'gpt2', '--learn_vocab', '0'], '--learn_vocab 0: give 1 or more'),
        (
            ['NEW', '--family', 'gpt', '--vocab_file', 'FOLDER', '--block_size', '17',
             '--hparams', 'num_layers=1,max_length=16'],
            '--block_size 17: give 2 to 16',
        ),
        (['NEW', '--family', 'gpt', '--vocab_file', 'FOLDER', '--tgt_len', '0'], '--tgt_len 0'),
        (['--family', 'gpt2', '--resume'], '--resume continues a training'),
        (['--family', 'gpt2', '--max_grad_norm', '-1'], '--max_grad_norm -1.0: give'),
        (
            ['NEW', '--family', 'transfo_xl', '--cutoffs', '6', '3', '--hparams',
             SIZES['transfo_xl']],
            'cutoffs must be ascending',
        ),
        (
            ['NEW', '--family', 'transfo_xl', '--batch_size', '5000', '--hparams',
             SIZES['transfo_xl']],
            'is too short for a batch_size of 5000',
        ),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(script, data, tmp_path, capsys, argv, message):
    folder = tmp_path / 'folder'
    folder.mkdir()
    for name in ('vocab.json', 'merges.txt'):
        (folder / name).write_text((data / name).read_text())
    names = {
        'EVAL': [data / 'eval.txt'],
        'FOLDER': [folder],
        'NEW': ['--from_scratch', '--train_file', data / 'train.txt'],
    }
    argv = [part for word in argv for part in names.get(word, [word])]
    if '--eval_file' not in argv:
        argv += ['--eval_file', data / 'eval.txt']
    assert run(script, [*argv, '--output_dir', tmp_path / 'out']) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith('error: ')]
    assert len(lines) == 1
    assert re.search(message, lines[0]), lines[0]
