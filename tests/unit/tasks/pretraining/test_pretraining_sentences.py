"""Samples of full sentences, for the masked language model alone."""

import numpy as np
import pytest
from pretraining_statistics import unmasked
from refusals import refuses
from variant_models import MAKERS

from model_zoo.tasks.pretraining.text import Corpus, SampleMaker, SampleOptions

DOCUMENTS = [
    ['a cat sat on a mat', 'the mat was red', 'so it sat'],
    ['one', 'two three', 'four five six seven eight nine ten eleven twelve'],
    ['the end'],
]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / 'text.txt'
    path.write_text('\n\n'.join('\n'.join(lines) for lines in DOCUMENTS) + '\n')
    return Corpus([str(path)])


@pytest.mark.parametrize('kind', [*MAKERS, 'bert'])
def test_samples_have_all_text_once(kind, corpus, tmp_path):
    """In its order, as the tokenizer reads a document, with the tokenizer's special tokens."""
    tokenizer = MAKERS['distilbert' if kind == 'bert' else kind](tmp_path)[1]
    options = SampleOptions(20, 4, 3, next_sentence=False)
    samples = SampleMaker(corpus, tokenizer, options).make(0, corpus.num_bytes, 0)
    assert samples.count % 3 == 0  # passes
    rows, masks = set(), samples.masked_lm_weights.sum(axis=1)
    for row, ids in enumerate(unmasked(samples)):
        assert masks[row] == min(4, max(1, round(samples.valid_lengths[row] * 0.15)))
        ids, padding = np.split(ids, samples.valid_lengths[row : row + 1])
        assert ids[0] == tokenizer.cls_token_id and ids[-1] == tokenizer.sep_token_id
        assert (padding == tokenizer.pad_token_id).all()
        rows.add(tuple(ids[1:-1].tolist()))
    assert len(rows) == samples.count / 3
    assert not samples.segment_ids.any() and not samples.next_sentence_labels.any()
    documents = [tokenizer.encode(' '.join(lines), add_special_tokens=False) for lines in DOCUMENTS]
    whole = [i for ids in documents for i in (*ids, tokenizer.sep_token_id)]
    for row in rows:  # each is a part of the text, and they are all of it
        assert any(tuple(whole[n : n + len(row)]) == row for n in range(len(whole)))
    counts = [sum(i != tokenizer.sep_token_id for i in row) for row in rows]
    assert sum(counts) == sum(map(len, documents))
    assert any(tokenizer.sep_token_id in row for row in rows)  # over the end of a document


@pytest.mark.parametrize('kind', ['roberta', 'xlmr', 'mpnet', 'albert'])
def test_masks_of_whole_words(kind, corpus, tmp_path):
    tokenizer = MAKERS[kind](tmp_path)[1]
    options = SampleOptions(128, 40, 20, 0.3, whole_word_mask=True, next_sentence=False)
    samples = SampleMaker(corpus, tokenizer, options).make(0, corpus.num_bytes, 0)
    words = set()
    for row, ids in enumerate(unmasked(samples)):
        places = samples.masked_lm_positions[row][samples.masked_lm_weights[row] > 0]
        parts = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
        for part in parts:
            words.update(tokenizer.decode(ids[part].tolist()).split())
    assert words <= {word for lines in DOCUMENTS for line in lines for word in line.split()}
    assert {'cat', 'one', 'twelve'} <= words  # in the middle, at a document's begin, at its end


def test_no_pairs_where_a_pair_looks_otherwise(corpus, tmp_path):
    tokenizer = MAKERS['roberta'](tmp_path)[1]
    with refuses(says='masked_lm_only'):
        SampleMaker(corpus, tokenizer, SampleOptions())
