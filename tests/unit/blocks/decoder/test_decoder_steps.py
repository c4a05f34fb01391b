"""Generation token by token: what start, step and select give is what a plain call gives."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import array
from gpt_compare import CONFIGS, HEADS, PACKAGES, config_class, family_of

CONFIG = {**CONFIGS['gpt']['small'], 'n_head': 4, 'n_embd': 16, 'n_layer': 3, 'n_positions': 20}
LMS = [HEADS[family][0] for family in HEADS]


def make(name, **options):
    config = config_class(name)(**CONFIG)
    return tiny.initialized(getattr(PACKAGES[family_of(name)], name)(config, **options))


def padded(rows):
    """Rows of unequal length as (words, valid_length); the padding isn't 0."""
    lengths = [len(row) for row in rows]
    words = np.random.randint(0, 33, (len(rows), max(lengths)))
    for words_row, row in zip(words, rows):
        words_row[: len(row)] = row
    return array(words), array(lengths)


def scores_alone(block, row):
    """Scores of the token after `row`, by a plain call."""
    outputs = block(array([row]))
    scores = outputs[0] if isinstance(outputs, list) else outputs
    return scores[0, -1].asnumpy()


def assert_scores(block, scores, rows):
    for result, row in zip(scores.asnumpy(), rows):
        np.testing.assert_allclose(result, scores_alone(block, row), atol=1e-5)
    assert len(scores) == len(rows)


def random_rows(*lengths):
    return [list(np.random.randint(0, 33, length)) for length in lengths]


def assert_start_and_step(block):
    """That a start and a step have the scores of plain calls."""
    rows = random_rows(3, 2)
    scores, state = block.start(*padded(rows), 5)
    assert_scores(block, scores, rows)
    scores, _ = block.step(array([1, 2]), state)
    assert_scores(block, scores, [[*rows[0], 1], [*rows[1], 2]])


@pytest.mark.parametrize('name', LMS)
def test_changes_of_the_model_between_generations(name):
    """Weights, heads and special tokens: the next start sees them, whoever made the change."""
    options = 'output_attentions', 'output_all_encodings', 'keep_multihead_output'
    block = make(name, predict_special_tokens=False, **dict.fromkeys(options, True))
    for change in (
        lambda: None,
        lambda: block.transformer.prune_heads({0: [1]}),
        lambda: block.transformer.set_num_special_tokens(6),
        lambda: block.transformer.position_weight.set_data(mx.nd.random.normal(shape=(20, 16))),
        lambda: block.prune_heads({1: [2]}),
    ):
        change()
        assert_start_and_step(block)
