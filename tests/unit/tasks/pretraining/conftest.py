"""What the tests of pre-training's data begin with."""

import pytest

from bert.tokenizer import BertTokenizer


@pytest.fixture(scope='module')
def tokenizer(fixtures):
    return BertTokenizer(fixtures / 'pretraining' / 'vocab.txt')


@pytest.fixture(scope='module')
def text(fixtures):
    """The paths of a text, which is read six times."""
    return [str(fixtures / 'pretraining' / 'sample_text.txt')] * 6
