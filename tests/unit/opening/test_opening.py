"""The only way in: names, folders and files to a block, its tokenizer and its files."""

import dataclasses
import json
import os

import mxnet as mx
import numpy as np
import pytest
import tiny
import variant_models
from json_files import change_json
from refusals import refuses
from tokenizers import Tokenizer as Library
from tokenizers.models import WordLevel
from variant_models import write_family

import bert
import model_zoo
from bert import BertConfig, BertForSequenceClassification, BertModel
from model_zoo import registry
from model_zoo.errors import CheckpointError, InputError, UnknownNameError
from model_zoo.opening import locate, open_model, open_tokenizer
from model_zoo.pretrained.files import BPE_NAMES, VOCAB_NAMES
from model_zoo.registry import Family
from model_zoo.tokenization import Tokenizer
from model_zoo.tokenization.bpe import read_bpe_vocab

WORDS = mx.nd.array([[2, 5, 6, 3]])


@pytest.fixture
def saved(tmp_path):
    words = ['a', 'cat']
    return tiny.save_bert(tmp_path / 'saved', words, BertForSequenceClassification, num_labels=3)


@pytest.fixture
def folder(saved, tmp_path):
    """What the block's save_pretrained fills."""
    return tmp_path / 'saved'


def find_family(name):
    """The family of a model; nothing large is fetched."""
    return locate(name, weights=None, vocab=False).family


def open_block(name, *args, **options):
    """A model without its tokenizer."""
    block, tokenizer, files = open_model(name, *args, tokenizer=False, **options)
    assert tokenizer is None
    return block, files


def test_a_folder_names_its_block(folder, saved):
    block, tokenizer, files = model_zoo.open_model(str(folder))
    assert type(block) is BertForSequenceClassification and block.num_labels == 3
    np.testing.assert_array_equal(block(WORDS).asnumpy(), saved(WORDS).asnumpy())
    assert tokenizer.tokenize('A cat') == ['a', 'cat'] and tokenizer.do_lower_case
    names = ('model.params', 'config.json', 'vocab.txt')
    assert [files.weights, files.config, files.vocab] == [str(folder / name) for name in names]
    assert files.source == 'path'
    assert block.own_tokenizer().tokenize('A cat') == ['a', 'cat']


@pytest.mark.parametrize(
    'name, kind',
    # the first with a pooler, which it doesn't use
    [('bert_squad_tensorflow', 'BertForQuestionAnswering'), ('bert_tensorflow', 'BertModel')],
)
def test_the_head_of_the_weights_names_the_block(fixtures, name, kind):
    block, _ = open_block(fixtures / 'checkpoints' / name)
    assert type(block).__name__ == kind


TASKS = [
    ('classification', 'BertForSequenceClassification'),
    ('question_answering', 'BertForQuestionAnswering'),
    *(('BertForMaskedLM', 'BertForMaskedLM'), (BertModel, 'BertModel')),
]


@pytest.mark.parametrize('task, kind', TASKS)
def test_tasks(folder, task, kind):
    block = open_model(folder, task, hidden_dropout_prob=0.25).block
    assert type(block).__name__ == kind
    assert block.config.hidden_dropout_prob == 0.25


@pytest.mark.parametrize(
    'field, value',
    [('architectures', 5), ('architectures', [['a']]), ('model_type', []), ('model_type', {})],
)
def test_fields_of_a_wrong_type(folder, field, value):
    path = folder / 'config.json'
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    for call in (model_zoo.open_model, lambda f: model_zoo.pipeline('question-answering', f)):
        with refuses(says=field, kind=(InputError, UnknownNameError)):
            call(str(folder))


@pytest.mark.parametrize('number', [2**31, 5_000_000])
def test_sizes_that_would_exhaust_the_memory(folder, number, tmp_path):
    """They are refused before anything is made of them."""
    change_json(folder / 'config.json', num_hidden_layers=number - 1)
    with pytest.raises(CheckpointError):
        open_model(folder)
    model = json.loads(Library(WordLevel({'[UNK]': 0, 'b': 1}, '[UNK]')).to_str())
    model['model']['vocab']['b'] = number  # the library itself would take gigabytes to write it
    (tmp_path / 'tokenizer.json').write_text(json.dumps(model))
    (tmp_path / 'vocab.json').write_text(json.dumps({'a': 0, 'b': number}))
    for read, file in ((Tokenizer, 'tokenizer.json'), (read_bpe_vocab, 'vocab.json')):
        with pytest.raises(InputError):
            read(str(tmp_path / file))


