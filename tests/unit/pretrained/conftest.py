"""A small repository of the hub, and a server that may have it."""

import json

import mxnet as mx
import pytest
import safetensors.numpy
from local_hub import close_session, connect
from loopback import LoopbackServer
from tiny_repository import CONFIG, TOKENS

import bert


@pytest.fixture(scope='module')
def block():
    block = bert.BertForSequenceClassification(bert.BertConfig.from_dict(CONFIG))
    block.initialize(mx.init.Normal(1))
    return block


@pytest.fixture(scope='module')
def files(block):
    """What the repository has; name -> bytes."""
    config = {**CONFIG, 'architectures': ['BertForSequenceClassification']}
    tensors = block.tensors_in('huggingface')
    return {
        'config.json': json.dumps(config).encode(),
        'vocab.txt': '\n'.join(TOKENS).encode(),
        'model.safetensors': safetensors.numpy.save(tensors, {'format': 'pt'}),
    }


@pytest.fixture
def server(tmp_path, monkeypatch):
    """The hub, and any other address; the caches are in the test's folder."""
    with LoopbackServer() as server:
        connect(server, tmp_path, monkeypatch)
        yield server
    close_session()
