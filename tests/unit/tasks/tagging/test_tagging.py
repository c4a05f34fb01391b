"""Words with labels: features, windows, batches, predictions and scores."""

import numpy as np
import pytest
from refusals import refuses
from tiny import SPECIAL

from bert import BertTokenizer
from model_zoo.inference.entities import has_entities
from model_zoo.tasks import tagging
from model_zoo.tasks.tagging import Sentence, encode_sentences, entity_report, score_tags
from model_zoo.tokenization.vocab import load_vocab

TOKENS = [*SPECIAL, *'abcdefgh', '##x', '##y']
LABELS = ['O', 'B-PER', 'I-PER']


@pytest.fixture(scope='module')
def tokenizer():
    return BertTokenizer(load_vocab(TOKENS))


def sentence(words, labels=None):
    words = words.split()
    return Sentence(tuple(words), tuple(labels or ['O'] * len(words)), 1)


def encode(sentences, tokenizer, max_length=16):
    return encode_sentences(sentences, tokenizer, LABELS, max_length)


def test_labels_belong_to_first_pieces(tokenizer):
    """As in the example of Google's README: orig_to_tok_map."""
    (feature,) = encode([sentence('axy b cx', ['B-PER', 'O', 'I-PER'])], tokenizer)
    tokens = tokenizer.convert_ids_to_tokens(feature.input_ids)
    assert tokens == ['[CLS]', 'a', '##x', '##y', 'b', 'c', '##x', '[SEP]']
    assert feature.positions.tolist() == [1, 4, 5]
    assert feature.label.tolist() == [1, 0, 2]
    assert feature.valid_length == 8


def test_words_that_the_tokenizer_drops_have_no_place(tokenizer):
    control = '\u200b'  # removed by the basic tokenizer
    assert tokenizer.tokenize(control) == []
    samples = encode([Sentence(('a', control, 'q', 'b'), None, 1)], tokenizer)
    tokens = tokenizer.convert_ids_to_tokens(samples[0].input_ids)
    assert tokens == ['[CLS]', 'a', '[UNK]', 'b', '[SEP]']
    assert samples[0].positions.tolist() == [1, 2, 3] and samples[0].label is None
    assert samples.words[0].tolist() == [0, 2, 3]


@pytest.mark.parametrize(
    'labels, given, expected',
    [
        ('O B-X I-X', 'B-X I-X O', 'B-X I-X I-X I-X O O O O'),
        ('O B-X I-X E-X S-X', 'S-X S-X O', 'B-X I-X E-X S-X O O O O'),
        ('O B-X I-X L-X U-X', 'B-X L-X O', 'B-X I-X I-X L-X O O O O'),
        ('N V', 'N V N', 'N N N V N N N N'),
        ('O B-X', 'B-X O B-X', 'B-X -100 -100 O B-X -100 -100 -100'),  # which it can't learn
    ],
)
def test_parts_of_words_continue_its_entity(tokenizer, labels, given, expected, caplog):
    """Punctuation parts words, as it does where a pipeline reads the text."""
    labels, names = labels.split(), [*labels.split(), '-100']
    row = sentence('a-b cx e.f.', given.split())
    samples = encode_sentences([row], tokenizer, labels, 16)
    assert samples.words[0].tolist() == [0, 0, 0, 1, 2, 2, 2, 2]
    assert [names[number] for number in samples[0].label] == expected.split()
    assert ('I-X' in caplog.text) == ('-100' in expected)


def test_texts_have_blanks_where_people_write_them():
    words = tuple("He , ( of AT&T ) , is n't in U.N. ; why ?".split())
    text = "He, (of AT&T), is n't in U.N.; why?"
    row = Sentence(words, None, 1)
    assert row.text == text
    assert all(text[:end].endswith(word) for word, end in zip(words, row.ends()))


