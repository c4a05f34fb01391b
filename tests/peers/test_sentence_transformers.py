"""Vectors, searches and losses of sentence-transformers: ours are that library's."""

import numpy as np
import pytest
import tiny
from json_files import change_json
from variant_models import MAKERS

import model_zoo
from bert_embedding import BertEmbedding

library = pytest.importorskip('sentence_transformers')
models = pytest.importorskip('sentence_transformers.models')
torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
pytestmark = pytest.mark.peers

ORACLE = 'make_sentence_fixtures'
UNITS = 8
MODES = ('cls', 'max', 'mean', 'mean_sqrt_len_tokens', 'weightedmean', 'lasttoken')


def sentences(count=30):
    random, words = np.random.RandomState(0), 'a the cat dog sleeps and runs query ! .'.split()
    return [' '.join(random.choice(words, random.randint(1, 40))) for _ in range(count)]


@pytest.fixture
def transformer(oracle, tmp_path):
    """A function of a length that gives the first part of a model."""
    return lambda length=24: oracle.make_transformer(str(tmp_path / 'bert'), length)


@pytest.mark.parametrize(
    'mode, include_prompt', [*((mode, n % 2 > 0) for n, mode in enumerate(MODES)), (MODES, True)]
)
def test_poolings_prompts_and_lengths(transformer, tmp_path, mode, include_prompt):
    pooling = models.Pooling(UNITS, pooling_mode=mode, include_prompt=include_prompt)
    model = library.SentenceTransformer(
        modules=[transformer(20), pooling],
        prompts={'query': 'query : the '},
        device='cpu',
    )
    model.save_pretrained(str(tmp_path / 'model'))
    ours = BertEmbedding(str(tmp_path / 'model'))
    for options in ({}, {'prompt_name': 'query'}, {'prompt': 'a dog '}):
        theirs = model.encode(sentences(), **options)
        np.testing.assert_allclose(
            ours.sentence_vectors(sentences(), **options), theirs, rtol=0, atol=1e-5
        )


def dense(units, activation='Tanh', **options):
    function = getattr(torch.nn, activation)()
    return lambda: models.Dense(UNITS, units, activation_function=function, **options)


TOKENS_IN = {'module_input_name': 'token_embeddings'}
PARTS = [
    ([dense(UNITS, 'Sigmoid', use_residual=True)], {}),
    ([dense(7, use_residual=True), models.Normalize], {'truncate_dim': 5}),
    ([lambda: models.LayerNorm(UNITS), models.Dropout], {'similarity_fn_name': 'manhattan'}),
    ([dense(7, 'Identity')], {'truncate_dim': 6, 'similarity_fn_name': 'dot'}),
    ([dense(9, 'ReLU'), models.Normalize], {'truncate_dim': 8, 'similarity_fn_name': 'euclidean'}),
]
BEFORE = [[], [dense(UNITS, **TOKENS_IN)], [lambda: models.Normalize(**TOKENS_IN)]]


@pytest.mark.parametrize('before', BEFORE)
@pytest.mark.parametrize('after, options', PARTS)
def test_parts_and_settings_of_folders(transformer, tmp_path, before, after, options):
    parts = [*(make() for make in before), models.Pooling(UNITS), *(make() for make in after)]
    model = library.SentenceTransformer(modules=[transformer(), *parts], device='cpu', **options)
    folder, texts = str(tmp_path / 'model'), sentences(6)
    model.save_pretrained(folder, safe_serialization=not before)
    ours, theirs = BertEmbedding(folder), model.encode(texts)
    np.testing.assert_allclose(ours.encode(texts), theirs, rtol=0, atol=1e-5)
    cut = {'truncate_dim': 3, 'normalize_embeddings': True}
    np.testing.assert_allclose(
        ours.encode(texts, **cut), model.encode(texts, **cut), rtol=0, atol=1e-5
    )
    wanted = model.similarity(theirs, theirs).numpy()
    np.testing.assert_allclose(ours.similarity(texts, texts), wanted, rtol=0, atol=1e-4)
    found = model_zoo.pipeline('sentence-similarity', folder)((texts[0], texts[1]))
    assert found == pytest.approx(float(wanted[0, 1]), abs=1e-4)
    hits, order = ours.search(texts[0], texts, 4), np.argsort(-wanted[0])[:4]
    assert [hit['corpus_id'] for hit in hits] == order.tolist()
    scores = [hit['score'] for hit in hits]
    np.testing.assert_allclose(scores, wanted[0, order], rtol=0, atol=1e-4)


