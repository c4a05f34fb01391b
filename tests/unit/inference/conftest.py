"""Tiny models that the tests of pipelines and of the server share."""

import threading

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


@pytest.fixture(scope='module')
def served_at(app):
    """HOST:PORT of a server that runs the module's `app`."""
    from model_zoo.inference.server import bind

    uvicorn = pytest.importorskip('uvicorn')
    bound = bind('127.0.0.1', 0)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None))
    thread = threading.Thread(target=server.run, kwargs={'sockets': [bound]})
    bound.listen(64)
    thread.start()
    yield f'127.0.0.1:{bound.getsockname()[1]}'
    server.should_exit = True
    thread.join()
