"""The registry of models, joined with GluonNLP's; weights from a repository on loopback."""

import hashlib

import gluonnlp
import mxnet as mx
import numpy as np
import pytest
from gluonnlp.vocab import BERTVocab
from loopback import LoopbackServer, Resource, zip_of
from mxnet.gluon.model_zoo import model_store

import bert
import model_zoo
from model_zoo import zoo
from model_zoo.errors import CheckpointError, InputError, UnknownNameError


@pytest.fixture
def builders(monkeypatch):
    """A registry of its own, with the families' models in it."""
    model_zoo.list_models()
    monkeypatch.setattr(zoo, '_BUILDERS', dict(zoo._BUILDERS))


def test_registering(builders):
    @model_zoo.register_model
    def tiny_1_2_3(**kwargs):
        return 'block', kwargs

    assert tiny_1_2_3(a=1) == ('block', {'a': 1}), 'the decorator returns the function'
    assert model_zoo.get_model('tiny_1_2_3', pretrained=False) == ('block', {'pretrained': False})
    assert model_zoo.get_model('TINY_1_2_3') == ('block', {})
    assert gluonnlp.model.get_model('tiny_1_2_3') == ('block', {})
    assert model_zoo.list_models('tiny*') == ['tiny_1_2_3']
    assert model_zoo.register_model(tiny_1_2_3) is tiny_1_2_3  # a reloaded module does so

    def bert_12_768_12(**kwargs):
        pass

    with pytest.raises(ValueError):
        model_zoo.register_model(bert_12_768_12)


def test_listing(builders):
    @model_zoo.register_model
    def tiny_1_2_3(**kwargs):
        pass

    names = model_zoo.list_models()
    assert names == sorted(names) and {'tiny_1_2_3', 'bert_12_768_12'} <= set(names)
    assert 'tiny_1_2_3' not in model_zoo.list_models(pretrained=True)
    assert 'bert_24_1024_16' in model_zoo.list_models('*_1024_*', pretrained=True)
    assert model_zoo.list_models(pretrained=False) == ['tiny_1_2_3']
    assert model_zoo.list_models('none*') == []


def test_gluonnlps_own_models():
    vocab = gluonnlp.Vocab(gluonnlp.data.count_tokens('a b c'))
    for name in ('standard_lstm_lm_200', 'awd_lstm_lm_600'):
        block, _ = model_zoo.get_model(name, vocab=vocab, dataset_name=None, pretrained=False)
        assert type(block).__module__.startswith('gluonnlp')


def test_unknown_names_list_both():
    with pytest.raises(UnknownNameError) as caught:
        gluonnlp.model.get_model('bert_1_2_3')
    message = str(caught.value)
    for name in ('bert_12_768_12', 'bert_6_384_12', 'awd_lstm_lm_1150', 'roberta_12_768_12'):
        assert name in message
    assert "unknown model 'bert_1_2_3'" in message


@pytest.mark.parametrize('name', [None, 12, b'bert_12_768_12', ['bert_12_768_12']])
def test_name_that_is_no_string(name):
    with pytest.raises(InputError):
        gluonnlp.model.get_model(name)


def test_errors_of_gluonnlps_models_are_theirs():
    with pytest.raises(Exception) as caught:
        model_zoo.get_model('awd_lstm_lm_1150', dataset_name='no_such_data_set')
    assert not isinstance(caught.value, UnknownNameError)


# -- a repository -------------------------------------------------------------------------------

SIZES = {
    'num_layers': 2,
    'units': 16,
    'hidden_size': 512,
    'num_heads': 4,
    'max_length': 20,
    'hparam_allow_override': True,
}


@pytest.fixture
def repository(no_network, monkeypatch, tmp_path):
    """GluonNLP's own files of a small BERT under the names of a large one."""
    vocab = BERTVocab(gluonnlp.data.count_tokens(['the', 'cat', 'sat']))
    encoder = gluonnlp.model.BERTEncoder(
        num_layers=2, units=16, hidden_size=512, max_length=20, num_heads=4
    )
    theirs = gluonnlp.model.BERTModel(
        encoder, vocab_size=len(vocab), token_type_vocab_size=2, units=16, embed_size=16
    )
    theirs.initialize(mx.init.Normal(0.5))
    theirs(mx.nd.ones((1, 2)), mx.nd.ones((1, 2)), mx.nd.ones((1,)), mx.nd.ones((1, 1)))
    path = tmp_path / 'theirs.params'
    theirs.save_parameters(str(path))

    name = 'book_corpus_wiki_en_uncased'
    weights, words = path.read_bytes(), vocab.to_json().encode()
    digests = [hashlib.sha1(content).hexdigest() for content in (weights, words)]
    monkeypatch.setitem(model_store._model_sha1, f'bert_12_768_12_{name}', digests[0])
    monkeypatch.setitem(gluonnlp.data.utils._vocab_sha1, name, [digests[1], '.vocab', {}])
    with LoopbackServer() as server:
        for folder, stem, extension, content in [
            ('models', f'bert_12_768_12_{name}-{digests[0][:8]}', '.params', weights),
            ('dataset/vocab', f'{name}-{digests[1][:8]}', '.vocab', words),
        ]:
            archive = zip_of(**{stem + extension: content})
            server.resources[f'/gluon/{folder}/{stem}.zip'] = Resource(archive)
        monkeypatch.setenv('MXNET_GLUON_REPO', server.url)
        server.theirs, server.vocab = theirs, vocab
        yield server


def test_pretrained_from_the_repository(repository, tmp_path):
    """Downloaded once; ours and GluonNLP's own reader give the same."""
    inputs = mx.nd.array([[2, 5, 6, 3]]), mx.nd.zeros((1, 4)), mx.nd.array([3])
    positions = mx.nd.array([[1, 2]])
    expected = repository.theirs(*inputs, positions)
    for _ in range(2):
        block, vocab = gluonnlp.model.get_model('bert_12_768_12', **SIZES)
        assert isinstance(block, bert.BertModel)
        assert vocab.idx_to_token == repository.vocab.idx_to_token
        for one, two in zip(block(*inputs, positions), expected):
            np.testing.assert_allclose(one.asnumpy(), two.asnumpy(), atol=1e-5)
    assert len(repository.requests) == 2
    theirs, _ = gluonnlp.model.bert.bert_12_768_12(
        dataset_name='book_corpus_wiki_en_uncased',
        root=str(tmp_path / 'home' / 'models'),
        embed_size=16,
        **SIZES,
    )
    for one, two in zip(theirs(*inputs, positions), expected):
        np.testing.assert_allclose(one.asnumpy(), two.asnumpy(), atol=1e-5)
    assert len(repository.requests) == 2


def test_repositorys_weights_of_another_size(repository):
    with pytest.raises(CheckpointError):
        model_zoo.get_model('bert_12_768_12', **{**SIZES, 'units': 32})
