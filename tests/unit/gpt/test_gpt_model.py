"""OpenAI GPT alone: its configuration, and where it normalizes."""

import mxnet as mx
from gpt_compare import CONFIGS
from refusals import refuses

import gpt

CONFIG = CONFIGS['gpt']['small']


def test_defaults_are_those_of_the_paper():
    config = gpt.OpenAIGPTConfig()
    assert (config.vocab_size, config.n_positions, config.n_embd) == (40478, 512, 768)
    assert (config.n_layer, config.n_head, config.intermediate_size) == (12, 12, 3072)
    assert config.resid_pdrop == config.embd_pdrop == config.attn_pdrop == 0.1
    assert config.mc_pdrop == 0.1 and config.n_special == 0
    assert config.total_tokens_embeddings == 40478


def test_there_is_no_past():
    """The family's blocks return no presents, and don't take any."""
    model = gpt.OpenAIGPTModel(gpt.OpenAIGPTConfig(**CONFIG))
    model.initialize()
    words = mx.nd.array([[1, 2, 3]])
    assert isinstance(model(words), mx.nd.NDArray)
    past = [mx.nd.zeros((2, 1, 2, 3, 4))] * 2
    head = gpt.OpenAIGPTLMHeadModel(model)
    for block in (model, head):
        with refuses(says='past'):
            block(words, past=past)
