"""OpenAI GPT alone: its configuration, and where it normalizes."""

import json

import mxnet as mx
import numpy as np
import pytest
from gpt_compare import CONFIGS

import gpt
from model_zoo.errors import InputError, UnknownNameError

CONFIG = CONFIGS['gpt']['small']


def test_defaults_are_those_of_the_paper():
    config = gpt.OpenAIGPTConfig()
    assert (config.vocab_size, config.n_positions, config.n_embd) == (40478, 512, 768)
    assert (config.n_layer, config.n_head, config.intermediate_size) == (12, 12, 3072)
    assert config.resid_pdrop == config.embd_pdrop == config.attn_pdrop == 0.1
    assert config.mc_pdrop == 0.1 and config.n_special == 0
    assert config.total_tokens_embeddings == 40478


@pytest.mark.parametrize(
    'afn, function',
    [
        # OpenAI's gelu is the approximation by tanh
        ('gelu', lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))),
        ('relu', lambda x: np.maximum(x, 0)),
        ('swish', lambda x: x / (1 + np.exp(-x))),
        ('silu', lambda x: x / (1 + np.exp(-x))),
        ('tanh', np.tanh),
    ],
)
def test_activations(afn, function):
    model = gpt.OpenAIGPTModel(gpt.OpenAIGPTConfig(**{**CONFIG, 'afn': afn}))
    x = np.linspace(-4, 4, 33, dtype='float32')
    result = model.layers[0].ffn.activation(mx.nd.array(x)).asnumpy()
    np.testing.assert_allclose(result, function(x), atol=1e-6)


def test_unknown_activation():
    with pytest.raises(UnknownNameError, match="unknown activation 'gelus'; known: gelu, gelu_new"):
        gpt.OpenAIGPTConfig(afn='gelus')


def test_configuration_comes_and_goes_by_file(tmp_path):
    path = tmp_path / 'config.json'
    path.write_text(json.dumps({**CONFIG, 'predict_special_tokens': True}))
    config = gpt.OpenAIGPTConfig.from_json_file(str(path))
    assert config.n_special == 3 and config.extras == {'predict_special_tokens': True}
    config.to_json_file(str(path))
    assert gpt.OpenAIGPTConfig.from_json_file(str(path)) == config


def test_normalization_follows_the_residuals():
    """The last layer's output is normalized: gamma and beta show in it."""
    model = gpt.OpenAIGPTModel(gpt.OpenAIGPTConfig(**CONFIG))
    model.initialize()
    last = model.layers[-1].ffn_norm
    last.gamma.set_data(mx.nd.zeros((8,)))
    last.beta.set_data(mx.nd.arange(8))
    hidden = model(mx.nd.array([[1, 2, 3]])).asnumpy()
    np.testing.assert_array_equal(hidden, np.broadcast_to(np.arange(8), (1, 3, 8)))


def test_there_is_no_past():
    """The family's blocks return no presents, and don't take any."""
    model = gpt.OpenAIGPTModel(gpt.OpenAIGPTConfig(**CONFIG))
    model.initialize()
    words = mx.nd.array([[1, 2, 3]])
    assert isinstance(model(words), mx.nd.NDArray)
    past = [mx.nd.zeros((2, 1, 2, 3, 4))] * 2
    head = gpt.OpenAIGPTLMHeadModel(model)
    for block in (model, head):
        with pytest.raises(InputError, match='OpenAIGPTModel takes no past'):
            block(words, past=past)
