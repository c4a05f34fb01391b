"""What GPT and GPT-2 share: inputs and outputs, padding, heads masked, kept and pruned."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import array, assert_loads, assert_same, part, stored
from bert_compare import assert_gradients
from gpt_compare import (
    CONFIGS,
    HEADS,
    PACKAGES,
    config_class,
    family_of,
    losses_and_gradients,
    make_block,
    make_inputs,
    rows_for,
    run,
)
from refusals import refuses

MODELS = {'gpt': 'OpenAIGPTModel', 'gpt2': 'GPT2Model'}
ALL_HEADS = [name for family in HEADS for name in HEADS[family]]
BLOCKS = [*MODELS.values(), *ALL_HEADS]
LMS = [HEADS[family][0] for family in HEADS]
CONFIG = {**CONFIGS['gpt']['small'], 'n_head': 4, 'n_embd': 16, 'n_layer': 3}


def make(name, seed=1, changes=(), **options):
    config = config_class(name)(**{**CONFIG, **dict(changes)})
    block = getattr(PACKAGES[family_of(name)], name)(config, **options)
    return tiny.initialized(block, seed=seed)


def inputs_of(name, batch=3, length=9, seed=0, optional=True):
    return make_inputs(name, CONFIG, seed, rows_for(name, batch), length, optional)


def first(outputs):
    """Hidden states or scores."""
    return outputs[0] if isinstance(outputs, list) else outputs


# -- the originals' results ----------------------------------------------------------------------


@pytest.fixture(scope='module')
def original(fixtures):
    return stored(fixtures / 'gpt_heads.npz')


def numbered(original, name, kind):
    found = part(original, name, kind)
    return [found[str(i)] for i in range(len(found))]


@pytest.mark.parametrize('name', ALL_HEADS)
def test_outputs_losses_and_gradients_of_the_original(original, tmp_path, name):
    family = family_of(name)
    config = CONFIGS[family]['small']
    block = make_block(name, part(original, name, 'state'), tmp_path, config)
    block.hybridize(static_alloc=True, static_shape=True)
    inputs = make_inputs(name, config, HEADS[family].index(name), rows_for(name, 3))
    assert_same(run(block, inputs), numbered(original, name, 'outputs'))
    losses, gradients = losses_and_gradients(block, inputs)
    np.testing.assert_allclose(losses, original[f'{name}/losses'], atol=1e-5)
    expected = part(original, name, 'gradients')
    assert set(gradients) == set(expected)
    assert_gradients(gradients, expected)


@pytest.mark.parametrize('name', HEADS['gpt2'])
def test_outputs_with_past_of_the_original(original, tmp_path, name):
    config = CONFIGS['gpt2']['small']
    block = make_block(name, part(original, name, 'state'), tmp_path, config)
    block.hybridize(static_alloc=True, static_shape=True)
    seed = HEADS['gpt2'].index(name)
    before = make_inputs(name, config, seed + 10, rows_for(name, 3), 4, optional=False)
    after = make_inputs(name, config, seed + 20, rows_for(name, 3), 5, optional=False)
    past = run(block, before)[-1]
    assert_same(run(block, after, past=past), numbered(original, name, 'after past'))


# -- inputs and outputs -------------------------------------------------------------------------


@pytest.mark.parametrize('name', [HEADS[family][1] for family in HEADS])
def test_one_label_of_two(name):
    block, inputs = make(name), inputs_of(name)
    both = run(block, inputs, labels=True)
    for i, other in enumerate(('mc_labels', 'lm_labels')):
        some = {key: value for key, value in inputs.items() if key != other}
        assert_same(run(block, some, labels=True), both[i])


@pytest.mark.parametrize('name', LMS)
def test_position_ids_allow_texts_beyond_the_table(name):
    inputs = inputs_of(name, length=20)
    assert first(run(make(name), inputs)).shape == (3, 20, 33)


def test_multiple_choice_dropout_treats_all_choices_alike():
    changes = {'resid_pdrop': 0.5, 'embd_pdrop': 0, 'attn_pdrop': 0, 'n_layer': 1}
    block = make('OpenAIGPTDoubleHeadsModel', changes=changes)
    hidden = mx.nd.ones((4, 3, 16))
    with mx.autograd.record():
        dropped = block.mc_dropout(hidden).asnumpy()
    assert (dropped == dropped[:, :1]).all() and 0 < (dropped == 0).mean() < 1
    # GPT-2 has none there
    assert make('GPT2DoubleHeadsModel', changes=changes).config.mc_pdrop == 0


# -- special tokens -----------------------------------------------------------------------------


@pytest.mark.parametrize('name', BLOCKS)
def test_set_num_special_tokens_keeps_what_there_was(name):
    block = make(name, changes={'n_special': 0})
    block.hybridize(static_alloc=True, static_shape=True)
    model = block.base
    inputs = make_inputs(name, {**CONFIG, 'n_special': 0}, 0, rows_for(name, 2))
    expected = first(run(block, inputs))
    before = model.word_embed.weight.data().asnumpy()
    for count in (4, 4, 2):
        kept = model.word_embed.weight.data().asnumpy()
        block.set_num_special_tokens(count)
        after = model.word_embed.weight.data().asnumpy()
        assert after.shape == (30 + count, 16) and block.config.n_special == count
        rows = min(len(kept), len(after))
        np.testing.assert_array_equal(after[:rows], kept[:rows])
        assert 0.1 < after[30:].std() < 0.6  # initializer_range is 0.3
        assert_same(
            first(run(block, inputs))[..., :30] if 'Head' in name else first(run(block, inputs)),
            expected,
        )
    with_special = make_inputs(name, {**CONFIG, 'n_special': 2}, 0, rows_for(name, 2))
    if 'Head' in name:
        assert first(run(block, with_special)).shape[-1] == 32
        losses_and_gradients(block, with_special)
        assert model.word_embed.weight.grad().asnumpy()[30:].any()
    np.testing.assert_array_equal(model.word_embed.weight.data().asnumpy()[:30], before)


def test_set_num_special_tokens_before_there_are_weights():
    block = PACKAGES['gpt'].OpenAIGPTLMHeadModel(config_class('gpt')(**CONFIG))
    block.set_num_special_tokens(7)
    block.initialize()
    assert block(array([[1, 36]])).shape == (1, 2, 37)


@pytest.mark.parametrize('name', ALL_HEADS)
def test_special_tokens_that_are_not_predicted(name):
    whole, block = make(name), make(name, predict_special_tokens=False)
    block.hybridize(static_alloc=True)
    inputs = inputs_of(name)
    scores = first(run(block, inputs))
    assert_same(scores, first(run(whole, inputs))[..., :30])
    inputs['lm_labels'] = np.where(inputs['lm_labels'] < 30, inputs['lm_labels'], -1)
    run(block, inputs, labels=True)
    inputs['lm_labels'].flat[1] = 31
    with refuses(says='lm_labels'):
        run(block, inputs, labels=True)


@pytest.mark.parametrize('name', LMS)
def test_from_pretrained_with_more_special_tokens(tmp_path, name):
    block = make(name, changes={'n_special': 1})
    block.save_pretrained(str(tmp_path))
    loaded = type(block).from_pretrained(str(tmp_path), num_special_tokens=3)
    rows = loaded.transformer.word_embed.weight.data().asnumpy()
    assert rows.shape == (33, 16)
    assert_same(rows[:31], block.transformer.word_embed.weight.data())
    assert type(block).from_pretrained(str(tmp_path)).config.n_special == 1


# -- names and files ----------------------------------------------------------------------------


@pytest.mark.parametrize('name', [HEADS[family][1] for family in HEADS])
def test_older_names_of_hugging_face(name):
    """pytorch-pretrained-bert renamed these when it loaded the first files."""
    block = make(name)
    old = {}
    for key, value in block.tensors_in('huggingface').items():
        key = key.replace('choice_head.summary.', 'choice_head.linear.')
        if '.ln_' in key:
            key = key.replace('.weight', '.g').replace('.bias', '.b')
        old[key] = value
    assert sum(key.endswith(('.g', '.b')) for key in old) == 12 + 2 * (family_of(name) == 'gpt2')
    embedding = {'gpt': 'tokens_embed', 'gpt2': 'wte'}[family_of(name)]
    old['lm_head.decoder.weight'] = old[f'transformer.{embedding}.weight']
    old['transformer.h.0.attn.bias'] = np.tril(np.ones((1, 1, 12, 12), 'float32'))
    assert_loads(block, 'huggingface', old)
