"""Models of any repository of the hub, address or archive; archives are unpacked safely."""

import io
import json
import os
import tarfile
import zipfile

import pytest
import safetensors.numpy
import tiny
import tokenizers
from folders import word_pieces
from huggingface_hub import constants
from local_hub import publish
from loopback import Resource
from refusals import refuses
from tiny_repository import CONFIG, TOKENS, same

import bert
import gpt2
from model_zoo import get_model, open_model
from model_zoo.errors import InputError, PretrainedNotFoundError
from model_zoo.opening import locate, open_tokenizer
from model_zoo.pretrained import is_place


def find(name):
    """What a model is; nothing large is fetched."""
    return locate(name, weights=None, vocab=False)


def test_everything_of_a_repository(server, files, block):
    publish(server, 'me/tiny', files)
    opened = open_model('me/tiny')
    assert type(opened.block) is bert.BertForSequenceClassification and same(opened.block, block)
    assert opened.files.source == 'Hugging Face hub'
    assert opened.tokenizer.tokenize('Hello hubs') == ['hello', 'hub', '##s']
    assert opened.block.num_labels == 3 and find('me/tiny').labels.given == ['good', 'bad', 'ugly']
    assert find('me/tiny').model is None and find('me/tiny').family.name == 'bert'
    assert same(bert.BertForSequenceClassification.from_pretrained('me/tiny'), block)
    assert bert.BertTokenizer.from_pretrained('me/tiny').vocab.idx_to_token == TOKENS
    model, vocab = get_model('me/tiny', dropout=0.2)
    assert type(model) is bert.BertModel and vocab.idx_to_token == TOKENS
    assert model.config.hidden_dropout_prob == 0.2
    assert (model.word_embed.weight.data() == block.bert.word_embed.weight.data()).asnumpy().all()


def test_what_was_fetched_needs_no_network(server, files, block, monkeypatch):
    publish(server, 'me/tiny', files)
    open_model('me/tiny')
    count = len(server.requests)
    assert same(open_model('me/tiny').block, block) and len(server.requests) == count
    monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', True)
    assert same(open_model('me/tiny').block, block)
    with pytest.raises(PretrainedNotFoundError) as caught:
        open_model('me/other')
    assert 'me/other' in str(caught.value) and 'HF_HUB_OFFLINE' in str(caught.value)


def test_the_tokenizer_alone_fetches_no_weights(server, files):
    publish(server, 'me/tiny', files)
    open_tokenizer('me/tiny')
    assert not any(path.endswith('model.safetensors') for path in server.paths())


def test_revisions(server, files, block):
    publish(server, 'me/tiny', files)
    other = {**CONFIG, 'id2label': {'0': 'no', '1': 'yes', '2': 'maybe'}}
    changed = {**files, 'config.json': json.dumps(other).encode()}
    publish(server, 'me/tiny', changed, revision='v2', commit='2' * 40)
    assert find('me/tiny').labels.given == ['good', 'bad', 'ugly']
    assert find('me/tiny@v2').labels.given == ['no', 'yes', 'maybe']
    assert same(open_model('me/tiny@v2', 'classification').block, block)
    assert find('me/tiny').labels.given == ['good', 'bad', 'ugly']
    server.headers_of_404['X-Error-Code'] = 'RevisionNotFound'
    with pytest.raises(PretrainedNotFoundError):
        open_model('me/tiny@v3')


@pytest.mark.parametrize('options', [{}, {'lowercase': False}, {'strip_accents': False}])
def test_a_tokenizer_in_its_only_file(server, files, options):
    rust = word_pieces(pieces=TOKENS[5:], **options)
    del (files := dict(files))['vocab.txt']
    publish(server, 'me/tiny', {**files, 'tokenizer.json': rust.to_str().encode()})
    tokenizer = open_model('me/tiny').tokenizer
    assert type(tokenizer) is bert.BertTokenizer
    for text in ('hello hubs', 'HELLO', 'h\xe9llo'):
        assert list(tokenizer.encode(text).input_ids) == rust.encode(text).ids
    assert tokenizer.pad_token == '[PAD]' and len(tokenizer.vocab) == len(TOKENS)


def test_a_decoder_with_tokenizer_json(server):
    model = tiny.make(gpt2.GPT2LMHeadModel, 4)
    ids = {'h': 0, 'i': 1, 'hi': 2, '<|endoftext|>': 3}
    rust = tokenizers.Tokenizer(tokenizers.models.BPE(ids, [('h', 'i')]))
    rust.add_special_tokens(['<|endoftext|>'])
    files = {
        'config.json': json.dumps({'model_type': 'gpt2', **model.config.to_dict()}).encode(),
        'tokenizer.json': rust.to_str().encode(),
        'model.safetensors': safetensors.numpy.save(model.tensors_in('huggingface')),
    }
    publish(server, 'me/gpt', files)
    opened = open_model('me/gpt', 'language_model')
    assert opened.tokenizer.convert_tokens_to_ids(opened.tokenizer.tokenize('hi')) == [2]
    assert get_model('me/gpt')[1].idx_to_token == list(ids)


