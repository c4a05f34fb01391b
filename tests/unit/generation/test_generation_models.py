"""Generation with the families' blocks: with the cache the same tokens as by plain calls."""

import mxnet as mx
import pytest
import tiny

from gpt import OpenAIGPTLMHeadModel
from gpt2 import GPT2LMHeadModel
from model_zoo.generation import generate, stream
from transfo_xl import TransfoXLLMHeadModel

CONTEXT = 24
SIZES = {'n_positions': CONTEXT, 'n_embd': 24, 'n_layer': 3, 'n_head': 3, 'initializer_range': 1.0}
PROMPTS = [[3, 1, 4, 1, 5], [9], list(range(2, 11))]
XL_SIZES = {'cutoffs': [9, 20], 'd_model': 24, 'd_embed': 24, 'd_inner': 40, 'n_layer': 3}
XL_SIZES.update(n_head=3, div_val=2, mem_len=5, init_std=0.7, proj_init_std=0.7)
GPTS = {'gpt': (OpenAIGPTLMHeadModel, SIZES), 'gpt2': (GPT2LMHeadModel, SIZES)}
#: of Transformer-XL: without a memory, and all other ways in one
WAYS = {'clamp_len': 5, 'ext_len': 1, 'div_val': 1, 'mem_len': 3, 'd_embed': 24}
WAYS.update(pre_lnorm=True, same_length=True, untie_r=False)
MEMORIES = {'plain': {}, 'no memory': {'mem_len': 0, 'same_length': False}, 'all': WAYS}
BLOCKS = {n: (TransfoXLLMHeadModel, {**XL_SIZES, **changes}) for n, changes in MEMORIES.items()}
BLOCKS.update(GPTS)


def make(name, options=None, **changes):
    block_class, sizes = BLOCKS[name]
    # with some other seeds the models repeat one token
    config = tiny.make_config(block_class.config_class, 37, **sizes, **changes)
    block = tiny.initialized(block_class(config, **options or {}), seed=5)
    block.hybridize(static_alloc=True, static_shape=True)
    return block


@pytest.fixture(params=BLOCKS)
def block(request):
    return make(request.param)


def plain_log_probs(block, text):
    """Return the log-probabilities of the token after `text`, without a cache."""
    outputs = block(mx.nd.array([text]))
    scores = outputs[0] if isinstance(outputs, (list, tuple)) else outputs
    return scores[0, -1].log_softmax().asnumpy()


def seen(block, text):
    """What the model sees of a text that may be longer than its context."""
    begin = 0
    if block.context_length is None:
        return text
    for length in range(len(text) + 1):
        if length - begin > CONTEXT:
            begin = length - CONTEXT // 2
    return text[begin:]


def assert_greedy(block, count):
    """Return what is generated, after a comparison with plain calls."""
    result = generate(block, PROMPTS, count)
    for prompt, [(tokens, log_prob, _)] in zip(PROMPTS, result):
        text, expected = list(prompt), 0.0
        for token in tokens:
            log_probs = plain_log_probs(block, text)
            assert token == log_probs.argmax()
            expected += log_probs[token]
            text.append(token)
        assert log_prob == pytest.approx(expected, abs=1e-4)
    return result


def test_greedy(block):
    result = assert_greedy(block, 15)
    assert len({token for (each,) in result for token in each.tokens}) > 2


@pytest.mark.parametrize('name', GPTS)
def test_changes_of_the_model_between_generations(name):
    """Weights, heads and special tokens: the next start sees them, whoever made the change."""
    options = 'output_attentions', 'output_all_encodings', 'keep_multihead_output'
    options = {**dict.fromkeys(options, True), 'predict_special_tokens': False}
    block = make(name, options, n_special=3)
    for change in (
        lambda: None,
        lambda: block.transformer.prune_heads({0: [1]}),
        lambda: block.transformer.set_num_special_tokens(6),
        lambda: block.transformer.position_weight.set_data(mx.nd.random.normal(shape=(24, 24))),
        lambda: block.prune_heads({1: [2]}),
    ):
        change()
        assert_greedy(block, 3)


ROWS = [
    (36, {'num_beams': 3, 'num_return_sequences': 2}),
    (15, {'temperature': 1.0, 'num_return_sequences': 3, 'seed': 0}),
]


@pytest.mark.parametrize('count, options', ROWS)
def test_rows_that_move(block, count, options):
    """The log-probabilities are those of the plain calls, whatever rows the cache has moved."""
    result = generate(block, PROMPTS, count, overflow='slide', **options)
    for prompt, found in zip(PROMPTS, result):
        for tokens, log_prob, _ in found[:2]:
            text = list(prompt)
            expected = 0.0
            for token in tokens:
                expected += plain_log_probs(block, seen(block, text))[token]
                text.append(token)
            assert log_prob == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize('block', ['gpt', 'gpt2'], indirect=True)
def test_to_the_last_place_of_the_context(block):
    prompt = [5] * (CONTEXT - 6)
    (continuation,) = generate(block, [prompt], 6)[0]
    log_probs = plain_log_probs(block, prompt + continuation.tokens[:-1])
    assert continuation.tokens[-1] == log_probs.argmax()


def test_a_draw_is_the_same_alone_in_a_batch_and_streamed(block):
    options = {'top_k': 9, 'seed': 4, 'stop_tokens': [0, 1, 2]}
    together = generate(block, PROMPTS, 15, **options)
    del options['seed']
    for number, (continuation,) in enumerate(together):
        streams = [(4, number, 0)]
        alone = list(stream(block, [PROMPTS[number]], 15, streams=streams, **options))
        assert [new.token for new in alone] == continuation.tokens
        assert alone[-1].finish == continuation.finish
