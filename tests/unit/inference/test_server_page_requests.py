"""What the server's page asks the server for, without a browser."""

import pathlib
import shutil

import numpy as np
import pytest

import bert
import model_zoo
from model_zoo.inference.server import Settings, build_app
from model_zoo.inference.server.page import PATHS

testclient = pytest.importorskip('fastapi.testclient')

HEADERS = {'Authorization': 'Bearer secret'}


@pytest.fixture(scope='module')
def client(pipelines):
    with testclient.TestClient(build_app(pipelines, Settings(api_key='secret'))) as client:
        yield client


def test_files_are_open_and_strict(client):
    """They need no key, and forbid the browser all but what comes from the server."""
    for path in PATHS.values():
        answer = client.get(path)
        assert answer.status_code == 200
        policy = answer.headers['Content-Security-Policy']
        assert "default-src 'none'" in policy and 'unsafe' not in policy
    assert client.post('/page/map', json={}).status_code == 401
    for file in (pathlib.Path(model_zoo.__file__).parent / 'inference/server/page/files').iterdir():
        text = file.read_text()
        assert 'innerHTML' not in text
        assert 'http' not in text.replace('http://www.w3.org/2000/svg', '')


def test_a_map_is_of_two_principal_components(client):
    texts = ['a', 'the cat', 'the dog sleeps', 'good film .']
    body = {'model': 'owner/vectors', 'texts': texts}
    points = np.array(client.post('/page/map', json=body, headers=HEADERS).json()['points'])
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-3)
    body = {'model': 'owner/vectors', 'input': texts}
    found = client.post('/v1/embeddings', json=body, headers=HEADERS).json()['data']
    vectors = np.array([each['embedding'] for each in found])
    left, sizes, _ = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(abs(points), abs(left * sizes)[:, :2], atol=1e-3)


def test_attentions_of_a_long_text_are_cut(client):
    body = {'model': 'nli', 'text': 'cat ' * 50}
    found = client.post('/page/attentions', json=body, headers=HEADERS).json()
    assert found['cut'] and len(found['tokens']) == 24
    assert np.shape(found['attentions']) == (2, 2, 24, 24)
    np.testing.assert_allclose(np.sum(found['attentions'], axis=-1), 1, atol=0.02)


DEEP = f'---\nwidget: {"[" * 600}\n---\n'
CARD = '---\nwidget:\n- text: A film.\n  choices: [a, b]\n  n: 1\n---\n# Title\n---\n'


@pytest.mark.parametrize(
    ('card', 'example'),
    [
        (CARD, ['a', 'b']),
        ('---\nwidget: {: x\n---\n', None),
        ('# Title\n', None),
        (None, None),
        (DEEP, None),
    ],
)
def test_the_example_is_the_one_of_the_models_card(saved, tmp_path, card, example):
    folder = shutil.copytree(saved(bert.BertForMultipleChoice), tmp_path / 'model')
    if card is not None:
        (tmp_path / 'model' / 'README.md').write_text(card)
    with testclient.TestClient(build_app({'mine': model_zoo.pipeline(folder)})) as client:
        found = client.get('/v1/models/mine').json()['example']
    assert found == ({'text': 'A film.', 'choices': example} if example else {})
