"""Samples beside those of Google's and GluonNLP's own scripts, on real text.

ZOO_GOOGLE_BERT names a checkout of google-research/bert, ZOO_GLUONNLP one of dmlc/gluon-nlp,
v0.10.0. Without short sequences: whether a document gets these is drawn once for all its samples,
and ten long articles are too few for a test of such draws. The fixtures' short documents have it.
"""

import os
import random

import pytest
from pretraining_originals import gluonnlp_original, google_original
from pretraining_statistics import google_samples, probability, statistics

from bert.tokenizer import BertTokenizer
from model_zoo.tasks import pretraining
from model_zoo.tasks.pretraining import Corpus, SampleMaker, SampleOptions, read_shard

pytestmark = [pytest.mark.peers, pytest.mark.data]


@pytest.fixture(scope='module')
def text(data_dir, tmp_path_factory):
    """Articles of Wikipedia, about a sentence a line."""
    lines = (data_dir / 'text' / 'wiki_00.txt').read_text(encoding='utf-8').split('\n')
    lines = ['' if line.startswith('<') else line.replace('. ', '.\n') for line in lines if line]
    path = tmp_path_factory.mktemp('text') / 'text.txt'
    path.write_text('\n'.join(lines), encoding='utf-8')
    return str(path)


def checkout(variable):
    folder = os.environ.get(variable)
    if not folder or not os.path.isdir(folder):
        pytest.skip(f'set {variable} to a checkout of the original')
    return folder


def assert_alike(ours, theirs):
    (count,), (their_count,) = ours.pop('samples'), theirs.pop('samples')
    assert abs(count / their_count - 1) < 0.05
    for name, counts in theirs.items():
        assert probability(ours[name], counts) > 1e-4, name


@pytest.mark.parametrize('whole_words', [False, True])
@pytest.mark.parametrize('length', [128, 512])
def test_google(whole_words, length, text, data_dir):
    original = google_original(checkout('ZOO_GOOGLE_BERT'))
    vocab_file = str(data_dir / 'vocab' / 'bert-uncased' / 'vocab.txt')
    tokenizer, corpus = BertTokenizer(vocab_file), Corpus([text])
    options = SampleOptions(length, 80, 40, short_seq_prob=0, whole_word_mask=whole_words)
    instances = original([text], vocab_file, options)
    theirs = statistics(google_samples(instances, tokenizer.vocab), tokenizer.vocab, options)
    ours = SampleMaker(corpus, tokenizer, options).make(0, corpus.num_bytes, 0)
    assert_alike(statistics(ours, tokenizer.vocab, options), theirs)


def test_gluonnlp(text, data_dir, tmp_path):
    """Its file, read by our reader."""
    original = gluonnlp_original(checkout('ZOO_GLUONNLP'))
    tokenizer = BertTokenizer(data_dir / 'vocab' / 'bert-uncased' / 'vocab.txt')
    options = SampleOptions(128, 20, 20, short_seq_prob=0)
    state = random.getstate()
    path = str(tmp_path / 'theirs.npz')
    original([text], tokenizer.vocab, options, path=path)
    random.setstate(state)
    theirs = statistics(read_shard(path, tokenizer.vocab, 128), tokenizer.vocab, options)
    pretraining.create_shards(SampleMaker(Corpus([text]), tokenizer, options), tmp_path / 'ours')
    ours = read_shard(str(tmp_path / 'ours' / 'part-000.npz'), tokenizer.vocab, 128)
    assert_alike(statistics(ours, tokenizer.vocab, options), theirs)
