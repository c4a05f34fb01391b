"""Transformer-XL's model and language model: against the original's numbers, and by themselves."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import assert_same as near
from arrays import stored
from refusals import refuses
from transfo_xl_compare import (
    LENGTHS,
    VARIANTS,
    assert_same,
    make_block,
    make_config,
    make_inputs,
    run,
    unpack,
)

from transfo_xl import TransfoXLConfig, TransfoXLLMHeadModel, TransfoXLModel


def make(variant='plain', block_class=TransfoXLLMHeadModel, **changes):
    return tiny.initialized(block_class(TransfoXLConfig(**{**make_config(variant), **changes})))


def words_of(batch=3, length=5, seed=0):
    return mx.nd.array(np.random.RandomState(seed).randint(0, 40, (batch, length)), dtype='int32')


def filled(block, batch=3, segments=2):
    """A memory of real segments."""
    mems = None
    for seed in range(segments):
        _, mems = block(words_of(batch, 5, 100 + seed), mems)
    return mems


# -- the original's numbers ---------------------------------------------------------------------


@pytest.mark.parametrize('variant', VARIANTS)
def test_original(fixtures, tmp_path, variant):
    """Three segments with their memory: scores, losses, memories and gradients."""
    theirs = unpack(stored(fixtures / 'transfo_xl.npz'), variant)
    config = make_config(variant)
    block = make_block(theirs['state'], tmp_path, config)
    block.hybridize(static_alloc=True, static_shape=True)
    segments = make_inputs(config, list(VARIANTS).index(variant))
    assert len(theirs['scores']) == len(LENGTHS)
    assert_same(run(block, segments), theirs)


# -- the memory ---------------------------------------------------------------------------------


@pytest.mark.parametrize('block_class', [TransfoXLModel, TransfoXLLMHeadModel])
def test_memory_in_the_beginning(block_class):
    block = make('pre_lnorm', block_class)
    mems = block.init_mems(3)
    assert [memory.shape for memory in mems] == 2 * [(6, 3, 10)] + [(3,)]
    assert (mems[-1] == 6).asnumpy().all() and not mems[0].asnumpy().any()
    near(block(words_of())[0], block(words_of(), mems)[0], 0)
    assert make('no_memory').init_mems(3) == []


def test_empty_memory_is_no_memory(tmp_path):
    """What isn't valid gets no probability, whatever it holds."""
    block = make()
    without = make('no_memory')
    block.save_parameters(str(tmp_path / 'x.params'))
    without.load_parameters(str(tmp_path / 'x.params'))
    block.hybridize(static_alloc=True, static_shape=True)
    mems = block.init_mems(3)
    mems[-1][:] = 0
    assert (mems[-1] == 0).asnumpy().all()
    wanted, no_mems = without(words_of())
    assert no_mems == []
    near(block(words_of(), mems)[0], wanted)
    garbage = [mx.nd.random.normal(0, 100, memory.shape) for memory in mems[:-1]]
    scores, mems = block(words_of(), [*garbage, mems[-1]])
    near(scores, wanted)
    assert (mems[-1] == 5).asnumpy().all()
    # the next segment sees this one, so that both are like one without a memory
    more, _ = block(words_of(3, 1, 1), mems)
    wanted, _ = without(mx.nd.concat(words_of(), words_of(3, 1, 1), dim=1))
    near(more, wanted[:, 5:])


def test_rows_have_numbers_of_their_own():
    block = make()
    mems = filled(block)
    counts = mx.nd.array([0, 6, 2])
    scores, new = block(words_of(), [*mems[:-1], counts])
    assert new[-1].asnumpy().tolist() == [5, 6, 6]
    for row in range(3):
        alone = [memory[:, row : row + 1] for memory in mems[:-1]]
        wanted, _ = block(words_of()[row : row + 1], [*alone, counts[row : row + 1]])
        near(scores[row : row + 1], wanted)


def test_memories_pass_no_gradient():
    block = make()
    weight = block.transformer.layers[0].attention.qkv_weight
    gradients = []
    for detached in (False, True):
        weight.zero_grad()
        with mx.autograd.record():
            _, mems = block(words_of())
            if detached:
                mems = [memory.detach() for memory in mems]
            loss, _ = block(words_of(seed=1), mems, labels=words_of(seed=2))
        loss.backward()
        gradients.append(weight.grad().copy())
    near(*gradients, tolerance=0)
    assert gradients[0].norm().asscalar() > 0


# -- graphs -------------------------------------------------------------------------------------


@pytest.mark.parametrize('head', [False, True])
def test_reset_length(tmp_path, head):
    block = make('same_length', TransfoXLLMHeadModel if head else TransfoXLModel)
    block.hybridize(static_alloc=True, static_shape=True)
    old = filled(block)
    block.save_parameters(str(tmp_path / 'x.params'))
    for ext_len, mem_len in ((0, 9), (2, 4)):
        block.reset_length(5, ext_len, mem_len)
        fresh = make('same_length', type(block), ext_len=ext_len, mem_len=mem_len)
        fresh.load_parameters(str(tmp_path / 'x.params'))
        with refuses(says='mems'):
            block(words_of(), old)
        mems = same = None
        for seed in range(3):
            wanted, mems = fresh(words_of(seed=seed), mems)
            result, same = block(words_of(seed=seed), same)
            near(result, wanted)
            near(same[1], mems[1])
    assert block.config.mem_len == 6
    for name, *lengths in (('ext_len', -1, 6), ('mem_len', 0, 0)):
        with refuses(says=name):
            block.reset_length(5, *lengths)


# -- generation ---------------------------------------------------------------------------------
