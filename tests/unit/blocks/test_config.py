"""The base of the configurations: JSON there and back, and what can't be right."""

import copy
import dataclasses
import json
import os
import re

import pytest

import bert
import gpt2
from model_zoo.blocks.config import Config
from model_zoo.errors import InputError


@dataclasses.dataclass
class Tiny(Config):
    size: int = 3
    dropout: float = 0.5
    names: tuple = ()
    scale: float = 0.0


def test_json_round_trip_keeps_unknown_fields(tmp_path):
    path = tmp_path / 'config.json'
    values = {'size': 4, 'dropout': 0.25, 'scale': 2, 'names': ['ä']}
    values.update({'version': '1.2', 'nested': {'a': [1]}})
    path.write_text(json.dumps(values), encoding='utf-8')
    config = Tiny.from_json_file(path)
    assert (config.size, config.dropout) == (4, 0.25)
    assert config.extras == {'version': '1.2', 'nested': {'a': [1]}}
    config.to_json_file(tmp_path / 'again.json')
    assert json.loads((tmp_path / 'again.json').read_text()) == values
    assert json.loads(config.to_json_string()) == values
    assert list(json.loads(config.to_json_string())) == sorted(values)


def test_dict_is_a_copy():
    config = Tiny.from_dict({'nested': {'a': [1]}})
    values = config.to_dict()
    values['nested']['a'].append(2)
    assert config.extras == {'nested': {'a': [1]}}


def test_copy():
    config = Tiny.from_dict({'size': 7, 'names': ['a'], 'nested': {'a': [1]}})
    other = copy.deepcopy(config)
    assert other == config and other.extras == config.extras
    other.names.append('b')
    other.extras['nested']['a'].append(2)
    assert config.names == ['a'] and config.extras == {'nested': {'a': [1]}}


def test_defaults_and_equality():
    assert Tiny.from_dict({}) == Tiny() != Tiny(size=5)


@pytest.mark.parametrize('size', [0, -1, 1.0, '3', None, True])
def test_numbers_that_must_be_positive(size):
    with pytest.raises(InputError, match=f'size must be a positive integer, but is {size!r}'):
        Tiny(size=size)


@pytest.mark.parametrize('rate', [-0.1, 1, 1.5, '0.1', None, float('nan')])
def test_rates(rate):
    with pytest.raises(InputError, match='dropout must be a rate'):
        Tiny(dropout=rate)


@pytest.mark.parametrize('scale', [-0.1, None, '1', True, float('nan'), float('inf'), 1e39, 1e-40])
def test_numbers_that_must_not_be_negative(scale):
    message = f'scale must be a number .*, but is {re.escape(repr(scale))}'
    with pytest.raises(InputError, match=message):
        Tiny(scale=scale)


@pytest.mark.parametrize(
    'name, value',
    [('architectures', 7), ('architectures', [[]]), ('id2label', 7), ('id2label', ['a']),
     ('label2id', 'a'), ('sentence_transformers', 7),
     ('sbert_ce_default_activation_function', 7)],
)  # fmt: skip
def test_fields_of_other_programs_that_are_read_here(name, value):
    assert Tiny.from_dict({name: None}).extras == {name: None}
    with pytest.raises(InputError, match=f'{name} must be .*, but is '):
        Tiny.from_dict({name: value})


@pytest.mark.parametrize(
    'content', [b'', b'{', b'[1, 2]', b'"text"', b'null', b'\xff\xfe{}', b'{"size": 0}']
)
def test_bad_files(tmp_path, content):
    path = tmp_path / 'config.json'
    path.write_bytes(content)
    with pytest.raises(InputError, match=re.escape(repr(str(path)))):
        Tiny.from_json_file(path)


def test_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match='No such file'):
        Tiny.from_json_file(tmp_path / 'none.json')


def test_file_is_written_whole_or_not_at_all(tmp_path):
    config = Tiny()
    config.extras['odd'] = object()
    path = tmp_path / 'config.json'
    path.write_text('before')
    with pytest.raises(TypeError):
        config.to_json_file(path)
    assert path.read_text() == 'before' and os.listdir(tmp_path) == ['config.json']


def test_first_argument_as_in_pytorch_pretrained_bert(tmp_path):
    """A size or the path of a file, under its name there."""
    path = tmp_path / 'config.json'
    path.write_text('{"vocab_size": 41, "hidden_size": 24, "num_attention_heads": 3, "new": 1}')
    for config in (
        bert.BertConfig(str(path)),
        bert.BertConfig(path),
        bert.BertConfig(vocab_size_or_config_json_file=str(path)),
    ):
        assert (config.vocab_size, config.hidden_size, config.extras) == (41, 24, {'new': 1})
    other = bert.BertConfig(vocab_size_or_config_json_file=50, hidden_size=36)
    assert (other.vocab_size, other.hidden_size) == (50, 36)
    assert gpt2.GPT2Config(vocab_size_or_config_json_file=7).vocab_size == 7
    with pytest.raises(InputError, match='cannot read the configuration'):
        bert.BertConfig('no such file')


def test_unknown_field_that_may_be_misspelt(caplog):
    config = bert.BertConfig.from_dict({'hidden_sizes': 24, 'transformers_version': '4'})
    assert config.extras == {'hidden_sizes': 24, 'transformers_version': '4'}
    assert caplog.messages == [
        'hidden_sizes is not known to a BertConfig, and has no effect: is hidden_size meant?'
    ]
