"""The originals' order of inputs and defaults: the same as ours, called otherwise.

What the original computes is compared in tests/peers/test_readme_snippets.py.
"""

import logging

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import assert_same as same
from arrays import flatten

import bert
import gpt
import gpt2
import mxnet_pretrained_bert as package
import transfo_xl
from model_zoo.errors import PretrainedNotFoundError
from model_zoo.pretrained import find, get_entry, resolve
from mxnet_pretrained_bert import optimization

BERT = tiny.bert_config(41, num_hidden_layers=3, num_attention_heads=4, initializer_range=0.3)
GPT2 = tiny.decoder_config(gpt2.GPT2Config, 41)
XL = tiny.transfo_xl_config(41, cutoffs=[10, 20], mem_len=9, clamp_len=8)
FAMILIES = {
    'Bert': (bert, BERT),
    'OpenAIGPT': (gpt, tiny.decoder_config(gpt.OpenAIGPTConfig, 41)),
    'GPT2': (gpt2, GPT2),
    'TransfoXL': (transfo_xl, XL),
}
CLASSES = [
    name
    for name in package.__all__
    if name.endswith('Model') or '.modeling' in getattr(getattr(package, name), '__module__', '')
]
CLASSES = [name for name in CLASSES if not name.endswith('Config') and name[0].isupper()]


def make(name):
    """The block here, and the family's with the same parameters."""
    family, config = next(value for key, value in FAMILIES.items() if name.startswith(key))
    here = getattr(package, name)(config)
    here.initialize(mx.init.Normal(0.3))
    own = getattr(family, name)(config)
    own.initialize()
    values = here.parameters_by_name()
    for name, parameter in own.parameters_by_name().items():
        parameter.set_data(values.pop(name).data())
    assert {name.partition('.')[0] for name in values} <= {'pooler'}
    return here, own


def ids(*shape, high=41):
    return mx.nd.array(np.random.randint(0, high, shape), dtype='int32')


def test_names():
    """Those of the original's ``__init__``."""
    assert len(CLASSES) == 8 + 3 + 3 + 2
    assert all(hasattr(package, name) for name in package.__all__)
    assert (package.WEIGHTS_NAME, package.CONFIG_NAME) == ('pytorch_model.bin', 'config.json')
    assert package.cached_path(__file__) == __file__
    assert optimization.SCHEDULES[None] is optimization.ConstantLR


def test_bert_model():
    here, own = make('BertModel')
    words, types, mask = ids(2, 7), ids(2, 7, high=2), mx.nd.array([[0, 1, 1, 1, 0, 1, 1]] * 2)
    layers, pooled = here(words, types, mask)
    assert len(layers) == 3
    same([layers[-1], pooled], own(words, types, mask))
    same(here(words, types, mask, False), own(words, types, mask))
    same(here(words, output_all_encoded_layers=False), own(words))
    same(here(words=words, valid_length=mask)[1], pooled * 0 + own(words, None, mask)[1])


@pytest.mark.parametrize('name', [name for name in CLASSES if name.startswith('BertFor')])
def test_heads_of_bert(name):
    """Labels follow the mask, in their order."""
    here, own = make(name)
    rows = (2, 2) if 'Choice' in name else (2,)
    words, types, mask = ids(*rows, 7), ids(*rows, 7, high=2), mx.nd.ones((*rows, 7))
    labels = {'masked_lm_labels': ids(2, 7), 'next_sentence_label': ids(2, high=2)}
    labels.update({f'{side}_positions': ids(2, high=7) for side in ('start', 'end')})
    labels['labels'] = ids(2, 7, high=2) if 'Token' in name else ids(2, high=2)
    names = [each for each in here.order if each in labels]
    same(here(words, types, mask), own(words, types, mask))
    loss = here(words, types, mask, *[labels[each] for each in names])
    assert loss.shape == (1,)
    same(loss, own(words, types, mask, **{each: labels[each] for each in names}))


