"""BertEmbedding: words, vectors, windows, pooling, order, laziness, bad arguments."""

import random
import string

import arrays
import gluonnlp as nlp
import mxnet as mx
import numpy as np
import pytest

from bert.model import BertModel
from bert.tokenizer import BertTokenizer
from bert_embedding import BertEmbedding
from model_zoo.batches.windows import text_windows


@pytest.fixture(scope='module')
def tiny(tiny_dir):
    return BertEmbedding(model=tiny_dir, batch_size=8, long_texts='windows')


def sentences_of(count, longest, seed=0):
    rng = random.Random(seed)
    words = [''.join(rng.choices(string.ascii_lowercase, k=rng.randint(1, 4))) for _ in range(50)]
    return [' '.join(rng.choices(words, k=rng.randint(0, longest))) for _ in range(count)]


def reference(directory, sentence, oov_way):
    """Words and vectors as the originals find them, one sentence at a time."""
    tokenizer = BertTokenizer.from_pretrained(directory)
    block = BertModel.from_pretrained(str(directory), use_pooler=False)
    pieces = ['[CLS]', *tokenizer.tokenize(sentence), '[SEP]']
    ids = mx.nd.array([tokenizer.convert_tokens_to_ids(pieces)], dtype='int32')
    states = block(ids, mx.nd.zeros_like(ids), mx.nd.array([len(pieces)]))[0].asnumpy()
    words, groups = [], []
    for piece, state in zip(pieces[1:-1], states[1:-1]):
        if piece.startswith('##'):
            words[-1] += piece[2:]
            groups[-1].append(state)
        else:
            words.append(piece)
            groups.append([state])
    ways = {'avg': lambda g: np.mean(g, 0), 'sum': lambda g: np.sum(g, 0), 'last': lambda g: g[-1]}
    return words, [ways[oov_way](group) for group in groups], states


def assert_same(result, expected):
    assert result[0] == expected[0]
    assert all(vector.dtype == np.float32 for vector in result[1])
    arrays.assert_same(result[1], expected[1])


def test_words_of_the_original_example(tiny, tiny_dir, caplog):
    sentence = (
        'We introduce a new language representation model called BERT, which stands for '
        'Bidirectional Encoder Representations from Transformers.'
    )
    words = (
        'we introduce a new language representation model called bert , which stands for '
        'bidirectional encoder representations from transformers'
    )
    tokens, vectors = tiny([sentence])[0]
    assert ' '.join(tokens) == words + ' .'
    assert len(vectors) == 19
    assert vectors[0].shape == (16,)
    # the original cuts to 25 pieces, whence its 18 words; ours says so
    tokens, vectors = BertEmbedding(model=tiny_dir, max_seq_length=25)([sentence])[0]
    assert ' '.join(tokens) == words
    assert len(tokens) == len(vectors) == 18
    assert '1 of 1 texts are longer than 25 tokens' in caplog.text


@pytest.mark.parametrize('oov_way', ['avg', 'sum', 'last'])
def test_equals_the_originals_loop(tiny, tiny_dir, oov_way):
    sentences = [*sentences_of(20, 7), 'a caf\u00e9 \u4f60\u597d \U0001f389!', 'zyx']
    results = tiny(sentences, oov_way=oov_way)
    assert len(results) == len(sentences)
    for sentence, result in zip(sentences, results):
        assert_same(result, reference(tiny_dir, sentence, oov_way))


def test_special_tokens_are_kept_on_request_and_texts_may_be_empty(tiny, tiny_dir):
    _, _, states = reference(tiny_dir, 'ab c', 'avg')
    tokens, vectors = tiny(['ab c'], filter_spec_tokens=False)[0]
    assert tokens == ['[CLS]', 'ab', 'c', '[SEP]']
    np.testing.assert_allclose(vectors[0], states[0], atol=1e-5)
    np.testing.assert_allclose(vectors[3], states[4], atol=1e-5)
    assert tiny([]) == [] and tiny(['', ' \t', 'a'])[:2] == [([], []), ([], [])]
    assert tiny.sentence_vectors([]).shape == (0, 16)
    # what the user wrote isn't filtered
    assert tiny(['a [SEP] b'])[0][0] == ['a', '[SEP]', 'b']


# -- long sentences -----------------------------------------------------------------------------


def test_long_sentence_is_embedded_in_windows(tiny, tiny_dir, caplog):
    sentence = ' '.join(random.Random(5).choices(string.ascii_lowercase, k=70))
    tokens, vectors = tiny(['a b', sentence, 'c'])[1]
    assert tokens == sentence.split()
    assert len(vectors) == 70
    windows = text_windows(70, 30)
    assert len(windows) > 2
    edges = []
    for window in windows:
        part = ' '.join(tokens[window.start : window.stop])
        _, expected, states = reference(tiny_dir, part, 'avg')
        edges.append([states[0], states[-1]])
        for piece in range(window.first, window.last):
            np.testing.assert_allclose(vectors[piece], expected[piece - window.start], atol=1e-5)
    first, last = np.mean(edges, axis=0)
    vectors = tiny([sentence], filter_spec_tokens=False)[0][1]
    np.testing.assert_allclose(vectors[0], first, atol=1e-5)
    np.testing.assert_allclose(vectors[-1], last, atol=1e-5)
    mean = tiny.sentence_vectors([sentence])[0]
    np.testing.assert_allclose(mean, np.mean(vectors, axis=0), atol=1e-5)
    assert not caplog.records  # nothing was cut


