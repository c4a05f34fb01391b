"""Vectors, searches and losses of sentence-transformers: ours are that library's."""

import numpy as np
import pytest
import tiny
from variant_models import MAKERS

import model_zoo
from bert_embedding import BertEmbedding

library = pytest.importorskip('sentence_transformers')
models = pytest.importorskip('sentence_transformers.models')
torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
pytestmark = pytest.mark.peers

WORDS = [f'w{number}' for number in range(50)]
TOKENS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *WORDS]
MODES = ('cls', 'max', 'mean', 'mean_sqrt_len_tokens', 'weightedmean', 'lasttoken')


def transformer(folder, length):
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(TOKENS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=32,
        max_position_embeddings=40,
        initializer_range=0.3,
    )
    transformers.BertModel(config).save_pretrained(folder)
    (folder / 'vocab.txt').write_text('\n'.join(TOKENS))
    transformers.BertTokenizer(str(folder / 'vocab.txt')).save_pretrained(folder)
    return models.Transformer(str(folder), max_seq_length=length)


def sentences(count=30):
    random = np.random.RandomState(0)
    return [' '.join(random.choice(WORDS, random.randint(1, 50))) for _ in range(count)]


@pytest.mark.parametrize(
    'mode, include_prompt', [*((mode, n % 2 > 0) for n, mode in enumerate(MODES)), (MODES, True)]
)
def test_poolings_prompts_and_lengths(tmp_path, mode, include_prompt):
    pooling = models.Pooling(16, pooling_mode=mode, include_prompt=include_prompt)
    model = library.SentenceTransformer(
        modules=[transformer(tmp_path / 'bert', 20), pooling],
        prompts={'query': 'w1 w2 w3 '},
        device='cpu',
    )
    model.save_pretrained(str(tmp_path / 'model'))
    ours = BertEmbedding(str(tmp_path / 'model'))
    for options in ({}, {'prompt_name': 'query'}, {'prompt': 'w7 w8 '}):
        theirs = model.encode(sentences(), **options)
        np.testing.assert_allclose(
            ours.sentence_vectors(sentences(), **options), theirs, rtol=0, atol=1e-5
        )


@pytest.mark.parametrize(
    'activation, safe', [('Tanh', True), ('Identity', False), ('ReLU', True), ('Sigmoid', False)]
)
def test_dense_and_normalize(tmp_path, activation, safe):
    parts = [
        transformer(tmp_path / 'bert', None),
        models.Pooling(16),
        models.Dense(16, 7, activation_function=getattr(torch.nn, activation)()),
        models.Normalize(),
    ]
    model = library.SentenceTransformer(modules=parts, device='cpu')
    model.save_pretrained(str(tmp_path / 'model'), safe_serialization=safe)
    found = BertEmbedding(str(tmp_path / 'model')).sentence_vectors(sentences())
    np.testing.assert_allclose(found, model.encode(sentences()), rtol=0, atol=1e-5)


def dense(units, **options):
    return lambda: models.Dense(16, units, **options)


TOKENS_IN = {'module_input_name': 'token_embeddings'}
PARTS = [
    ([dense(16, use_residual=True)], {}),
    ([dense(7, use_residual=True), models.Normalize], {'truncate_dim': 5}),
    ([lambda: models.LayerNorm(16), models.Dropout], {'similarity_fn_name': 'manhattan'}),
    ([], {'truncate_dim': 8, 'similarity_fn_name': 'dot'}),
    ([models.Normalize], {'truncate_dim': 8, 'similarity_fn_name': 'euclidean'}),
]
BEFORE = [[], [dense(16, **TOKENS_IN)], [lambda: models.Normalize(**TOKENS_IN)]]


@pytest.mark.parametrize('before', BEFORE)
@pytest.mark.parametrize('after, options', PARTS)
def test_parts_and_settings_of_folders(tmp_path, before, after, options):
    parts = [*(make() for make in before), models.Pooling(16), *(make() for make in after)]
    parts = [transformer(tmp_path / 'bert', None), *parts]
    model = library.SentenceTransformer(modules=parts, device='cpu', **options)
    folder, texts = str(tmp_path / 'model'), sentences(6)
    model.save_pretrained(folder)
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
    assert ours.search(texts[0], texts, 1)[0]['score'] == pytest.approx(wanted[0].max(), abs=1e-4)


@pytest.mark.parametrize('activation', ['Identity', 'Sigmoid', 'Tanh', 'ReLU'])
def test_cross_encoders(tmp_path, activation):
    transformer(tmp_path / 'bert', None)
    torch.manual_seed(1)
    options = {'prompts': {'query': 'w7 w8 ', 'none': ''}, 'default_prompt_name': 'query'}
    function = getattr(torch.nn, activation)()
    model = library.CrossEncoder(
        str(tmp_path / 'bert'), num_labels=1, activation_fn=function, device='cpu', **options
    )
    model.save_pretrained(str(tmp_path / 'model'))
    ours, texts = model_zoo.pipeline('rerank', str(tmp_path / 'model')), sentences(4)
    for given in ({}, {'prompt_name': 'none'}):
        theirs = model.rank(texts[0], texts[1:], **given)
        found = ours({'query': texts[0], 'documents': texts[1:]}, **given)
        assert [each['score'] for each in found] == pytest.approx(
            [float(each['score']) for each in theirs], abs=1e-5
        )


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


def test_search_and_similarity(tmp_path):
    modules = [transformer(tmp_path / 'bert', 20), models.Pooling(16)]
    model = library.SentenceTransformer(modules=modules, device='cpu')
    model.save_pretrained(str(tmp_path / 'model'))
    ours, texts = BertEmbedding(str(tmp_path / 'model')), sentences()
    vectors = model.encode(texts)
    np.testing.assert_allclose(
        ours.similarity(texts[:3], texts), model.similarity(vectors[:3], vectors), atol=1e-4
    )
    theirs = library.util.semantic_search(vectors[:3], vectors, top_k=4)
    for one, other in zip(ours.search(texts[:3], texts, 4), theirs):
        assert [hit['corpus_id'] for hit in one] == [hit['corpus_id'] for hit in other]
        np.testing.assert_allclose(
            [hit['score'] for hit in one], [hit['score'] for hit in other], atol=1e-4
        )
