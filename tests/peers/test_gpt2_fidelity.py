"""What only GPT-2 has, the past, against pytorch-pretrained-bert and transformers themselves."""

import mxnet as mx
import numpy as np
import pytest
from arrays import assert_same
from bert_compare import assert_gradients, gradients, mask_heads, torch_gradients
from gpt_compare import (
    CONFIGS,
    HEADS,
    LARGER,
    OF_TRANSFORMERS,
    make_block,
    make_both,
    make_inputs,
    rows_for,
    run,
)

torch = pytest.importorskip('torch')
pytest.importorskip('pytorch_pretrained_bert')
pytestmark = pytest.mark.peers
ORACLE = 'make_gpt_fixtures'


@pytest.mark.parametrize('name', ['GPT2Model', *HEADS['gpt2']])
def test_past(oracle, tmp_path, name):
    """Outputs and presents of three calls, each with the presents of the one before."""
    config = CONFIGS['gpt2']['larger']
    head, block = make_both(oracle, tmp_path, name, config)
    for batch, optional in ((2, True), (1, False), (2, False)):
        block.hybridize(batch == 1 or not optional, static_alloc=True, static_shape=True)
        ours = theirs = None
        for seed, length in enumerate((3, 1, 5)):
            rows = rows_for(name, batch)
            inputs = make_inputs(name, config, seed, rows, length, optional)
            with torch.no_grad():
                expected = oracle.run(head, inputs, theirs)
            outputs = run(block, inputs, past=ours)
            assert_same(outputs, oracle.to_numpy(expected))
            ours, theirs = outputs[-1], expected[-1]
        assert ours[0].shape[3] == 9


@pytest.mark.parametrize('hybridized', [False, True])
def test_loss_and_gradients_with_past(oracle, tmp_path, hybridized):
    """Those of the past, and of what it was made of, among them."""
    name, config = 'GPT2LMHeadModel', CONFIGS['gpt2']['larger']
    head, block = make_both(oracle, tmp_path, name, config)
    block.hybridize(hybridized, static_alloc=True)
    before = make_inputs(name, config, 1, (2,), 4, optional=False)
    after = make_inputs(name, config, 2, (2,), 6, optional=False)
    _, past = oracle.run(head, before)
    loss = head(**oracle.arguments(after, labels=True), past=past)
    loss.backward()
    with mx.autograd.record(train_mode=False):
        _, our_past = run(block, before)
        our_loss = run(block, after, labels=True, past=our_past)
    our_loss.backward()
    assert abs(our_loss.asscalar() - loss.item()) < 1e-5
    assert_gradients(gradients(block), torch_gradients(head))


def test_masked_attentions_with_past(tmp_path):
    transformers = pytest.importorskip('transformers')
    torch.manual_seed(4)
    config = transformers.GPT2Config(**OF_TRANSFORMERS, attn_implementation='eager')
    theirs = transformers.GPT2Model(config).eval()
    state = {key: value.numpy() for key, value in theirs.state_dict().items()}
    block = make_block('GPT2Model', state, tmp_path, LARGER, output_attentions=True)
    mask = np.array([[1, 0, 0.5, 1], [1, 1, 0, 1], [1, 2, 1, 0]], 'float32')
    mask_heads([layer.attn.c_proj for layer in theirs.h], torch.tensor(mask))
    before, after = (make_inputs('GPT2Model', LARGER, i, (3,), 5, optional=False) for i in (1, 2))
    with torch.no_grad():
        expected = theirs(torch.tensor(before['words']))
        expected = theirs(
            torch.tensor(after['words']),
            past_key_values=expected.past_key_values,
            output_attentions=True,
        )
    _, past, _ = run(block, before, head_mask=mx.nd.array(mask))
    hidden, _, attentions = run(block, after, past=past, head_mask=mx.nd.array(mask))
    assert_same(hidden, expected.last_hidden_state.numpy())
    theirs = [x.numpy() * row[:, None, None] for x, row in zip(expected.attentions, mask)]
    assert_same(attentions, theirs)
    assert attentions[0].shape == (3, 4, 5, 10)
