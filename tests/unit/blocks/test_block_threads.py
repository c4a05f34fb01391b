"""Several threads may call one block, also for its first time."""


import mxnet as mx
import numpy as np
import pytest
from eight_threads import together

from bert import BertConfig, BertModel
from gpt2 import GPT2Config, GPT2LMHeadModel
from transfo_xl import TransfoXLConfig, TransfoXLLMHeadModel


def make_bert():
    config = BertConfig(
        vocab_size_or_config_json_file=40,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
    )
    return BertModel(config)


def make_gpt2():
    return GPT2LMHeadModel(
        GPT2Config(vocab_size_or_config_json_file=40, n_positions=32, n_embd=8, n_layer=2, n_head=2)
    )


def make_transfo_xl():
    return TransfoXLLMHeadModel(
        TransfoXLConfig(
            vocab_size_or_config_json_file=40,
            cutoffs=[10, 20],
            d_model=8,
            d_embed=8,
            n_head=2,
            d_head=4,
            d_inner=16,
            div_val=2,
            n_layer=2,
            mem_len=8,
            clamp_len=16,
        )
    )


def flat(outputs):
    if isinstance(outputs, mx.nd.NDArray):
        return [outputs.asnumpy()]
    return [array for each in outputs for array in flat(each)]


@pytest.mark.parametrize('make', [make_bert, make_gpt2, make_transfo_xl])
def test_many_threads_get_what_one_gets(make):
    mx.random.seed(0)
    block = make()
    block.initialize()
    block.hybridize(static_alloc=True, static_shape=True)

    def results(number):
        random, found = np.random.RandomState(number), []
        for _ in range(4):
            if make is make_bert:
                words = mx.nd.array(random.randint(0, 40, (2, random.randint(1, 9))))
                lengths = mx.nd.array([1, words.shape[1]])
                found += flat(block(words, None, lengths)) + flat(block(words))
            else:
                prompts = [random.randint(1, 40, random.randint(1, 9)).tolist() for _ in range(3)]
                texts = block.generate(prompts, max_new_tokens=4)
                found += [np.array([*text.tokens, text.log_prob]) for (text,) in texts]
        return found

    for number, arrays in enumerate(together(results)):
        for found, wanted in zip(arrays, results(number)):
            np.testing.assert_allclose(found, wanted, atol=1e-6)