@pytest.mark.parametrize('name', ['BertForPreTraining', 'BertForQuestionAnswering'])
def test_one_label_of_two(name, caplog):
    """As in the original, there is no loss; here a warning tells of it."""
    here, own = make(name)
    words, label = ids(2, 7), {'BertForPreTraining': ids(2, 7)}.get(name, ids(2, high=7))
    with caplog.at_level(logging.WARNING):
        outputs = here(words, None, None, label)
    assert len(caplog.messages) == 1 and 'is ignored: scores are returned' in caplog.text
    same(outputs, own(words))


@pytest.mark.parametrize('family', ['OpenAIGPT', 'GPT2'])
def test_decoders(family):
    words, places = ids(2, 7), mx.nd.array([[3, 2, 1, 0, 4, 5, 6]] * 2)
    here, own = make(f'{family}Model')
    states = here(words, places, words)
    if family == 'GPT2':
        states, presents = states
        same(presents, own(words, words, position_ids=places)[1])
    assert len(states) == 3  # the embedding's, and each layer's
    same(states[-1], flatten(own(words, words, position_ids=places))[0])
    here, own = make(f'{family}LMHeadModel')
    same(here(words, places, words, words), own(words, words, None, places, words))
    valid = mx.nd.array([7, 3])
    same(here(words, valid_length=valid), own(words, None, valid))
    here, own = make(f'{family}DoubleHeadsModel')
    words, places = ids(2, 3, 7), ids(2, 3, 7, high=24)
    last, right = ids(2, 3, high=7), ids(2, high=3)
    same(
        here(words, last, words, right, words, places),
        own(words, last, words, None, places, words, right),
    )


def test_transformer_xl():
    here, own = make('TransfoXLModel')
    words = ids(2, 7)
    hidden, mems = here(words)
    wanted, own_mems = own(words)
    assert len(mems) == 2
    same([hidden, mems], [wanted, own_mems[:-1]])
    same(here(words, mems), [own(words, own_mems)[0], own(words, own_mems)[1][:-1]])
    same(here(words, own_mems), own(words, own_mems))  # with the numbers of valid places
    lower = [mem[-7:].swapaxes(0, 1) for mem in mems]
    same(lower[0], here.word_embed(words))
    here, own = make('TransfoXLLMHeadModel')
    losses, mems = here(words, words)
    same(losses, own(words, labels=words)[0])
    same(here(words, words, mems)[0], own(words, own(words)[1], None, words)[0])
    same(here(words)[0], own(words)[0])


@pytest.mark.parametrize('name', CLASSES)
def test_a_new_model_runs_at_once(name):
    """And gets new values where it is initialized once more before its use."""
    _, config = next(FAMILIES[key] for key in FAMILIES if name.startswith(key))
    block = getattr(package, name)(config)
    rows = (1, 2) if 'Choice' in name or 'Double' in name else (2,)
    inputs = [ids(*rows, 7), ids(*rows, high=7)] if 'Double' in name else [ids(*rows, 7)]
    first = flatten(block(*inputs))[-1].asnumpy()
    assert np.isfinite(first).all()
    again = getattr(package, name)(config)
    parameter = next(each for each in again.parameters() if each.data().asnumpy().std() > 0)
    before = parameter.data().asnumpy()
    again.initialize()
    assert (parameter.data().asnumpy() != before).any()
    block.initialize()  # used: nothing changes
    np.testing.assert_array_equal(flatten(block(*inputs))[-1].asnumpy(), first)


def test_attentions_come_first():
    words, label = ids(2, 7), ids(2, high=2)
    attentions, layers, pooled = package.BertModel(BERT, True)(words)
    assert attentions[0].shape == (2, 4, 7, 7) and len(layers) == 3 and pooled.shape == (2, 16)
    head = package.BertForSequenceClassification(BERT, 2, True)
    attentions, scores = head(words)
    assert len(attentions) == 3 and scores.shape == (2, 2)
    assert head(words, None, None, label).shape == (1,)  # the loss alone
    attentions, start, end = package.BertForQuestionAnswering(BERT, True)(words)
    assert len(attentions) == 3 and start.shape == end.shape == (2, 7)
    attentions, states, presents = package.GPT2Model(GPT2, True)(words)
    assert (len(attentions), len(states), len(presents)) == (2, 3, 2)
    attentions, scores, presents = package.GPT2LMHeadModel(GPT2, True)(words)
    assert len(attentions) == 2 and scores.shape == (2, 7, 41) and len(presents) == 2
    choices = ids(2, 3, 7), ids(2, 3, high=7)
    losses = package.GPT2DoubleHeadsModel(GPT2, True)(*choices, choices[0], ids(2, high=3))
    assert [loss.shape for loss in losses] == [(1,), (1,)]