@pytest.mark.parametrize('activation', ['Identity', 'Sigmoid', 'Tanh', 'ReLU', None])
def test_cross_encoders(transformer, tmp_path, activation):
    transformer()
    torch.manual_seed(1)
    options = {'prompts': {'query': 'query : ', 'none': ''}, 'default_prompt_name': 'query'}
    function = getattr(torch.nn, activation or 'Sigmoid')()
    model = library.CrossEncoder(
        str(tmp_path / 'bert'), num_labels=1, activation_fn=function, device='cpu', **options
    )
    model.save_pretrained(str(tmp_path / 'model'))
    if activation is None:  # as a folder of transformers
        change_json(tmp_path / 'model' / 'config.json', sentence_transformers=...)
    ours, texts = model_zoo.pipeline('rerank', str(tmp_path / 'model')), sentences(4)
    item = {'query': texts[0], 'documents': texts[1:]}
    for given in ({}, {'prompt_name': 'none'}, {'top_k': 2}, {'return_documents': True}):
        found, theirs = ours(item, **given), model.rank(*item.values(), **given)
        wanted = [{**each, 'score': pytest.approx(each['score'], abs=1e-5)} for each in theirs]
        assert found == wanted
    pair = texts[0], texts[1]
    assert ours(pair) == pytest.approx(float(model.predict([pair])[0]), abs=1e-4)


@pytest.mark.parametrize('family', sorted(MAKERS))
def test_a_linear_classifier_is_a_model_of_sentence_transformers(tmp_path, family):
    """Whose vectors are the classifier's unnormalized scores."""
    block, tokenizer = MAKERS[family](tmp_path / 'words')
    folder, saved = str(tmp_path / 'start'), str(tmp_path / 'saved')
    tiny.initialized(block, 0.4).save_pretrained(folder, tokenizer, format='huggingface')
    rows = [(text, str(number % 3)) for number, text in enumerate(sentences() * 3)]
    trained = model_zoo.finetune(folder, 'text-classification', rows, method='linear')
    trained.save(saved)
    theirs = library.SentenceTransformer(saved, device='cpu').encode(sentences())
    theirs = np.exp(theirs) / np.exp(theirs).sum(axis=1, keepdims=True)
    for scores, expected in zip(trained(sentences(), top_k=None), theirs, strict=True):
        found = [score['score'] for score in sorted(scores, key=lambda score: score['label'])]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


PAIRS = [('the cat sat', 'a cat'), ('a red mat', 'the dog'), ('cat', 'mat 1'), ('sat on', 'red')]


@pytest.mark.parametrize('family', sorted(MAKERS))
def test_every_family_in_every_way(tmp_path, family):
    """Trained here, saved, and opened by everything that gives vectors; and by the library."""
    block, tokenizer = MAKERS[family](tmp_path / 'words')
    folder, saved = str(tmp_path / 'start'), str(tmp_path / 'saved')
    tiny.initialized(block, 0.4).save_pretrained(folder, tokenizer, format='huggingface')
    trained = model_zoo.finetune(
        folder, 'sentence-similarity', PAIRS, pooling='cls', max_length=6, batch_size=2, epochs=1
    )
    trained.save(saved)
    theirs = library.SentenceTransformer(saved, device='cpu').encode(PAIRS[0])
    expected = float(theirs[0] @ theirs[1])
    similarity = model_zoo.pipeline('sentence-similarity', saved)
    embedding = BertEmbedding(saved)
    assert trained(PAIRS[0]) == pytest.approx(expected, abs=1e-5)
    assert similarity(PAIRS[0]) == pytest.approx(expected, abs=1e-5)
    assert embedding.similarity(*PAIRS[0]) == pytest.approx(expected, abs=1e-5)
    vectors = model_zoo.pipeline('feature-extraction', saved)(
        list(PAIRS[0]), pooling='model', return_tensors=True
    )
    np.testing.assert_allclose(vectors, theirs, rtol=0, atol=1e-5)
