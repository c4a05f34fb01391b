"""Tokens equal to transformers', with the same random weights."""

import mxnet as mx
import numpy as np
import pytest
from json_files import cases

from gpt2 import GPT2Config, GPT2LMHeadModel
from model_zoo.generation import generate

torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
pytestmark = pytest.mark.peers

SIZES = {'n_embd': 32, 'n_layer': 3, 'n_head': 4, 'n_positions': 96, 'n_ctx': 96}
SIZES.update(vocab_size=61, initializer_range=0.3)
PROMPTS = [[3, 1, 4, 1, 5], [9], list(range(2, 14)), [60, 60]]


@pytest.fixture(scope='module')
def models():
    """Ours and theirs."""
    mx.random.seed(11)
    block = GPT2LMHeadModel(GPT2Config(**SIZES))
    block.initialize()
    block.hybridize(static_alloc=True, static_shape=True)
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**SIZES, bos_token_id=None, eos_token_id=None)
    )
    tensors = {
        name: torch.from_numpy(value.copy())
        for name, value in block.tensors_in('huggingface').items()
    }
    missing, unexpected = theirs.load_state_dict(tensors, strict=False)
    assert not unexpected
    assert all('lm_head' in name or name.endswith('attn.bias') for name in missing), missing
    theirs.tie_weights()
    return block, theirs.eval()


def their_tokens(model, prompts, count, stop_tokens=(), **options):
    """New tokens by prompt and sequence, cut after the first stop token; scores of beam search."""
    longest = max(map(len, prompts))
    words = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(each)) + [1] * len(each) for each in prompts])
    with torch.inference_mode():
        result = model.generate(
            words,
            attention_mask=mask,
            max_new_tokens=count,
            pad_token_id=0,
            eos_token_id=list(stop_tokens) or None,
            return_dict_in_generate=True,
            output_scores=True,
            **options,
        )
    cut = []
    for row in result.sequences[:, longest:].tolist():
        ends = [place for place, token in enumerate(row) if token in stop_tokens]
        cut.append(row[: ends[0] + 1] if ends else row)
    number = options.get('num_return_sequences', 1)
    return [cut[first : first + number] for first in range(0, len(cut), number)], result


def our_tokens(found):
    return [[each.tokens for each in of_prompt] for of_prompt in found]


@pytest.mark.parametrize('stop_tokens', [(), (7,), (0, 20, 33)])
@pytest.mark.parametrize('prompts', [PROMPTS[:1], PROMPTS])
def test_greedy(models, prompts, stop_tokens):
    block, theirs = models
    expected, _ = their_tokens(theirs, prompts, 60, stop_tokens, do_sample=False)
    assert our_tokens(generate(block, prompts, 60, stop_tokens=stop_tokens)) == expected


@pytest.mark.parametrize(
    'num_beams, stop_tokens, length_penalty',
    [
        (2, (), 0.0),
        (5, (7,), 1.0),
        (2, (7,), 2.0),
        (5, (0, 20, 33), -0.5),
        (2, (0, 20, 33), 0.0),
        *((beams, tuple(range(0, 61, 4)), power) for beams in (2, 5) for power in (1.0, 2.0, -0.5)),
    ],
)
def test_beams(models, num_beams, stop_tokens, length_penalty):
    """Texts that end among those that go on, and when the search is over, included."""
    block, theirs = models
    options = {
        'num_beams': num_beams,
        'num_return_sequences': num_beams,
        'length_penalty': length_penalty,
    }
    expected, result = their_tokens(
        theirs, PROMPTS, 30, stop_tokens, do_sample=False, early_stopping=False, **options
    )
    found = generate(block, PROMPTS, 30, stop_tokens=stop_tokens, **options)
    assert our_tokens(found) == expected
    scores = [
        each.log_prob / len(each.tokens) ** length_penalty
        for of_prompt in found
        for each in of_prompt
    ]
    np.testing.assert_allclose(scores, result.sequences_scores.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('num_beams', [1, 3])
@pytest.mark.parametrize('options', cases('generation_peers')['changes of scores'])
def test_scores_that_are_changed(models, options, num_beams):
    block, theirs = models
    stop_tokens = tuple(range(0, 61, 4))
    if num_beams == 1 and 'early_stopping' in options:
        pytest.skip('of beams')
    for prompt in PROMPTS[:2]:  # in a batch, theirs counts the padding as text
        expected, _ = their_tokens(
            theirs, [prompt], 30, stop_tokens, do_sample=False, num_beams=num_beams, **options
        )
        found = generate(
            block, [prompt], 30, stop_tokens=stop_tokens, num_beams=num_beams, **options
        )
        assert our_tokens(found) == expected