@pytest.mark.parametrize('missing', ['config.json', 'vocab.txt', 'model.safetensors'])
def test_what_a_repository_lacks(server, files, missing):
    publish(server, 'me/tiny', {name: files[name] for name in files if name != missing})
    with pytest.raises(PretrainedNotFoundError):
        open_model('me/tiny')


def test_what_is_a_place(tmp_path, here):
    (tmp_path / 'me').mkdir()
    (tmp_path / 'me' / 'here').mkdir()
    (tmp_path / 'x.tar.gz').write_bytes(b'')
    for name in ('me/tiny', 'me/tiny@v1.0', 'me/tiny@refs/pr/1', 'https://a.b/c.zip', 'x.tar.gz'):
        assert is_place(name)
    others = 'me/here bert-base-uncased google-bert/bert-base-uncased a/b/c /a/b ./a/b ../a me/'
    for name in (*others.split(), 'me/a b', '~/model', 'y.tar.gz'):
        assert not is_place(name)


# -- archives and addresses -----------------------------------------------------------------------


FILE = {'file': b''}


def tar_of(files, folder='', mode='w:gz', **fields):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(folder + name)
            info.size = len(data)
            info.type = tarfile.DIRTYPE if name.endswith('/') else tarfile.REGTYPE
            for field, value in fields.items():
                setattr(info, field, value)
            archive.addfile(info, io.BytesIO(data))
    return content.getvalue()


def zip_of(files, folder='', mode=0):
    content = io.BytesIO()
    with zipfile.ZipFile(content, 'w', zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(folder + name)
            info.external_attr = mode << 16
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
    return content.getvalue()


ARCHIVES = [
    ('tiny.tar.gz', tar_of, {'folder': './'}),
    ('tiny.tgz', tar_of, {'folder': 'uncased_L-1/'}),
    ('tiny.tar.xz', tar_of, {'mode': 'w:xz'}),
    ('tiny.zip', zip_of, {'folder': 'uncased_L-1/'}),
]


@pytest.mark.parametrize('name, pack, options', ARCHIVES)
def test_archives(server, files, block, tmp_path, name, pack, options):
    """As a file here, and at an address, which is asked once."""
    content = pack(files, **options)
    (tmp_path / name).write_bytes(content)
    opened = open_model(str(tmp_path / name))
    assert same(opened.block, block) and opened.files.source == 'path'
    address = f'{server.url}models/{name}'
    server.resources[f'/models/{name}'] = Resource(content)
    for _ in range(2):
        opened = open_model(address)
        assert same(opened.block, block) and opened.files.source == 'address'
    assert len(server.paths()) == 1
    cache = tmp_path / 'mxnet' / 'models'
    assert len([each for each in (cache / 'unpacked').iterdir() if each.is_dir()]) == 1


def test_an_address_that_has_nothing(server):
    with pytest.raises(PretrainedNotFoundError):
        open_model(f'{server.url}none.tar.gz')
    with refuses(says=server.url):
        open_model(server.url)


REFUSED = [
    ('a.tar.gz', tar_of({'../file': b''})),
    ('a.tar.gz', tar_of({'a/../../file': b''})),
    ('a.tar.gz', tar_of(FILE, type=tarfile.SYMTYPE, linkname='/etc/passwd')),
    ('a.tar.gz', tar_of(FILE, type=tarfile.SYMTYPE, linkname='../a.tar.gz')),
    ('a.tar.gz', tar_of(FILE, type=tarfile.LNKTYPE, linkname='none')),
    ('a.tar.gz', tar_of(FILE, type=tarfile.FIFOTYPE)),
    ('a.zip', zip_of({'../file': b'/etc/passwd'})),
    ('a.zip', zip_of({'/tmp/file': b'/etc/passwd'})),
    ('a.tar.gz', b''),
    ('a.tar.gz', tar_of({'a': bytes(9999)})[:-30]),
    ('a.tar.gz', b'\x1f\x8b' + bytes(50)),
    ('a.zip', zip_of({'a': b'abc'})[:-5]),
]


@pytest.mark.parametrize(
    'name, content', REFUSED, ids=lambda value: '-' if isinstance(value, bytes) else None
)
def test_archives_that_are_refused(tmp_path, monkeypatch, name, content):
    monkeypatch.setenv('MXNET_HOME', str(tmp_path / 'home'))
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError):
        open_model(str(tmp_path / name))
    left = [name for _, _, names in os.walk(tmp_path) for name in names]
    assert [each for each in left if not each.endswith('.lock')] == [name]
    assert sorted(os.listdir(tmp_path)) == [name, 'home']
