"""Batches for language models: the original's segments, targets and lengths."""

import json

import numpy as np
import pytest

from model_zoo.errors import InputError
from model_zoo.tasks.language_model.iterators import (
    LMMultiFileIterator,
    LMOrderedIterator,
    LMShuffledIterator,
)


@pytest.fixture(scope='module')
def cases(fixtures):
    return json.loads((fixtures / 'lm_tokenizer_cases.json').read_text())['words']['batches']


def as_lists(batches):
    return [[data.tolist(), target.tolist(), length] for data, target, length in batches]


def test_ordered_batches_are_the_originals(cases):
    ordered = [case for case in cases if case['kind'] == 'ordered']
    for case in ordered:
        iterator = LMOrderedIterator(np.arange(case['tokens']), *case['arguments'])
        assert as_lists(iterator) == case['batches']
        assert len(iterator) == len(case['batches'])
        np.random.seed(1)
        assert as_lists(iterator.get_varlen_iter()) == case['varlen']
    assert ordered


def test_shuffled_batches_are_the_originals(cases):
    shuffled = [case for case in cases if case['kind'] == 'shuffled']
    for case in shuffled:
        places = np.cumsum(case['lengths'])
        sents = np.split(np.arange(places[-1]), places[:-1])
        np.random.seed(1)
        assert as_lists(LMShuffledIterator(sents, *case['arguments'])) == case['batches']
    assert any(case['arguments'][3] for case in shuffled)


def test_targets_follow_the_data(cases):
    data, target, length = next(iter(LMOrderedIterator(np.arange(50), 2, 7)))
    assert data.dtype == target.dtype == np.int32 and data.shape == (2, 7) == target.shape
    assert length == 7 and (target == data + 1).all()


def test_files_are_read_one_after_the_other():
    class Vocab:
        def encode_file(self, path, add_double_eos):
            assert add_double_eos
            return [np.arange(path, path + 5)] * 2

    batches = list(LMMultiFileIterator([0, 100], Vocab(), 1, 4))
    assert [data[0].tolist() for data, _, _ in batches] == [
        [0, 1, 2, 3], [0, 1, 2, 3], [100, 101, 102, 103], [100, 101, 102, 103]
    ]  # fmt: skip


@pytest.mark.parametrize(
    'arguments, message',
    [
        ((np.arange(9), 5, 2), '9 tokens are too few for bsz=5'),
        ((np.arange(9), 0, 2), 'bsz is 0'),
        ((np.arange(9), 2, 0), 'bptt is 0'),
        ((np.arange(9), 2, 2, -1), 'ext_len is -1'),
        ((np.zeros((2, 9)), 2, 2), r'data has shape \(2, 9\)'),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        LMOrderedIterator(*arguments)
