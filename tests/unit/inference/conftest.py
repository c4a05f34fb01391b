"""Tiny models that the tests of pipelines and of the server share."""

import pytest
from tiny_models import save_bert, save_gpt2


@pytest.fixture(scope='session')
def saved(tmp_path_factory):
    """A function that saves a tiny BERT and returns its folder."""
    root, folders = tmp_path_factory.mktemp('models'), {}

    def save(block_class, labels=None):
        key = block_class.__name__, str(labels)
        if key not in folders:
            folders[key] = save_bert(root / f'model{len(folders)}', block_class, labels)
        return folders[key]

    return save


@pytest.fixture(scope='session')
def writer_folder(tmp_path_factory):
    """The folder of a tiny GPT-2."""
    return save_gpt2(tmp_path_factory.mktemp('models') / 'gpt2')
