"""Transformer-XL against pytorch-pretrained-bert itself, beyond what the oracle has recorded."""

import mxnet as mx
import numpy as np
import pytest
from transfo_xl_compare import (
    assert_same,
    assert_same_memories,
    make_block,
    make_config,
    make_inputs,
    run,
)

torch = pytest.importorskip('torch')
modeling_transfo_xl = pytest.importorskip('pytorch_pretrained_bert.modeling_transfo_xl')
pytestmark = pytest.mark.peers
ORACLE = 'make_transfo_xl_fixtures'


@pytest.mark.parametrize('variant', ['ext_len', 'all'])
def test_longer_memory(oracle, tmp_path, variant):
    """After `reset_length`, as for evaluation."""
    config = make_config(variant)
    model = oracle.make_model(config, seed=3)
    block = make_block(oracle.state_of(model), tmp_path, config)
    block.hybridize(static_alloc=True, static_shape=True)
    segments = make_inputs(config, 3)
    run(block, segments)
    for reset in (model.reset_length, block.reset_length):
        reset(5, 1, 13)
    assert_same(run(block, segments), oracle.run_model(model, segments))


def test_memory_that_begins_empty(oracle, tmp_path):
    """As in kimiyoung/transformer-xl for PyTorch: the memory grows to its length."""
    config = make_config('plain')
    model = oracle.make_model(config, seed=4)
    block = make_block(oracle.state_of(model), tmp_path, config)
    theirs = [torch.zeros(0, 3, config['d_model']) for _ in range(config['n_layer'])]
    mems = block.init_mems(3)
    mems[-1][:] = 0
    for words, _ in make_inputs(config, 4):
        with torch.no_grad(), oracle.boolean_masks():
            wanted, theirs = model(torch.tensor(words), mems=theirs)
        scores, mems = block(mx.nd.array(words), mems)
        np.testing.assert_allclose(scores.asnumpy(), wanted.numpy(), atol=1e-5)
        assert_same_memories([x.asnumpy() for x in mems], [x.numpy() for x in theirs])


@pytest.mark.parametrize('large', [False, True])
def test_released_proportions(oracle, tmp_path, large):
    """Distances beyond 1000, many words, heads that are not the units' parts."""
    config = make_config('plain')
    config.update(vocab_size=3000, cutoffs=[300, 1000], same_length=True, clamp_len=1000)
    config.update(d_model=32, d_embed=32, n_head=4, d_head=12, d_inner=512)
    config.update(mem_len=1100 if large else 40, init_std=0.05, proj_init_std=0.05)
    model = oracle.make_model(config, seed=5)
    block = make_block(oracle.state_of(model), tmp_path, config)
    block.hybridize(static_alloc=True, static_shape=True)
    segments = make_inputs(config, 5, 2, (30, 30, 30))
    assert_same(run(block, segments), oracle.run_model(model, segments))
