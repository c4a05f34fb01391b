"""The registry of models, joined with GluonNLP's; weights from a repository on loopback."""

import gluonnlp
import pytest
from refusals import refuses

import model_zoo
from model_zoo import zoo
from model_zoo.errors import UnknownNameError


@pytest.fixture
def builders(monkeypatch):
    """A registry of its own, with the families' models in it."""
    model_zoo.list_models()
    monkeypatch.setattr(zoo, '_BUILDERS', dict(zoo._BUILDERS))


def test_registering(builders):
    @model_zoo.register_model
    def toy_1_2_3(**kwargs):
        return 'block', kwargs

    assert toy_1_2_3(a=1) == ('block', {'a': 1}), 'the decorator returns the function'
    assert model_zoo.get_model('toy_1_2_3', pretrained=False) == ('block', {'pretrained': False})
    assert model_zoo.get_model('TOY_1_2_3') == ('block', {})
    assert gluonnlp.model.get_model('toy_1_2_3') == ('block', {})
    assert model_zoo.list_models('toy*') == ['toy_1_2_3']
    assert model_zoo.register_model(toy_1_2_3) is toy_1_2_3  # a reloaded module does so

    def bert_12_768_12(**kwargs):
        pass

    with pytest.raises(ValueError):
        model_zoo.register_model(bert_12_768_12)


def test_listing(builders):
    @model_zoo.register_model
    def toy_1_2_3(**kwargs):
        pass

    names = model_zoo.list_models()
    assert names == sorted(names) and {'toy_1_2_3', 'bert_12_768_12'} <= set(names)
    assert 'toy_1_2_3' not in model_zoo.list_models(pretrained=True)
    assert 'bert_24_1024_16' in model_zoo.list_models('*_1024_*', pretrained=True)
    assert model_zoo.list_models(pretrained=False) == ['toy_1_2_3']
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
    with refuses(says='bert_12_768_12'):
        gluonnlp.model.get_model(name)


def test_errors_of_gluonnlps_models_are_theirs():
    with pytest.raises(Exception) as caught:
        model_zoo.get_model('awd_lstm_lm_1150', dataset_name='no_such_data_set')
    assert not isinstance(caught.value, UnknownNameError)
