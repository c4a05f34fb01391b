"""The comparison of checkpoints with their own software, end to end."""

import os
import pathlib
import subprocess
import sys

import mxnet as mx
import pytest
from script_runs import SCRIPTS, load_script, read_json, run
from variant_models import MAKERS

from model_zoo.registry import get_family

SCRIPT = SCRIPTS / 'compare_checkpoints.py'
compare_checkpoints = load_script('compare_checkpoints')

SMALL = ['--num_examples', '3', '--max_seq_length', '9']


@pytest.fixture
def originals():
    """Folder of the originals' repositories, as tests/oracle/make_checkpoint_fixtures.py wants."""
    folder = os.environ.get('ZOO_TEST_ORIGINALS')
    if not folder or not os.path.isdir(folder):
        pytest.skip('set ZOO_TEST_ORIGINALS to the folder of the originals')
    return pathlib.Path(folder)


def check(folder, expected):
    """The names that were compared, all within 1e-5; and the picture."""
    record = read_json(folder, 'comparison.json')
    assert [row['name'] for row in record['differences']] == expected
    for row in record['differences']:
        assert 0 <= row['std'] <= row['max'] < 1e-5
        assert row.get('same') == row.get('of')
    assert (folder / 'comparison.png').read_bytes().startswith(b'\x89PNG')


BERT = ['layer 1', 'layer 2', 'pooled vector', 'next sentence', 'masked words', 'answer start',
        'answer end', 'answer loss']  # fmt: skip
DECODER = ['layer 1', 'layer 2', 'next word']


@pytest.mark.peers
@pytest.mark.parametrize('software, family, name, expected', [
    ('transformers', 'bert', 'bert_transformers', BERT),
    ('transformers', 'gpt', 'gpt_transformers', DECODER),
    ('transformers', 'gpt2', 'gpt2_transformers', DECODER),
    ('pytorch-pretrained-bert', 'bert', 'bert_tensorflow', BERT),
    ('pytorch-pretrained-bert', 'gpt', 'gpt_transformers', DECODER),
    ('pytorch-pretrained-bert', 'gpt2', 'gpt2_tensorflow', DECODER),
])  # fmt: skip
def test_pytorch(fixtures, tmp_path, capsys, software, family, name, expected):
    pytest.importorskip(software.replace('-', '_'))
    if 'tensorflow' in name:
        pytest.importorskip('tensorflow')
    argv = [*SMALL, '--family', family, '--software', software, '--output_dir', tmp_path]
    assert run(compare_checkpoints, *argv, fixtures / 'checkpoints' / name) == 0
    check(tmp_path, expected)
    lines = capsys.readouterr().out.splitlines()
    assert [line[:24].strip() for line in lines if 'e-' in line] == expected


@pytest.mark.peers
@pytest.mark.parametrize('task', [None, 'classification'])
@pytest.mark.parametrize('family', MAKERS)
def test_models_like_bert(tmp_path, family, task):
    pytest.importorskip('transformers')
    block, tokenizer = MAKERS[family](tmp_path / 'vocab')
    block = block if task is None else get_family(family).tasks[task](block.config)
    block.initialize(mx.init.Normal(0.2))
    folder = tmp_path / 'model'
    block.save_pretrained(str(folder), tokenizer, format='huggingface')
    text = tmp_path / 'text.txt'
    text.write_text('the cat sat ||| on a mat\na red one\n')
    argv = ['--family', family, '--software', 'transformers', '--output_dir', tmp_path]
    for inputs in (SMALL, ['--input_file', text]):
        assert run(compare_checkpoints, *argv, *inputs, folder) == 0
        record = read_json(tmp_path, 'comparison.json')
        assert [row['name'] for row in record['differences']] == ['layer 1', 'output 1']
        assert all(row['max'] < 1e-5 for row in record['differences'])


@pytest.mark.peers
def test_real_text(fixtures, tmp_path):
    """Pairs of sentences through the checkpoint's vocabulary, some words masked."""
    pytest.importorskip('pytorch_pretrained_bert')
    pytest.importorskip('tensorflow')
    text = tmp_path / 'text.txt'
    text.write_text('a b c d e ||| f g h\n\ni j k\nl m n o p q r s t u v w x y z\n')
    software = 'pytorch-pretrained-bert'
    argv = ['--family', 'bert', '--software', software, '--output_dir', tmp_path]
    argv += ['--input_file', text, fixtures / 'checkpoints/bert_tensorflow']
    assert run(compare_checkpoints, *argv) == 0
    check(tmp_path, BERT)
    assert read_json(tmp_path, 'comparison.json')['shape'] == [3, 12]


@pytest.mark.peers
@pytest.mark.parametrize('family, name, code, expected', [
    ('bert', 'bert_tensorflow', 'bert', BERT),
    ('bert', 'bert_squad_tensorflow', 'bert', ['layer 1', *BERT[-3:]]),
    ('gpt2', 'gpt2_tensorflow', 'gpt-2', DECODER),
    ('transfo_xl', 'transfo_xl_tensorflow', 'transformer-xl',
     ['input of layer 1', 'input of layer 2', 'next word, mean loss']),
])  # fmt: skip
def test_tensorflow(fixtures, tmp_path, originals, family, name, code, expected):
    pytest.importorskip('tensorflow')
    argv = [*SMALL, '--family', family, '--software', 'tensorflow', '--output_dir', str(tmp_path),
            '--code', str(originals / code), str(fixtures / 'checkpoints' / name)]  # fmt: skip
    # in a process of its own: it switches TensorFlow to the behaviour of its first version
    subprocess.run([sys.executable, str(SCRIPT), *argv], check=True)
    check(tmp_path, expected)
