"""GPT and GPT-2 against pytorch-pretrained-bert and transformers themselves."""

import mxnet as mx
import numpy as np
import pytest
from arrays import assert_same
from bert_compare import HEAD_MASKS, assert_gradients, mask_heads, torch_gradients
from gpt_compare import (
    CONFIGS,
    HEADS,
    LARGER,
    OF_TRANSFORMERS,
    family_of,
    losses_and_gradients,
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

#: the small configurations are compared with what the oracle recorded, in tests/unit
CASES = [
    (head, config)
    for family in HEADS
    for head in HEADS[family]
    for config in CONFIGS[family]
    if config != 'small'
]
MODELS = {'gpt': 'OpenAIGPTModel', 'gpt2': 'GPT2Model'}


def assert_as_the_original(block, head, oracle, inputs):
    """Outputs and losses within 1e-5, gradients of each parameter within 1e-4."""
    expected = oracle.run_head(head, inputs)
    assert_same(run(block, inputs), expected['outputs'])
    losses, ours = losses_and_gradients(block, inputs)
    np.testing.assert_allclose(losses, expected['losses'], atol=1e-5)
    assert_gradients(ours, expected['gradients'])
    assert set(ours) == set(expected['gradients'])  # each parameter of ours was compared


@pytest.mark.parametrize('name, config', CASES)
def test_heads(oracle, tmp_path, name, config):
    config = CONFIGS[family_of(name)][config]
    head, block = make_both(oracle, tmp_path, name, config)
    for seed, (batch, length, optional) in enumerate(
        [(3, 9, True), (1, 2, False), (4, 12, False), (2, 5, True)]
    ):
        block.hybridize(seed > 0, static_alloc=True, static_shape=True)
        inputs = make_inputs(name, config, seed, rows_for(name, batch), length, optional)
        assert_as_the_original(block, head, oracle, inputs)


# -- transformers: what pytorch-pretrained-bert 0.6.2 doesn't have -------------------------------


@pytest.fixture(params=sorted(MODELS))
def family(request):
    return request.param


@pytest.fixture
def theirs(family):
    """Transformers' language model with random weights."""
    transformers = pytest.importorskip('transformers')
    torch.manual_seed(3)
    part = {'gpt': 'OpenAIGPT', 'gpt2': 'GPT2'}[family]
    config = getattr(transformers, f'{part}Config')(
        **OF_TRANSFORMERS,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        attn_implementation='eager',
    )
    return getattr(transformers, f'{part}LMHeadModel')(config).eval()


def ours_of(theirs, family, folder, head=True, **options):
    """Our language model, or only its model, with the weights of transformers'."""
    block = theirs if head else theirs.transformer
    state = {
        key: value.numpy() for key, value in block.state_dict().items() if key != 'lm_head.weight'
    }
    name = HEADS[family][0] if head else MODELS[family]
    return make_block(name, state, folder, LARGER, **options)


def their_names(inputs):
    names = {'words': 'input_ids', 'token_types': 'token_type_ids'}
    return {names.get(key, key): torch.tensor(value) for key, value in inputs.items()}


def language_inputs(family, seed=0):
    inputs = make_inputs(HEADS[family][0], LARGER, seed, (3,), 9)
    # theirs leaves out -100
    return inputs, {
        **their_names({k: v for k, v in inputs.items() if k != 'lm_labels'}),
        'labels': torch.tensor(np.where(inputs['lm_labels'] < 0, -100, inputs['lm_labels'])),
    }


def test_attentions_and_hidden_states(tmp_path, family, theirs):
    block = ours_of(
        theirs, family, tmp_path, False, output_attentions=True, output_all_encodings=True
    )
    block.hybridize(static_alloc=True, static_shape=True)
    inputs = make_inputs(MODELS[family], LARGER)
    with torch.no_grad():
        expected = theirs.transformer(
            **their_names(inputs), output_attentions=True, output_hidden_states=True
        )
    states, *_, attentions = run(block, inputs)
    assert len(states) == 4 and len(attentions) == 3
    assert_same(states, [each.numpy() for each in expected.hidden_states])
    assert_same(attentions, [each.numpy() for each in expected.attentions])


def projections(theirs):
    return [layer.attn.c_proj for layer in theirs.transformer.h]


@pytest.mark.parametrize('kind', HEAD_MASKS)
def test_head_mask(tmp_path, family, theirs, kind):
    block = ours_of(theirs, family, tmp_path)
    block.hybridize(static_alloc=True)
    inputs, for_theirs = language_inputs(family)
    head_mask = torch.tensor(HEAD_MASKS[kind], requires_grad=True)
    mask_heads(projections(theirs), head_mask)
    expected = theirs(**for_theirs)
    expected.loss.backward()
    our_mask = mx.nd.array(HEAD_MASKS[kind])
    our_mask.attach_grad()
    scores = run(block, inputs, head_mask=our_mask)
    scores = scores if family == 'gpt' else scores[0]
    assert_same(scores, expected.logits.detach().numpy())
    (loss,), ours = losses_and_gradients(block, inputs, head_mask=our_mask)
    assert abs(loss - expected.loss.item()) < 1e-5
    assert_gradients(ours, torch_gradients(theirs))
    wanted = head_mask.grad.numpy()
    np.testing.assert_allclose(our_mask.grad.asnumpy(), wanted, atol=1e-4 * np.abs(wanted).max())


# -- what only GPT-2 has: the past --------------------------------------------------------------


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
