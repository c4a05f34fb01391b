"""Text to samples for pre-training: against what Google's algorithm draws from the same text."""

import json
import pickle

import numpy as np
import pytest
from pretraining_statistics import STUDY, probability, statistics, unmasked

from model_zoo.tasks.pretraining.text import Corpus, SampleMaker, SampleOptions, matching_files


@pytest.fixture(scope='module')
def corpus(fixtures):
    return Corpus([str(fixtures / 'pretraining' / 'sample_text.txt')])


def make(corpus, tokenizer, *seed, **options):
    maker = SampleMaker(corpus, tokenizer, SampleOptions(**options))
    return maker.make(0, corpus.num_bytes, *(seed or (0,)))


def text_of(ids):
    return f' {" ".join(map(str, ids))} '


@pytest.mark.parametrize('name', ['google', 'google_words'])
def test_statistics_of_google(name, corpus, tokenizer, fixtures):
    options = SampleOptions(whole_word_mask=name == 'google_words', **STUDY)
    samples = SampleMaker(corpus, tokenizer, options).make(0, corpus.num_bytes, 0)
    ours = statistics(samples, tokenizer.vocab, options)
    theirs = json.loads((fixtures / 'pretraining' / f'{name}.json').read_text())
    (count,), (their_count,) = ours.pop('samples'), theirs.pop('samples')
    assert abs(count / their_count - 1) < 0.02
    assert ours.keys() == theirs.keys()
    for what, counts in theirs.items():
        assert probability(ours[what], counts) > 1e-3, what
    masked, kept, replaced = np.array(ours['replaced']) / sum(ours['replaced'])
    assert abs(masked - 0.8) < 0.01 and abs(kept - 0.1) < 0.01 and abs(replaced - 0.1) < 0.01


def test_segments_and_documents(corpus, tokenizer):
    vocab = tokenizer.vocab
    samples = make(corpus, tokenizer, max_seq_length=64, dupe_factor=20)
    texts = []
    for document in corpus.documents(0, corpus.num_bytes):
        batch = tokenizer.encode_batch(document, pad=False, add_special_tokens=False)
        texts.append(text_of(np.concatenate(batch.input_ids)))
    assert len(texts) > 2
    ids = unmasked(samples)
    for row in range(samples.count):
        length, second = samples.valid_lengths[row], samples.segment_ids[row].sum()
        first = length - second
        assert ids[row, 0] == vocab['[CLS]']
        assert ids[row, first - 1] == ids[row, length - 1] == vocab['[SEP]']
        assert (ids[row, length:] == vocab['[PAD]']).all()
        assert (samples.segment_ids[row, first:length] == 1).all()
        a, b = text_of(ids[row, 1 : first - 1]), text_of(ids[row, first : length - 1])
        assert len(a) > 2 and len(b) > 2
        of_a, of_b = ([n for n, t in enumerate(texts) if part in t] for part in (a, b))
        if samples.next_sentence_labels[row]:
            assert any(n != m for n in of_a for m in of_b)
        else:
            assert any(n == m and texts[n].find(a) < texts[n].rfind(b) for n in of_a for m in of_b)


@pytest.mark.parametrize('whole_words', [False, True])
def test_masks(whole_words, corpus, tokenizer):
    vocab = tokenizer.vocab
    options = {'max_seq_length': 128, 'max_predictions_per_seq': 15, 'dupe_factor': 20}
    samples = make(corpus, tokenizer, whole_word_mask=whole_words, **options)
    ids, counts = unmasked(samples), samples.masked_lm_weights.sum(axis=1)
    wanted = np.minimum(15, [max(1, round(n * 0.15)) for n in samples.valid_lengths.tolist()])
    if not whole_words:
        assert (counts == wanted).all()
    assert (counts <= wanted).all() and counts.sum() > 0.97 * wanted.sum()
    first = np.array([not token.startswith('##') for token in vocab.idx_to_token])
    is_broken = 0
    for row in range(samples.count):
        masks = int(counts[row])
        places = samples.masked_lm_positions[row, :masks]
        assert (np.diff(places) > 0).all()
        assert not samples.masked_lm_positions[row, masks:].any()
        assert not samples.masked_lm_ids[row, masks:].any()
        assert not np.isin(ids[row, places], [vocab['[CLS]'], vocab['[SEP]']]).any()
        others = np.delete(np.arange(128), places)
        assert (samples.input_ids[row, others] == ids[row, others]).all()
        words = np.cumsum(first[ids[row, : samples.valid_lengths[row]]])
        is_text = ~np.isin(ids[row, : len(words)], [vocab['[CLS]'], vocab['[SEP]']])
        for word in set(words[places]):
            is_broken += len(set(np.flatnonzero((words == word) & is_text)) - set(places)) > 0
    # but for words whose beginning was cut off and that follow [CLS] or [SEP]
    assert is_broken < 0.02 * counts.sum() if whole_words else is_broken > 0.2 * counts.sum()


def test_the_seed_decides(corpus, tokenizer):
    maker = SampleMaker(corpus, tokenizer, SampleOptions(64, 8, 2))
    again = pickle.loads(pickle.dumps(maker))
    first = maker.make(0, corpus.num_bytes, 1, 2)
    for one, other in zip(first, again.make(0, corpus.num_bytes, 1, 2)):
        assert one.dtype == other.dtype and np.array_equal(one, other)
    for seed in ((1, 3), (2, 1), (1,), (1, 2, 0)):
        assert not np.array_equal(first[0], maker.make(0, corpus.num_bytes, *seed)[0])
    np.random.seed(0)
    expected = np.random.rand()
    np.random.seed(0)
    maker.make(0, corpus.num_bytes, 1)
    assert np.random.rand() == expected  # the global generator isn't touched


def test_a_part_with_one_document_borrows_from_another(tokenizer, tmp_path):
    (tmp_path / 'a.txt').write_text('the rain\nthe morning\nand the rain\n\nthe little man\n')
    (tmp_path / 'b.txt').write_text('\n\n\n')
    corpus = Corpus(matching_files(f'{tmp_path}/*.txt'))
    maker = SampleMaker(corpus, tokenizer, SampleOptions(16, 2, 10))
    man = tokenizer.vocab[tokenizer.tokenize('man')[-1]]
    samples = maker.make(0, 1, 0)  # of the first document
    ids = unmasked(samples)
    is_random = samples.next_sentence_labels == 1
    assert samples.count >= 10 and 0 < is_random.sum() < samples.count
    assert (ids == man).any(axis=1).tolist() == is_random.tolist()
    assert maker.make(corpus.num_bytes - 2, corpus.num_bytes, 0).count == 0
    assert maker.make(1, corpus.num_bytes - 4, 0).next_sentence_labels.all()  # of the second