def test_what_is_located_is_passed_on(folder, saved):
    located = locate(folder, weights=None, vocab=False)
    assert located.family.name == 'bert' and located.model is None
    assert located.architectures == ['BertForSequenceClassification']
    assert located.fields['hidden_size'] == 16 and located.labels.given is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        located.family = None
    block = open_model(located, tokenizer=False).block
    np.testing.assert_array_equal(block(WORDS).asnumpy(), saved(WORDS).asnumpy())
    named = locate(NAME, weights=None, vocab=False)
    assert named.model == NAME and named.path is None
    with refuses(says='bert_6_384_12'):  # it has no weights yet, and isn't a new one
        open_model(named, tokenizer=False)
    for name in ('gpt2', 'bert'):
        assert locate(folder, expected_family=name, weights=None).family.name == name


def test_the_configuration_names_the_family(folder):
    assert find_family(folder).name == 'bert'
    change_json(folder / 'config.json', model_type=...)
    assert find_family(folder).name == 'bert'  # by its fields
    change_json(folder / 'config.json', model_type='t5')
    with pytest.raises(UnknownNameError):
        open_model(folder)
    os.rename(folder / 'config.json', folder / 'bert_config.json')
    assert find_family(folder).name == 'bert'  # as Google's release calls it


FORMATS = {
    'bert': ('native', 'huggingface', 'pytorch', 'tensorflow'),
    'gpt': ('native', 'huggingface', 'pytorch'),
    'gpt2': ('native', 'huggingface', 'pytorch', 'tensorflow'),
    'transfo_xl': ('native', 'huggingface', 'pytorch', 'tensorflow'),
    **dict.fromkeys(variant_models.MAKERS, ('native', 'huggingface', 'pytorch')),
}


FAMILIES = [
    # TensorFlow, which writes its format, is only where the peers are
    pytest.param(family, format, marks=pytest.mark.peers if format == 'tensorflow' else ())
    for family in FORMATS
    for format in FORMATS[family]
]


@pytest.mark.parametrize('family, format', FAMILIES)
def test_the_files_tell_the_family(tmp_path, family, format):
    """All families' folders, as the originals write them: without ``model_type``."""
    folder = tmp_path / 'model'
    write_family(family, folder, format)
    for has_vocab in (True, False):
        if not has_vocab:
            for name in (*VOCAB_NAMES, *BPE_NAMES.values(), 'tokenizer_config.json'):
                (folder / name).unlink(missing_ok=True)
            if family in ('roberta', 'xlmr') and format != 'native':
                with refuses(says='config.json'):  # the same weights
                    find_family(folder)
                continue
        assert find_family(folder).name == family
        block, _ = open_block(folder)
        assert block.config_class is registry.get_family(family).base.config_class


def test_a_family_that_stays_open(tmp_path):
    (tmp_path / 'config.json').write_text(json.dumps({'n_embd': 8, 'n_layer': 1, 'n_head': 2}))
    with refuses(says='config.json'):
        find_family(tmp_path)


def test_a_family_of_ones_own(monkeypatch, folder):
    """config.json of another family is opened as soon as the family is registered."""

    class OtherConfig(BertConfig):
        model_type = 'other'

    class OtherModel(BertModel):
        config_class = OtherConfig

    monkeypatch.setattr(registry, '_FAMILIES', dict(registry._FAMILIES))
    registry.register_family(Family('other', OtherModel, {}, (bert.BertTokenizer,)))
    block = tiny.initialized(OtherModel(OtherConfig(7, **tiny.BERT)))
    block.save_pretrained(str(folder))
    opened = open_model(folder)
    assert type(opened.block) is OtherModel and opened.tokenizer.tokenize('a') == ['a']
    with pytest.raises(ValueError):
        registry.register_family(Family('bert', OtherModel, {}, None, ()))


def test_vocabularies_and_tasks_that_do_not_fit(folder):
    with pytest.raises(UnknownNameError):
        open_model(folder, 'poetry')
    with pytest.raises(UnknownNameError):
        find_family('bert-colossal')
    with refuses(says='gpt2'):
        open_model('gpt2', BertModel, weights=False, vocab_file=folder / 'vocab.txt')
    tiny.write_words(folder, ['a', 'cat', 'dog'])
    with refuses(says=('8', '7')):
        open_model(folder)
    BertModel.from_pretrained(folder)  # which needs none
    (folder / 'vocab.txt').unlink()
    with refuses(says='tokenizer.json'):
        open_model(folder)
    block, files = open_block(folder)
    assert files.vocab is None and block.own_tokenizer() is None


