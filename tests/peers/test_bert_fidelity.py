"""BERT against pytorch-pretrained-bert itself; test_variants_peers.py has transformers."""

import pytest
from bert_compare import (
    CONFIG,
    HEADS,
    assert_gradients,
    assert_outputs,
    loss_and_gradients,
    make_block,
    make_inputs,
    run,
)

torch = pytest.importorskip('torch')
pytest.importorskip('pytorch_pretrained_bert')
pytestmark = pytest.mark.peers
ORACLE = 'make_bert_fixtures'

#: its feed-forward layers are padded here
LARGER = {**CONFIG, 'hidden_size': 24, 'num_attention_heads': 4, 'num_hidden_layers': 3}
LARGER.update(intermediate_size=512, initializer_range=0.1)


@pytest.mark.parametrize('name', HEADS)
def test_heads(oracle, tmp_path, name):
    """Outputs and losses within 1e-5, gradients of each parameter within 1e-4.

    The small model is compared with what the oracle recorded, in tests/unit.
    """
    padded = name != 'BertForQuestionAnswering'  # where padding takes part in theirs' softmax
    head = oracle.make_head(name, LARGER, seed=11)
    block = make_block(name, oracle.state_of(head), tmp_path, LARGER)
    for seed, (batch, length) in enumerate([(4, 9), (1, 4), (5, 12)]):
        block.hybridize(seed > 0, static_alloc=True, static_shape=True)
        inputs = make_inputs(name, padded, 11 + seed, batch, length)
        expected = oracle.run_head(head, inputs)
        assert_outputs(name, run(block, inputs), expected['outputs'], inputs['valid'])
        loss, ours = loss_and_gradients(block, inputs)
        assert abs(loss - expected['loss']) < 1e-5
        assert_gradients(ours, expected['gradients'])
        # each parameter of ours was compared, and the original's further ones have no gradient
        weights = {key for key in ours if not key.endswith('predictions.decoder.weight')}
        assert weights == set(expected['gradients'])
