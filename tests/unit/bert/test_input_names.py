"""BERT's calls: other names of its inputs, and all layers' states."""

import mxnet as mx
import numpy as np
import pytest

import bert
from model_zoo.errors import InputError


def make():
    config = bert.BertConfig(
        41, hidden_size=16, num_hidden_layers=3, num_attention_heads=4, intermediate_size=32,
        max_position_embeddings=24,
    )  # fmt: skip
    block = bert.BertModel(config)
    block.initialize(mx.init.Normal(0.3))
    return block


def make_inputs():
    words = mx.nd.array(np.random.randint(0, 41, (2, 7)), dtype='int32')
    types = mx.nd.array(np.random.randint(0, 2, (2, 7)), dtype='int32')
    return words, types, mx.nd.array([[0, 1, 1, 1, 1, 0, 1], [1] * 7])


def same(ours, theirs):
    for one, two in zip(ours, theirs):
        np.testing.assert_array_equal(one.asnumpy(), two.asnumpy())


@pytest.mark.parametrize('hybridized', [False, True])
def test_names_of_the_inputs(hybridized):
    block, (words, types, mask) = make(), make_inputs()
    block.hybridize(hybridized, static_alloc=True, static_shape=True)
    named = {'input_ids': words, 'token_type_ids': types, 'attention_mask': mask}
    same(block(words, types, mask), block(**named))
    same(block(words, types), block(words, token_type_ids=types))
    with pytest.raises(InputError, match='input_ids and words are the same input'):
        block(words=words, input_ids=words)
    with pytest.raises(TypeError, match='input_idz'):
        block(input_idz=words)


@pytest.mark.parametrize('hybridized', [False, True])
def test_all_layers_by_call(hybridized):
    block, (words, types, mask) = make(), make_inputs()
    block.hybridize(hybridized, static_alloc=True, static_shape=True)
    for _ in range(2):  # one graph each
        last, pooled = block(words, types, mask)
        layers, also = block(words, types, mask, output_all_encoded_layers=True)
        assert len(layers) == 3 and not block.output_all_encodings
        same([last, pooled], [layers[-1], also])
    every = bert.BertModel(block.config, output_all_encodings=True, params=block.collect_params())
    same(every(words)[0], block(words, output_all_encoded_layers=True)[0])
    same([every(words, output_all_encoded_layers=False)[0]], block(words)[:1])
    assert every.output_all_encodings


def test_all_layers_by_call_while_outputs_are_kept():
    block, (words, types, _) = make(), make_inputs()
    block.keep_multihead_output = True
    block.hybridize(static_alloc=True)
    for wanted in (False, True, False):
        first = block(words, types, output_all_encoded_layers=wanted)[0]
        assert isinstance(first, (list, tuple)) == wanted
        assert len(block.get_multihead_outputs()) == 3
