"""GPT and GPT-2 against pytorch-pretrained-bert and transformers themselves."""

import numpy as np
import pytest
from arrays import assert_same
from bert_compare import assert_gradients
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


def ours_of(theirs, family, folder, **options):
    """Our model with the weights of transformers'."""
    state = {key: value.numpy() for key, value in theirs.transformer.state_dict().items()}
    return make_block(MODELS[family], state, folder, LARGER, **options)


def their_names(inputs):
    names = {'words': 'input_ids', 'token_types': 'token_type_ids'}
    return {names.get(key, key): torch.tensor(value) for key, value in inputs.items()}


def test_attentions_and_hidden_states(tmp_path, family, theirs):
    options = {'output_attentions': True, 'output_all_encodings': True}
    block = ours_of(theirs, family, tmp_path, **options)
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