def test_opening_as_there(tmp_path, monkeypatch):
    package.BertModel(BERT).save_pretrained(str(tmp_path / 'bert'), format='pytorch')
    head = package.BertForSequenceClassification.from_pretrained(tmp_path / 'bert', 3)
    assert head.num_labels == 3
    monkeypatch.setenv('PYTORCH_PRETRAINED_BERT_CACHE', str(tmp_path / 'cache'))
    assert package.file_utils.cache_root() == str(tmp_path / 'cache')
    with pytest.raises(TypeError):
        package.BertForSequenceClassification(BERT, 2, False, False, 1)
    assert package.BertForMultipleChoice(BERT, 3).num_choices == 3
    assert XL.n_token == 41
    assert issubclass(optimization.WarmupLinearSchedule, optimization._LRSchedule)
    name = 'bert-base-uncased'
    assert name in package.modeling.PRETRAINED_MODEL_ARCHIVE_MAP
    assert name in package.tokenization.PRETRAINED_VOCAB_ARCHIVE_MAP


@pytest.mark.parametrize('name', ['bert-base-uncased', 'transfo-xl-wt103'])
def test_tokenizers_look_in_the_originals_cache(name, tmp_path, monkeypatch):
    monkeypatch.setenv('MXNET_HOME', str(tmp_path / 'home'))
    monkeypatch.setattr(find, 'HERE', {'cache': find.HERE['cache']})
    monkeypatch.setattr(find, 'ELSEWHERE', {})
    folder = tmp_path / 'cache' / get_entry(*resolve(name)).full_name
    folder.mkdir(parents=True)
    tokenizer_class = package.BertTokenizer
    if name.startswith('bert'):
        tiny.write_words(folder, 'a')
    else:
        tokenizer_class = package.TransfoXLTokenizer
        tokenizer = tokenizer_class()
        tokenizer.count_sents([['a', 'b']])
        tokenizer.build_vocab()
        tokenizer.save_vocabulary(str(folder))
    with pytest.raises(PretrainedNotFoundError):
        tokenizer_class.from_pretrained(name)
    monkeypatch.setenv('PYTORCH_PRETRAINED_BERT_CACHE', str(tmp_path / 'cache'))
    assert isinstance(tokenizer_class.from_pretrained(name), tokenizer_class)
    monkeypatch.delenv('PYTORCH_PRETRAINED_BERT_CACHE')
    assert len(tokenizer_class.from_pretrained(name, str(tmp_path / 'cache'))) > 1
    assert isinstance(tokenizer_class.from_pretrained(folder), tokenizer_class)


def test_tensorflows_weights(fixtures):
    folder = fixtures / 'checkpoints' / 'bert_tensorflow'
    config = bert.BertConfig.from_json_file(folder / 'bert_config.json')
    model = package.BertModel(config)
    loaded = package.load_tf_weights_in_bert(model, str(folder / 'bert_model.ckpt'))
    same(
        loaded(ids(2, 7) * 0, output_all_encoded_layers=False),
        bert.BertModel.from_pretrained(folder)(ids(2, 7) * 0),
    )
    folder = fixtures / 'checkpoints' / 'gpt_numpy'
    model = package.OpenAIGPTLMHeadModel(gpt.OpenAIGPTConfig.from_json_file(folder / 'config.json'))
    package.load_tf_weights_in_openai_gpt(model, str(folder))
    words = ids(1, 5, high=4)
    same(model(words), gpt.OpenAIGPTLMHeadModel.from_pretrained(folder, from_tf=True)(words))
