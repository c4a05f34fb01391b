"""Examples to token ids."""

import logging

import numpy as np
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


def test_single_texts(tokenizer, caplog):
    examples = [Example('0', 'a b', None, '1'), Example('1', 'c', None, '0')]
    first, second = ClassifierFeatures(tokenizer, get_task('SST'), 8)(examples)
    assert tokens(first) == '[CLS] a b [SEP]'
    assert first.input_ids.dtype == first.token_types.dtype == np.int32
    assert first.token_types.tolist() == [0, 0, 0, 0]
    assert (first.valid_length, first.label) == (4, 1)
    assert tokens(second) == '[CLS] c [SEP]'  # not padded
    assert (second.valid_length, second.label) == (3, 0)
    assert not caplog.records


def test_pairs_and_regression(tokenizer):
    features = ClassifierFeatures(tokenizer, get_task('STS-B'), 8)
    (feature,) = features([Example('0', 'a b', 'c', 2.5)])
    assert tokens(feature) == '[CLS] a b [SEP] c [SEP]'
    assert feature.token_types.tolist() == [0, 0, 0, 0, 1, 1]
    assert feature.label == 2.5
    (feature,) = features([Example('0', 'a', 'c', None)])
    assert feature.label is None


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
