"""Batches for language models: the original's segments, targets and lengths."""

import json

import mxnet as mx
import numpy as np
import pytest

from mxnet_pretrained_bert.tokenization_transfo_xl import (
    LMMultiFileIterator,
    LMOrderedIterator,
    LMShuffledIterator,
)
from transfo_xl import StreamLoader


@pytest.fixture(scope='module')
def cases(fixtures):
    return json.loads((fixtures / 'lm_tokenizer_cases.json').read_text())['words']['batches']


def as_lists(batches):
    return [
        [data.asnumpy().tolist(), target.asnumpy().tolist(), length]
        for data, target, length in batches
    ]


def test_ordered_batches_are_the_originals(cases):
    ordered = [case for case in cases if case['kind'] == 'ordered']
    for case in ordered:
        bsz, bptt, ext_len = case['arguments']
        iterator = LMOrderedIterator(np.arange(case['tokens']), bsz, bptt, mx.cpu(), ext_len)
        assert as_lists(iterator) == case['batches']
        assert {array.dtype for each in iterator for array in each[:2]} == {np.int32}
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
        bsz, bptt, *options = case['arguments']
        iterator = LMShuffledIterator(sents, bsz, bptt, 'cpu', *options)
        assert as_lists(iterator) == case['batches']
    assert any(case['arguments'][3] for case in shuffled)


def test_files_are_read_one_after_the_other():
    class Vocab:
        def encode_file(self, path, add_double_eos):
            assert add_double_eos
            return [np.arange(path, path + 5)] * 2

    batches = list(LMMultiFileIterator([0, 100], Vocab(), 1, 4))
    found = [data[0].asnumpy().tolist() for data, _, _ in batches]
    assert found == [[0, 1, 2, 3]] * 2 + [[100, 101, 102, 103]] * 2


def test_streams_go_on():
    loader = StreamLoader(np.arange(23), 2, 4, ctx=mx.cpu())
    batches = list(loader)
    assert [batch.is_first for batch in batches] == [True, False, False] and len(loader) == 3
    assert [batch.count for batch in batches] == [8, 8, 4]
    words = np.concatenate([batch.words.asnumpy() for batch in batches], axis=1)
    np.testing.assert_array_equal(words, [np.arange(10), np.arange(11, 21)])
    labels = np.concatenate([batch.labels.asnumpy() for batch in batches], axis=1)
    np.testing.assert_array_equal(labels, words + 1)
    np.testing.assert_array_equal(loader.labels, labels)


def test_an_extension_is_not_predicted_again():
    plain = list(StreamLoader(np.arange(23), 2, 4))
    extended = list(StreamLoader(np.arange(23), 2, 4, 3))
    assert [batch.words.shape for batch in extended] == [(2, 4), (2, 7), (2, 5)]
    for one, other in zip(plain, extended):
        shown_again = other.words.shape[1] - one.words.shape[1]
        assert (other.labels.asnumpy()[:, :shown_again] == -1).all()
        np.testing.assert_array_equal(other.labels.asnumpy()[:, shown_again:], one.labels.asnumpy())
        np.testing.assert_array_equal(other.words.asnumpy()[:, shown_again:], one.words.asnumpy())
        assert one.count == other.count
    assert extended[1].words.asnumpy()[0].tolist() == list(range(1, 8))
