"""Examples to token ids."""

import logging

import pytest
from refusals import refuses
from tiny import SPECIAL

from bert.tokenizer import BertTokenizer
from model_zoo.tasks.classification import ClassifierFeatures
from model_zoo.tasks.classification_data import Example, get_task
from model_zoo.tokenization.vocab import load_vocab

TOKENS = [*SPECIAL, *'abcde']


@pytest.fixture
def tokenizer():
    return BertTokenizer(load_vocab(TOKENS))


def tokens(feature):
    return ' '.join(TOKENS[index] for index in feature.input_ids)


def test_max_len_counts_the_special_tokens_and_cuts_are_logged_once(tokenizer, caplog):
    examples = [Example('', text, None, '1') for text in ('a b c d', 'a b c', 'a b c d e')]
    with caplog.at_level(logging.WARNING):
        result = ClassifierFeatures(tokenizer, get_task('SST'), 5)(examples)
    assert [tokens(feature) for feature in result] == ['[CLS] a b c [SEP]'] * 3
    (record,) = caplog.records
    assert '2 of 3 examples of SST are longer than 5 tokens' in record.getMessage()
    pair = Example('0', 'a b c d', 'e d c b', '1')
    (feature,) = ClassifierFeatures(tokenizer, get_task('MRPC'), 7)([pair])
    assert tokens(feature) == '[CLS] a b [SEP] e d [SEP]'


@pytest.mark.parametrize(('task', 'least'), [('SST', 3), ('MRPC', 5)])
def test_max_len_too_small(tokenizer, task, least):
    ClassifierFeatures(tokenizer, get_task(task), least)
    with refuses('max_length'):
        ClassifierFeatures(tokenizer, get_task(task), least - 1)
