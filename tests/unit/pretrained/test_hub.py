"""The Hugging Face hub as a source, against a server on this machine."""

import hashlib
import json
import os

import pytest
import safetensors.numpy
from arrays import tensors_of
from local_hub import publish
from tiny_repository import TOKENS, same

import bert
from model_zoo import pretrained
from model_zoo.errors import PretrainedNotFoundError
from model_zoo.pretrained import catalogue, find_files, list_pretrained
from model_zoo.tokenization.vocab_file import VocabFile


@pytest.fixture
def online(server, files, monkeypatch):
    """The server has 'me/tiny'; the other sources have nothing."""
    publish(server, 'me/tiny', files)
    list_pretrained()  # the families' entries go to the catalogue that lasts
    monkeypatch.setattr(catalogue, '_ENTRIES', {})
    for dataset, repository in [('tiny', 'me/tiny'), ('gone', 'me/gone'), ('local', None)]:
        entry = pretrained.PretrainedEntry('bert_x', dataset, 'bert', True, hub=repository)
        pretrained.register_pretrained(entry)
    return server


def test_download_and_cache(online, block, tmp_path):
    found = find_files('bert_x', 'tiny')
    assert found.source == 'Hugging Face hub'
    assert found.weights.startswith(str(tmp_path / 'hub'))
    assert VocabFile(found).vocab.idx_to_token == TOKENS
    loaded = bert.BertModel.from_pretrained(os.path.dirname(found.weights))
    ours, theirs = tensors_of(block.bert), tensors_of(loaded)
    assert all((ours[name] == theirs[name]).all() for name in ours)

    count = len(online.requests)
    assert find_files('bert_x', 'tiny').weights == found.weights
    assert len(online.requests) == count  # what is in the cache is taken without a question


def in_parts(block):
    """The weights in two files and their index."""
    tensors = block.tensors_in('huggingface')
    names = 'model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'
    parts = {name: names[number > 4] for number, name in enumerate(tensors)}
    files = {
        file: safetensors.numpy.save({name: tensors[name] for name in parts if parts[name] == file})
        for file in names
    }
    return {**files, 'model.safetensors.index.json': json.dumps({'weight_map': parts}).encode()}


def test_weights_in_parts(online, block, files):
    publish(online, 'me/tiny', {'model.safetensors': None, **in_parts(block)})
    path = find_files('bert_x', 'tiny').weights
    assert path.endswith('model.safetensors.index.json')
    assert same(type(block).from_pretrained(os.path.dirname(path)), block)
    found = pretrained.places_of(pretrained.get_entry('bert_x', 'tiny'), '')
    assert found == ["Hugging Face hub's cache"]


def test_a_broken_download_is_completed(online, block):
    publish(online, 'me/tiny', {'model.safetensors': None, **in_parts(block)})
    name = 'model-00002-of-00002.safetensors'
    resource = online.resources[f'/me/tiny/resolve/{"1" * 40}/{name}']
    resource.cut = 3
    with pytest.raises(PretrainedNotFoundError):
        find_files('bert_x', 'tiny')
    resource.cut = None
    path = find_files('bert_x', 'tiny').weights
    assert same(type(block).from_pretrained(os.path.dirname(path)), block)


def test_a_commit_and_a_checksum_of_the_catalogue(online, files):
    publish(online, 'me/tiny', files, revision='2' * 40, commit='2' * 40)
    sha256 = hashlib.sha256(files['model.safetensors']).hexdigest()
    for dataset, expected in [('right', sha256), ('wrong', '0' * 64)]:
        at = {'hub': 'me/tiny', 'hub_revision': '2' * 40, 'hub_sha256': expected}
        entry = pretrained.PretrainedEntry('bert_x', dataset, 'bert', True, **at)
        pretrained.register_pretrained(entry)
    assert '2' * 40 in find_files('bert_x', 'right').weights
    assert not any('main' in path for path in online.paths())
    with pytest.raises(PretrainedNotFoundError):
        find_files('bert_x', 'wrong')


def test_no_such_repository(online):
    for dataset in ('gone', 'local'):
        with pytest.raises(PretrainedNotFoundError):
            find_files('bert_x', dataset)