@pytest.mark.parametrize('max_len', [3, 4, 5, 8, 13, 40])
def test_long_sentences_are_seen_in_windows(tokenizer, max_len, caplog):
    caplog.set_level('INFO')
    rng = np.random.RandomState(max_len)
    words = [''.join([rng.choice(list('abcdefgh')), 'xy' * rng.randint(0, 4)]) for _ in range(30)]
    labels = [LABELS[number] for number in rng.randint(0, 3, 30)]
    sentences = [sentence('a b'), sentence(' '.join(words), labels), sentence('c')]
    features = encode(sentences, tokenizer, max_len)
    assert max(feature.valid_length for feature in features) <= max_len
    seen, found = [], []
    for feature in features:
        seen += tokenizer.convert_ids_to_tokens(feature.input_ids[feature.positions])
        found += feature.label.tolist()
    # each word once, in order
    assert sum(len(feature.positions) for feature in features) == 33
    assert seen == ['a', 'b', *(word[0] for word in words), 'c']
    assert found == [0, 0, *map(LABELS.index, labels), 0]
    long = 2 if max_len == 3 else 1
    assert f'{long} of 3 sentences' in caplog.text


def test_bad_input(tokenizer):
    with refuses('max_length'):
        encode([], tokenizer, 2)
    bad = Sentence(('a', 'b', 'c'), ('O', 'O', 'B-LOC'), 7)
    with refuses(line=9):
        encode([bad], tokenizer, 9)


def test_labels():
    sentences = [sentence('a b', ['I-PER', 'O']), sentence('a', ['B-LOC'])]
    assert tagging.labels_of_sentences(sentences) == ['O', 'B-LOC', 'I-PER']
    parted = [sentence('a-b c', ['B-LOC', 'S-X'])]
    assert tagging.labels_of_sentences(parted) == ['B-LOC', 'I-LOC', 'S-X']
    assert has_entities(['O', 'B-LOC', 'I-PER']) and has_entities(['S-X', 'E-X', 'U-X', 'L-X'])
    for labels in (['O'], ['NN', 'VB'], ['B-LOC', 'NN'], ['B-']):
        assert not has_entities(labels)


SCORES = [
    ([['N', 'V'], ['N']], [['N', 'N'], ['N']], {'accuracy': pytest.approx(2 / 3)}),
    ([['O']], [['O']], {'accuracy': 1}),
]


@pytest.mark.parametrize('right, found, expected', SCORES)
def test_scores_of_words(right, found, expected):
    assert score_tags(right, found) == expected
    assert score_tags([['O']], [['O']], entities=True)['f1'] == 0


@pytest.mark.parametrize(
    'right',  # IOB2, IOB1, and schemes with ends
    ['B-A I-A O B-A B-B', 'I-A I-A O I-A I-B', 'B-A E-A O S-A S-B', 'B-A L-A O U-A U-B'],
)
def test_scores_of_entities(right):
    """Of three entities one is found, one has another end and one another type."""
    metrics = score_tags([right.split()], [['B-A', 'I-A', 'O', 'B-A', 'I-A']])
    assert metrics['precision'] == pytest.approx(1 / 2)
    assert metrics['recall'] == pytest.approx(1 / 3)
    assert metrics['f1'] == pytest.approx(0.4)
    assert score_tags([right.split()], [right.split()])['f1'] == 1
    none = score_tags([right.split()], [['O'] * 5])
    assert (none['precision'], none['recall'], none['f1']) == (0, 0, 0)


def test_scores_of_each_type():
    right = [['B-A', 'I-A', 'O', 'B-B', '-100'], ['B-A', 'O', 'B-D']]
    found = [['B-A', 'I-A', 'O', 'B-B', 'B-A'], ['O', 'B-C', 'O']]
    report = entity_report(right, found)
    rows = [list(row.values()) for row in report['tables']['Scores per entity type']]
    assert rows == [
        ['A', 1, 0.5, pytest.approx(2 / 3), 2, 1],
        ['B', 1, 1, 1, 1, 1],
        ['C', 0, 0, 0, 0, 1],
        ['D', 0, 0, 0, 1, 0],
    ]
    assert report['never_predicted'] == ['D']
    assert entity_report([['O']], [['O']])['tables'] == {'Scores per entity type': []}
