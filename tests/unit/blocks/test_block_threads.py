"""Several threads may call one block, also for its first time."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import assert_same, flatten
from eight_threads import together

from bert import BertModel
from gpt2 import GPT2LMHeadModel
from transfo_xl import TransfoXLLMHeadModel

BLOCKS = [
    (BertModel, {}),
    (GPT2LMHeadModel, {'n_positions': 32}),
    (TransfoXLLMHeadModel, {'cutoffs': [10, 20], 'div_val': 2, 'mem_len': 8, 'clamp_len': 16}),
]


@pytest.mark.parametrize('block_class, sizes', BLOCKS)
def test_many_threads_get_what_one_gets(block_class, sizes):
    block = tiny.make(block_class, **sizes)
    block.hybridize(static_alloc=True, static_shape=True)

    def results(number):
        random, found = np.random.RandomState(number), []
        for _ in range(4):
            if block_class is BertModel:
                words = mx.nd.array(random.randint(0, 40, (2, random.randint(1, 9))))
                lengths = mx.nd.array([1, words.shape[1]])
                outputs = flatten([block(words, None, lengths), block(words)])
                found += [output.asnumpy() for output in outputs]
            else:
                prompts = [random.randint(1, 40, random.randint(1, 9)).tolist() for _ in range(3)]
                texts = block.generate(prompts, max_new_tokens=4)
                found += [np.array([*text.tokens, text.log_prob]) for (text,) in texts]
        return found

    for number, found in enumerate(together(results)):
        assert_same(found, results(number), 1e-6)
