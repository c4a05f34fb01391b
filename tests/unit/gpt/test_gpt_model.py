"""OpenAI GPT alone: its configuration, and where it normalizes."""

import mxnet as mx
from gpt_compare import CONFIGS
from refusals import refuses

import gpt

CONFIG = CONFIGS['gpt']['small']


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
