"""The converter of checkpoints, end to end."""

import os
import pathlib
import pickle

import numpy as np
import pytest
from arrays import assert_equal
from script_runs import load_script, refusal, run

from model_zoo.checkpoint import read_tensors
from transfo_xl import TransfoXLCorpus

convert_checkpoint = load_script('convert_checkpoint')


@pytest.fixture
def convert(fixtures, tmp_path):
    """Run the converter on a fixture or on what it has written; gives its exit status."""

    def convert(family, target, source, output, *flags):
        path = fixtures / 'checkpoints' / source
        path = path if path.exists() else tmp_path / source
        argv = ['--family', family, '--to', target, path, tmp_path / output, *flags]
        return run(convert_checkpoint, *argv)

    return convert


def tensors_of(folder, name):
    return read_tensors(folder / name)[0]


def test_gluonnlp_there_and_back(convert, fixtures, tmp_path):
    assert convert('bert', 'gluonnlp', 'bert_transformers', 'gluon') == 0
    names = tensors_of(tmp_path / 'gluon', 'model.params')
    assert 'bert.encoder.transformer_cells.0.ffn.ffn_1.weight' in names
    assert convert('bert', 'huggingface', 'gluon', 'back', '--from', 'gluonnlp') == 0
    theirs = tensors_of(fixtures / 'checkpoints' / 'bert_transformers', 'model.safetensors')
    ours = tensors_of(tmp_path / 'back', 'model.safetensors')
    assert_equal({name: ours[name] for name in theirs}, theirs)


def test_vocabulary_goes_along(convert, fixtures, tmp_path):
    assert convert('bert', 'huggingface', 'bert_transformers', 'hf') == 0
    assert not (tmp_path / 'hf' / 'vocab.txt').exists()
    vocab = (fixtures / 'checkpoints' / 'bert_tensorflow' / 'vocab.txt').read_text()
    (tmp_path / 'hf' / 'vocab.txt').write_text(vocab)
    assert convert('bert', 'native', 'hf', 'own') == 0
    assert (tmp_path / 'own' / 'vocab.txt').read_text() == vocab


def test_parts_are_left_out_with_a_warning(convert, capsys):
    assert convert('bert', 'native', 'bert_transformers', 'own', '--model', 'BertForMaskedLM') == 0
    said = capsys.readouterr().err
    assert 'left out: ' in said and 'pooler.weight' in said and 'BertForMaskedLM' in said


def test_other_weights_are_not_shadowed(convert, capsys):
    assert convert('bert', 'native', 'bert_transformers', 'out') == 0
    assert convert('bert', 'huggingface', 'bert_transformers', 'out') == 1
    assert "already has weights, 'model.params'" in capsys.readouterr().err
    assert convert('bert', 'native', 'bert_transformers', 'out') == 0  # the same ones: replaced


def test_without_a_configuration(convert, fixtures, tmp_path, capsys):
    assert convert('gpt2', 'huggingface', 'gpt2_transformers', 'hf') == 0
    os.rename(tmp_path / 'hf' / 'config.json', tmp_path / 'config.json')
    assert convert('gpt2', 'native', 'hf', 'own') == 1
    said = capsys.readouterr().err
    assert 'has no configuration: put config.json' in said and 'name its --config' in said
    assert convert('gpt2', 'native', 'hf', 'own', '--config', str(tmp_path / 'config.json')) == 0


class Evil:
    def __reduce__(self):
        return os.system, ('touch evil',)


def test_a_corpus(fixtures, tmp_path, here, capsys):
    """Instead of weights or besides them; a pickle that would run something is refused."""
    source = fixtures / 'lm_pickles' / 'cache_2.pkl'
    ours, argv = ['--family', 'transfo_xl', '--to', 'native'], ['--corpus', source]
    weights = fixtures / 'checkpoints' / 'transfo_xl_tensorflow'
    assert run(convert_checkpoint, *ours, *argv, 'out') == 0
    assert sorted(os.listdir('out')) == ['corpus.npz', 'vocab.json']
    theirs, found = TransfoXLCorpus.from_file(source), TransfoXLCorpus.from_pretrained('out')
    assert found.vocab.idx2sym == theirs.vocab.idx2sym
    np.testing.assert_array_equal(found.train, theirs.train)
    assert run(convert_checkpoint, *ours, *argv, weights, 'both') == 0
    assert {'corpus.npz', 'vocab.json', 'model.params'} <= set(os.listdir('both'))
    for flags, problem in (
        ([*argv, '--family', 'bert'], '--corpus is of'),
        ([*argv, '--to', 'tensorflow'], '--to native or pytorch'),
        ([], 'name IN, the weights, or --corpus'),
    ):
        assert problem in refusal(capsys, convert_checkpoint, *ours, *flags, 'none')
    for content in (pickle.dumps({'vocab': Evil()}), b'', source.read_bytes()[:-9]):
        pathlib.Path('evil.pkl').write_bytes(content)
        refusal(capsys, convert_checkpoint, *ours, '--corpus', 'evil.pkl', 'none')
    assert not os.path.exists('evil') and not os.path.exists('none')