# -- sentence vectors ---------------------------------------------------------------------------


def test_pooling(tiny, tiny_dir):
    sentences = sentences_of(12, 7, seed=1)
    states = [reference(tiny_dir, sentence, 'avg')[2] for sentence in sentences]
    expected = {
        'mean': [state.mean(axis=0) for state in states],
        'cls': [state[0] for state in states],
        'max': [state.max(axis=0) for state in states],
    }
    for pooling, vectors in expected.items():
        result = tiny.sentence_vectors(sentences, pooling)
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, vectors, atol=1e-5)
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        result = tiny.sentence_vectors(sentences, pooling, normalize=True)
        np.testing.assert_allclose(result, vectors, atol=1e-5)


def test_encode_as_sentence_transformers(tiny, tiny_dir, capsys):
    sentences = sentences_of(12, 7, seed=1)
    vectors = tiny.sentence_vectors(sentences, normalize=True)
    found = tiny.encode(
        sentences, batch_size=2, show_progress_bar=True, normalize_embeddings=True, prompt=''
    )
    assert '12/12' in capsys.readouterr().err
    np.testing.assert_allclose(found, vectors, atol=1e-5)
    assert found.dtype == np.float32 and tiny.encode([]).shape == (0, 16)
    one, listed = tiny.encode(sentences[0]), tiny.encode(sentences[:2], convert_to_numpy=False)
    assert one.shape == (16,) and not capsys.readouterr().err
    np.testing.assert_allclose(listed[0], one, atol=1e-5)
    assert repr(tiny).startswith(f'<BertEmbedding {tiny_dir}: BertModel, 16 units, ')


@pytest.mark.weights
def test_minilm_gives_sentence_transformers_vectors(minilm_dir, fixtures):
    expected = np.load(fixtures / 'embedding_minilm.npz')
    embedding = BertEmbedding(model='bert_6_384_12', max_seq_length=256)
    vectors = embedding.sentence_vectors(expected['sentences'], normalize=True)
    cosine = (vectors * expected['vectors']).sum(axis=1)
    np.testing.assert_allclose(cosine, 1, atol=1e-5)
    np.testing.assert_allclose(vectors, expected['vectors'], atol=2e-5)


# -- many sentences -----------------------------------------------------------------------------


def test_any_batch_size_gives_the_same_in_input_order(tiny, tiny_dir):
    sentences = sentences_of(60, 40, seed=2)
    expected = tiny(sentences)
    for batch_size in (1, 64):
        options = {'batch_size': batch_size, 'long_texts': 'windows'}
        results = BertEmbedding(model=tiny_dir, **options)(sentences)
        for result, other in zip(results, expected):
            assert_same(result, other)
    assert [tokens for tokens, _ in expected] == [sentence.split() for sentence in sentences]


def test_iterators_read_only_what_they_need(tiny):
    read = 0

    def source():
        nonlocal read
        for sentence in sentences_of(2000, 6):
            read += 1
            yield sentence

    ahead = 0
    for number, (tokens, vectors) in enumerate(tiny.iter_embedding(source()), 1):
        assert len(tokens) == len(vectors)
        ahead = max(ahead, read - number)
    assert number == read == 2000
    assert ahead < 1000
    read = 0
    vectors = tiny.iter_sentence_vectors(source())
    assert next(vectors).shape == (16,)
    assert read < 1000


# -- models -------------------------------------------------------------------------------------


def test_params_path(tiny_dir, tmp_path):
    """Weights of the architecture of the name, and a vocabulary beside them."""
    tokenizer, path = BertTokenizer.from_pretrained(tiny_dir), str(tmp_path / 'mine.params')
    block, _ = nlp.model.get_model('bert_6_384_12', vocab=tokenizer.vocab, pretrained=False)
    block.initialize()
    tokenizer.save_vocabulary(tmp_path)
    block.save_parameters(path, format='gluonnlp')
    embedding = BertEmbedding(model='bert_6_384_12', params_path=path)
    encoding = embedding.tokenizer.encode('Abc d')
    ids = mx.nd.array([encoding.input_ids], dtype='int32')
    expected = block(ids, mx.nd.zeros_like(ids), mx.nd.array([6]))[0][0].asnumpy()
    tokens, vectors = embedding(['Abc d'])[0]
    assert tokens == ['abc', 'd']  # lowered: the vocabulary has no capitals
    np.testing.assert_allclose(vectors[1], expected[4], atol=1e-5)
