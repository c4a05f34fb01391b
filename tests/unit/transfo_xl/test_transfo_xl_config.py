"""Transformer-XL's configuration: the originals' files, and values that can't be right."""

import copy

from transfo_xl import TransfoXLConfig


def test_defaults_are_the_released_model():
    config = TransfoXLConfig()
    assert config.vocab_size == 267735 and config.ends == [20000, 40000, 200000, 267735]
    assert config.sizes == [20000, 20000, 160000, 67735]
    assert config.embedding_units == [1024, 256, 64, 16]
    assert config.tie_projs == [False, True, True, True]
    assert (config.mem_len, config.clamp_len, config.same_length) == (1600, 1000, True)
    assert TransfoXLConfig(50, [10]).ends == [10, 50]  # the originals' order of arguments


def test_file_of_pytorch_pretrained_bert():
    values = TransfoXLConfig(100, [20, 30], n_layer=2, tie_weight=False).to_dict()
    del values['vocab_size'], values['layer_norm_epsilon'], values['proj_share_all_but_first']
    config = TransfoXLConfig.from_dict({**values, 'n_token': 100, 'tie_projs': [True, False, True]})
    assert config.vocab_size == 100 and config.tie_projs == [True, False, True]
    assert config.layer_norm_epsilon == 1e-12 and not config.tie_weight
    assert 'n_token' not in config.extras


def test_file_of_transformers():
    values = {'vocab_size': 100, 'cutoffs': [20], 'layer_norm_epsilon': 1e-5, 'eos_token_id': 0}
    values.update(tie_word_embeddings=False, model_type='transfo-xl')
    config = TransfoXLConfig.from_dict(values)
    assert config.layer_norm_epsilon == 1e-5 and not config.tie_weight
    assert config.extras == {'eos_token_id': 0}
    other = copy.deepcopy(config)
    assert other == config and other.extras == config.extras
    name, fields = config.to_format('huggingface', 'TransfoXLLMHeadModel')
    assert name == 'config.json' and fields['n_token'] == 100
    assert fields['model_type'] == 'transfo-xl' and fields['tie_word_embeddings'] is False
    assert TransfoXLConfig.from_dict(fields).tie_weight is False