def test_vocabulary_and_lowering_of_ones_own(folder, tmp_path):
    path = tiny.write_words(tmp_path, ['a', 'dog'])
    opened = open_model(folder, vocab_file=path, do_lower_case=False)
    assert opened.tokenizer.vocab.idx_to_token[-1] == 'dog'
    assert not opened.tokenizer.do_lower_case
    assert open_model(folder, tokenizer=opened.tokenizer).tokenizer is opened.tokenizer
    assert open_tokenizer(folder, vocab_file=path).vocab['dog'] == 6
    assert open_tokenizer(folder).vocab['cat'] == 6


def test_exact_weights(folder):
    with pytest.raises(CheckpointError):
        open_block(folder, 'question_answering', exact=True)
    block, _ = open_block(folder, 'BertModel', exact=True)
    assert block.has_pooler and not block.has_decoder


def test_a_configuration_elsewhere(folder, tmp_path):
    os.rename(folder / 'config.json', tmp_path / 'other.json')
    with refuses(says='config.json'):
        open_model(folder)
    assert open_model(folder, config=tmp_path / 'other.json', family='bert').block.num_labels == 3
    assert open_model(folder, BertModel, config=tmp_path / 'other.json').block.has_pooler


@pytest.mark.weights
def test_a_name(minilm_dir):
    block, tokenizer, files = open_model('all-MiniLM-L6-v2')
    assert type(block) is BertModel and block.has_pooler and not block.has_decoder
    assert len(tokenizer.vocab) == 30522
    assert (files.source, os.path.dirname(files.weights)) == ('Python package', str(minilm_dir))


def test_labels_that_the_caller_names(folder, tmp_path):
    names = {0: 'bad', '1': 'so so', 2: 'good'}
    block = BertForSequenceClassification.from_pretrained(folder, id2label=names)
    assert block.num_labels == 3
    block.save_pretrained(str(tmp_path / 'named'))
    fields = json.loads((tmp_path / 'named' / 'config.json').read_text())
    assert fields['id2label'] == {'0': 'bad', '1': 'so so', '2': 'good'}
    assert fields['label2id'] == {'bad': 0, 'so so': 1, 'good': 2}
    again, _, _ = open_model(folder, 'classification', id2label={0: 'a', 1: 'b', 2: 'c'})
    assert again.config.extras['id2label'] == {'0': 'a', '1': 'b', '2': 'c'}
    for wrong in ({1: 'a'}, {}, ['a'], {'a': 0}):
        with refuses(says='id2label'):
            open_model(folder, 'classification', id2label=wrong)
    with refuses(says='id2label'):
        open_model(folder, 'classification', id2label={0: 'a', 1: 'b'}, num_labels=3)


def test_a_block_tells_its_size_in_a_line(saved):
    name = 'BertForSequenceClassification'
    assert repr(saved) == f'{name}(2 layers, 16 units, 2 heads, 7 tokens, float32)'


NAME = 'bert_6_384_12'


def new_model(*args, **kwargs):
    return tiny.initialized(model_zoo.get_model(*args, pretrained=False, **kwargs)[0], seed=2)


NEW = [
    lambda root: new_model(NAME, root=root),
    lambda root: new_model(NAME, 'all_minilm_l6_v2', root=root),
    lambda root: new_model(NAME, root=root, units=24, hparam_allow_override=True),
    lambda root: open_model('all-MiniLM-L6-v2', root=root, weights=False).block,
    lambda root: open_model(NAME, 'classification', root=root, weights=False).block.base,
    lambda root: open_block('all-MiniLM-L6-v2', root=root, weights=False)[0],
    lambda root: open_model(f'{root}/{NAME}_all_minilm_l6_v2', weights=False).block.base,
    lambda root: open_block(f'{root}/{NAME}_all_minilm_l6_v2', weights=False)[0].base,
]


@pytest.mark.parametrize('open_new', NEW)
def test_a_new_model_has_none_of_the_pretrained_weights_that_are_here(tmp_path, open_new):
    saved = tiny.save_bert(tmp_path / f'{NAME}_all_minilm_l6_v2', ['a', 'cat'], BertModel)
    pretrained = saved.word_embed.weight.data().asnumpy()
    found = open_block('all-MiniLM-L6-v2', root=tmp_path)[0].word_embed.weight.data()
    np.testing.assert_array_equal(found.asnumpy(), pretrained)
    weight = open_new(tmp_path).word_embed.weight.data().asnumpy()
    assert weight.shape[0] == 7 and not np.isin(weight, pretrained).any()
