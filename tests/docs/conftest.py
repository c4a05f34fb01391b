"""Made-up data, and weights under all names, for the examples of pages and docstrings."""

import shutil

import places
import pytest
from pictures import pictures_once  # noqa: F401  a fixture for all tests here

from model_zoo import zoo
from model_zoo.pretrained import catalogue


def optional(request, fixture):
    """Return the value of a fixture, or None if it skips the test."""
    try:
        return request.getfixturevalue(fixture)
    except pytest.skip.Exception:
        return None


@pytest.fixture(scope='session')
def shared(tmp_path_factory):
    """The folder of made-up downloads, shortened data and a cache of weights for all pages."""
    folder = tmp_path_factory.mktemp('shared')
    places.make_downloads(folder / 'downloaded')
    return folder


@pytest.fixture(scope='session')
def tiny_models(shared, request):
    """Tiny models, and a cache with them."""
    data_dir = optional(request, 'data_dir')
    minilm_dir = optional(request, 'minilm_dir')
    vocab = minilm_dir and minilm_dir / 'vocab.txt'
    models = places.TinyModels(shared / 'models', data_dir, vocab)
    models.fill_cache(shared / 'mxnet' / 'models')
    return models


@pytest.fixture(scope='session')
def hub_cache(shared, tiny_models, minilm_dir):
    """A cache of huggingface_hub's, with tiny models and MiniLM."""
    tiny_models.fill_hub_cache(shared / 'hub', minilm_dir)
    return shared / 'hub'


@pytest.fixture
def registries(monkeypatch):
    """Remove what a page adds to the zoo."""
    monkeypatch.setattr(zoo, '_BUILDERS', dict(zoo._BUILDERS))
    monkeypatch.setattr(catalogue, '_ENTRIES', dict(catalogue._ENTRIES))


@pytest.fixture
def folder(tmp_path):
    """The folder in which a page's blocks run; it is removed afterwards."""
    folder = tmp_path / 'page'
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)
