"""Pairs of texts as Pytorchic BERT reads them: its own batches, in any order of reading."""

import itertools
import json
import pathlib

import numpy as np
from arrays import part, stored
from refusals import refuses

from bert import BertTokenizer
from mxnet_pytorchic_bert.pairs import PairLoader

FOLDER = pathlib.Path(__file__).parents[2] / 'fixtures' / 'pytorchic'
LENGTH, MASKS = 32, 5


def make_loader(path=FOLDER / 'corpus.txt', **options):
    tokenizer = BertTokenizer(str(FOLDER / 'vocab.txt'), do_lower_case=True, never_split=())
    options = {'batch_size': 4, 'seed': 5, **options}
    return PairLoader(
        str(path), tokenizer, max_seq_length=LENGTH, max_predictions_per_seq=MASKS, **options
    )


def assert_equal(left, right):
    for name in ('words', 'token_types', 'masked_ids', 'masked_positions', 'next_sentence_labels'):
        np.testing.assert_array_equal(
            getattr(left, name).asnumpy(), getattr(right, name).asnumpy(), err_msg=name
        )


def test_batches_are_the_originals():
    expected = part(stored(FOLDER / 'expected.npz'), 'batches')
    loader = make_loader()
    batches = [batch for epoch in range(3) for batch in loader.epoch(epoch)]
    assert len(batches) == len(expected['ids'])
    names = {
        'ids': 'words',
        'types': 'token_types',
        'masked_ids': 'masked_ids',
        'places': 'masked_positions',
        'weights': 'masked_weights',
    }
    for number, batch in enumerate(batches):
        for theirs, ours in names.items():
            array = getattr(batch, ours).asnumpy()
            whole = expected[theirs][number]
            np.testing.assert_array_equal(array, whole[:, : array.shape[1]], err_msg=theirs)
            assert not whole[:, array.shape[1] :].any()  # its padding
        np.testing.assert_array_equal(
            batch.valid_length.asnumpy(), expected['mask'][number].sum(axis=1)
        )
        np.testing.assert_array_equal(
            batch.next_sentence_labels.asnumpy(), 1 - expected['is_next'][number]
        )


def test_an_epoch_can_begin_anywhere():
    loader = make_loader()
    whole = [list(loader.epoch(epoch)) for epoch in range(3)]
    for epoch, start in ((1, 3), (0, 2), (2, 0)):
        rest = list(make_loader().epoch(epoch, start))
        assert len(rest) == len(whole[epoch]) - start
        for left, right in zip(rest, whole[epoch][start:]):
            assert_equal(left, right)
        assert_equal(next(loader.epoch(epoch, start)), whole[epoch][start])  # after other ones
    assert list(make_loader().epoch(0, 10**6)) == []


def test_a_position_leads_to_the_same_batches():
    loader = make_loader()
    epoch = loader.epoch(0)
    for _ in range(4):
        next(epoch)
    position = json.loads(json.dumps(loader.position()))
    expected = list(itertools.islice(epoch, 3))
    other = make_loader()
    other.go_to(position)
    for left, right in zip(itertools.islice(other.epoch(0, 4), 3), expected):
        assert_equal(left, right)


def test_texts_that_are_none(tmp_path):
    (tmp_path / 'short.txt').write_text('the cat\n' * 10)
    with refuses(says='short.txt'):
        make_loader(tmp_path / 'short.txt')
    with refuses(says='none.txt'):
        make_loader(tmp_path / 'none.txt')
