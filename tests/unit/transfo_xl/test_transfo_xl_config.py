"""Transformer-XL's configuration: the originals' files, and values that can't be right."""

import copy
import json

import pytest

from model_zoo.errors import InputError
from transfo_xl import TransfoXLConfig


def test_defaults_are_the_released_model():
    config = TransfoXLConfig()
    assert config.vocab_size == 267735 and config.ends == [20000, 40000, 200000, 267735]
    assert config.sizes == [20000, 20000, 160000, 67735]
    assert config.embedding_units == [1024, 256, 64, 16]
    assert config.tie_projs == [False, True, True, True]
    assert (config.mem_len, config.clamp_len, config.same_length) == (1600, 1000, True)
    assert TransfoXLConfig(50, [10]).ends == [10, 50]  # the originals' order of arguments


def test_configurations_do_not_share_lists():
    one, two = TransfoXLConfig(), TransfoXLConfig()
    one.cutoffs.append(3)
    assert two.cutoffs == [20000, 40000, 200000]


def test_file_of_pytorch_pretrained_bert():
    values = TransfoXLConfig(100, [20, 30], n_layer=2, tie_weight=False).to_dict()
    del values['vocab_size'], values['layer_norm_epsilon'], values['proj_share_all_but_first']
    config = TransfoXLConfig.from_dict({**values, 'n_token': 100, 'tie_projs': [True, False, True]})
    assert config.vocab_size == 100 and config.tie_projs == [True, False, True]
    assert config.layer_norm_epsilon == 1e-12 and not config.tie_weight
    assert 'n_token' not in config.extras


def test_file_of_transformers():
    values = {
        'vocab_size': 100, 'cutoffs': [20], 'layer_norm_epsilon': 1e-5, 'eos_token_id': 0,
        'tie_word_embeddings': False, 'model_type': 'transfo-xl',
    }  # fmt: skip
    config = TransfoXLConfig.from_dict(values)
    assert config.layer_norm_epsilon == 1e-5 and not config.tie_weight
    assert config.extras == {'eos_token_id': 0}
    other = copy.deepcopy(config)
    assert other == config and other.extras == config.extras
    name, fields = config.to_format('huggingface', 'TransfoXLLMHeadModel')
    assert name == 'config.json' and fields['n_token'] == 100
    assert fields['model_type'] == 'transfo-xl' and fields['tie_word_embeddings'] is False
    assert TransfoXLConfig.from_dict(fields).tie_weight is False


@pytest.mark.parametrize(
    'values, message',
    [
        ({'cutoffs': [30, 20]}, r'cutoffs must be ascending .* but are \[30, 20\]'),
        ({'cutoffs': [20, 20]}, 'cutoffs must be ascending'),
        ({'cutoffs': [0, 20]}, 'cutoffs must be ascending integers above 0'),
        ({'cutoffs': [20, 100]}, 'below vocab_size 100'),
        ({'cutoffs': [20.5]}, 'cutoffs must be ascending integers'),
        ({'cutoffs': 20}, 'cutoffs must be ascending integers'),
        ({'attn_type': 2}, 'attn_type is 2, and only 0'),
        ({'sample_softmax': 10}, 'sample_softmax is 10: a sampled softmax is not supported'),
        ({'d_model': 15}, 'd_model must be even, but is 15'),
        ({'d_embed': 3}, 'div_val 4 leaves nothing of d_embed 3'),
        ({'mem_len': 0}, 'mem_len is 0: set same_length=False'),
        ({'mem_len': -1}, 'mem_len must be an integer of at least 0, but is -1'),
        ({'tgt_len': 0}, 'tgt_len must be'),
        ({'ext_len': 1.5}, 'ext_len must be an integer of at least 0, but is 1.5'),
        ({'init': 'xavier'}, "init must be 'normal' or 'uniform', but is 'xavier'"),
        ({'tie_projs': [True]}, 'tie_projs must have one value for each of 2 clusters'),
        ({'dropout': 1}, 'dropout must be a rate'),
        ({'n_head': 0}, 'n_head must be a positive integer'),
        ({'n_head': 2**70}, 'n_head must be a posit.*, but is .*; 2147483647 is the most'),
        ({'n_layer': 2**70}, 'n_layer must be a posit.*, but is .*; 2147483647 is the most'),
        ({'sample_softmax': 'x'}, 'sample_softmax must be an integer'),
        ({'clamp_len': None}, 'clamp_len must be an integer'),
        ({'tie_projs': 5}, 'tie_projs must have one value for each'),
        ({'vocab_size': '100'}, 'vocab_size must be'),
    ],
)
def test_values_that_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        TransfoXLConfig(**{'vocab_size': 100, 'cutoffs': [20], **values})


def test_file_of_another_family(tmp_path):
    path = tmp_path / 'config.json'
    path.write_text('{"model_type": "gpt2", "vocab_size": 100}')
    with pytest.raises(InputError, match="of another family, 'gpt2'"):
        TransfoXLConfig.from_json_file(str(path))
    TransfoXLConfig().to_json_file(str(path))  # ours say theirs
    assert json.loads(path.read_text())['model_type'] == 'transfo-xl'
