"""BERT's calls: other names of its inputs, and all layers' states."""

import pytest
import tiny
from arrays import assert_same, masked_inputs

import bert


def make():
    return tiny.make(bert.BertModel, 41, num_hidden_layers=3, num_attention_heads=4)


def test_names_of_the_inputs():
    block, (words, types, mask) = make(), masked_inputs()
    block.hybridize(static_alloc=True, static_shape=True)
    named = {'input_ids': words, 'token_type_ids': types, 'attention_mask': mask}
    assert_same(block(words, types, mask), block(**named), 0)
    assert_same(block(words, types), block(words, token_type_ids=types), 0)
    with pytest.raises(TypeError):
        block(input_idz=words)


def test_all_layers_by_call():
    block, (words, types, mask) = make(), masked_inputs()
    block.hybridize(static_alloc=True, static_shape=True)
    for _ in range(2):  # one graph each
        last, pooled = block(words, types, mask)
        layers, also = block(words, types, mask, output_all_encoded_layers=True)
        assert len(layers) == 3 and not block.output_all_encodings
        assert_same([last, pooled], [layers[-1], also], 0)
    every = bert.BertModel(block.config, output_all_encodings=True, params=block.collect_params())
    assert_same(every(words)[0], block(words, output_all_encoded_layers=True)[0], 0)
    assert_same([every(words, output_all_encoded_layers=False)[0]], block(words)[:1], 0)
    assert every.output_all_encodings
