"""BERT in the zoo: names, overrides, weights by path, cache and package, and their vocabularies."""

import functools
import json
import logging

import mxnet as mx
import pytest
import safetensors.numpy
import tiny
from arrays import assert_equal, assert_same
from gluonnlp.vocab import BERTVocab

import bert
import model_zoo
from model_zoo.errors import CheckpointError, InputError, PretrainedNotFoundError, UnknownNameError
from model_zoo.tokenization.vocab import load_vocab

pytestmark = pytest.mark.usefixtures('no_network')

WORDS = ['the', 'cat', 'sat', '##s', '.']
TOKENS = [*tiny.SPECIAL, *WORDS]
SMALL = {
    'num_layers': 2,
    'units': 16,
    'hidden_size': 32,
    'num_heads': 4,
    'max_length': 20,
    'hparam_allow_override': True,
}
CONFIG = dict(tiny.BERT, vocab_size=len(TOKENS), num_attention_heads=4, max_position_embeddings=20)
get_base = functools.partial(model_zoo.get_model, 'bert_12_768_12')
ALL_PARTS = {'use_decoder': True, 'use_classifier': True}


@pytest.fixture
def vocab():
    return load_vocab(TOKENS)


@pytest.fixture
def inputs():
    return mx.nd.array([[2, 5, 6, 3], [2, 7, 3, 0]]), None, mx.nd.array([4, 3])


def make(name='BertModel', **options):
    return tiny.initialized(getattr(bert, name)(bert.BertConfig(**CONFIG), **options))


def save(block, folder):
    """The block's files as its save_pretrained and a tokenizer's write them."""
    block.save_pretrained(str(folder))
    tiny.write_words(folder, WORDS)
    return str(folder)


def cached(root, block):
    save(block, root / 'bert_12_768_12_book_corpus_wiki_en_uncased')


# -- names and overrides ------------------------------------------------------------------------


def test_names():
    names = ['bert_12_768_12', 'bert_24_1024_16', 'bert_6_384_12']
    assert model_zoo.list_models('bert_*') == names


@pytest.mark.parametrize(
    'name, layers, units, heads, hidden',
    [
        ('bert_12_768_12', 12, 768, 12, 3072),
        ('bert_24_1024_16', 24, 1024, 16, 4096),
        ('bert_6_384_12', 6, 384, 12, 1536),
    ],
)
def test_architectures(name, layers, units, heads, hidden, vocab):
    block, same = model_zoo.get_model(name, vocab=vocab, pretrained=False)
    assert same is vocab
    config = block.config
    assert (config.num_hidden_layers, config.hidden_size) == (layers, units)
    assert (config.num_attention_heads, config.intermediate_size) == (heads, hidden)
    assert (config.vocab_size, config.max_position_embeddings) == (len(TOKENS), 512)
    assert block.has_pooler and block.has_decoder and block.has_classifier
    assert len(block.encoder.layers) == layers
    with pytest.raises(RuntimeError):  # not initialized, as GluonNLP's
        block.pooler.weight.data()


def test_case_of_the_name_does_not_matter(vocab):
    block, _ = model_zoo.get_model('BERT_12_768_12', vocab=vocab, pretrained=False, **SMALL)
    assert isinstance(block, bert.BertModel)


def test_overrides(vocab, inputs):
    block, _ = get_base(
        vocab=vocab, pretrained=False, **SMALL, activation='relu', token_type_vocab_size=3,
        layer_norm_eps=1e-5, dropout=0.25, embed_size=16,
    )  # fmt: skip
    config = block.config
    assert config.num_hidden_layers == 2 and config.hidden_size == 16
    assert config.intermediate_size == 32 and config.num_attention_heads == 4
    assert config.max_position_embeddings == 20 and config.hidden_act == 'relu'
    assert config.type_vocab_size == 3 and config.layer_norm_eps == 1e-5
    assert config.hidden_dropout_prob == config.attention_probs_dropout_prob == 0.25
    block.initialize()
    assert [output.shape for output in block(*inputs)] == [(2, 4, 16), (2, 16), (2, 2), (2, 4, 10)]


def test_overrides_that_are_refused(vocab):
    get = functools.partial(get_base, vocab=vocab, pretrained=False)
    with pytest.raises(InputError, match='num_layers=2 would change the arch.*hparam_allow_overr'):
        get(num_layers=2)
    with pytest.raises(InputError, match="bert_12_768_12 has no option 'num_layer'; known: num_l"):
        get(num_layer=2, hparam_allow_override=True)
    with pytest.raises(InputError, match='embed_size must equal units'):
        get(**{**SMALL, 'embed_size': 8})
    with pytest.raises(InputError, match='not a multiple of'):
        get(**{**SMALL, 'num_heads': 5})
    assert get(dropout=0)[0].config.hidden_dropout_prob == 0
    get(ignore_extra=True)


def test_flags_and_outputs(vocab, inputs):
    block, _ = model_zoo.get_model(
        'bert_6_384_12', vocab=vocab, pretrained=False, use_pooler=False, use_decoder=False,
        output_attention=True, output_all_encodings=True, keep_multihead_output=True, **SMALL,
    )  # fmt: skip
    block.initialize()
    layers, attentions = block(*inputs)
    assert len(layers) == len(attentions) == len(block.get_multihead_outputs()) == 2


def test_unknown_names():
    with pytest.raises(UnknownNameError, match=r"unknown model 'bert_13'; known: .*bert_12_768_12"):
        model_zoo.get_model('bert_13')
    with pytest.raises(UnknownNameError, match="data set of bert_12_768_12 'books'.*known: .*scib"):
        get_base(dataset_name='books')
    with pytest.raises(UnknownNameError, match="pretrained model 'bert-huge'.*bert-base-uncased"):
        bert.BertModel.from_pretrained('bert-huge')


def test_nothing_found():
    with pytest.raises(PretrainedNotFoundError) as caught:
        get_base()
    message = str(caught.value)
    assert 'bert_12_768_12, book_corpus_wiki_en_uncased' in message
    for word in ('cache', 'Python package', "GluonNLP's repository", 'MXNET_GLUON_REPO'):
        assert word in message
    with pytest.raises(PretrainedNotFoundError, match='vocabulary'):
        get_base(pretrained=False)


def test_vocab_without_data_set_of_pretrained_weights(vocab):
    with pytest.raises(InputError, match='belong together'):
        get_base(vocab=vocab)


# -- weights ------------------------------------------------------------------------------------


def test_cache(tmp_path, inputs):
    saved = make(**ALL_PARTS)
    cached(tmp_path / 'home' / 'models', saved)
    block, vocab = get_base()
    assert vocab.idx_to_token == TOKENS
    assert_same(block(*inputs), saved(*inputs), 1e-6)
    for name in ('bert_12_768_12', 'bert-base-uncased', 'google-bert/bert-base-uncased'):
        sequence, pooled = bert.BertModel.from_pretrained(name)(*inputs)
        assert_same([sequence, pooled], saved(*inputs)[:2], 1e-6)
    block, _ = get_base(use_decoder=False, use_classifier=False)
    assert_same(block(*inputs), saved(*inputs)[:2], 1e-6)
    block, _ = get_base(use_decoder=False, use_pooler=False)
    assert_same(block(*inputs), saved(*inputs)[0], 1e-6)


def test_root(tmp_path, inputs):
    saved = make(**ALL_PARTS)
    cached(tmp_path / 'mine', saved)
    block, _ = get_base(root=str(tmp_path / 'mine'))
    assert_same(block(*inputs), saved(*inputs), 1e-6)
    with pytest.raises(PretrainedNotFoundError):
        get_base()


def test_contexts(tmp_path, inputs):
    saved = make(**ALL_PARTS)
    cached(tmp_path / 'home' / 'models', saved)
    contexts = [mx.cpu(0), mx.cpu(1)]
    block, _ = get_base(ctx=contexts)
    assert all(p.list_ctx() == contexts for p in block.collect_params().values())
    block.hybridize()
    for context in contexts:
        words, valid = (x.as_in_context(context) for x in (inputs[0], inputs[2]))
        assert_same(block(words, None, valid), saved(*inputs), 1e-6)


@pytest.mark.parametrize('as_file', [False, True])
def test_path(tmp_path, inputs, as_file, vocab):
    saved = make(**ALL_PARTS)
    folder = save(saved, tmp_path)
    path = str(tmp_path / 'model.params') if as_file else folder
    block, found = get_base(pretrained=path)
    assert_same(block(*inputs), saved(*inputs), 1e-6)
    assert found.idx_to_token == TOKENS
    block, same = get_base(pretrained=path, vocab=vocab)
    assert same is vocab


def test_path_of_gluonnlps_file(tmp_path, inputs, vocab):
    """A lone .params file: the architecture comes from the name and the overrides."""
    saved = make(**ALL_PARTS)
    path = str(tmp_path / 'lone.params')
    saved.save_parameters(path, format='gluonnlp')
    block, _ = get_base(pretrained=path, vocab=vocab, **SMALL)
    assert_same(block(*inputs), saved(*inputs), 1e-6)


@pytest.mark.parametrize('form', ['native', 'gluonnlp'])
def test_path_of_weights_that_lack_parts(tmp_path, inputs, form):
    saved = make()
    folder = save(saved, tmp_path)
    saved.save_parameters(str(tmp_path / 'model.params'), format=form)
    block, _ = get_base(pretrained=folder)
    assert not block.has_decoder and not block.has_classifier
    assert_same(block(*inputs), saved(*inputs), 1e-6)
    with pytest.raises(CheckpointError, match='lacks parameters: decoder'):
        get_base(pretrained=folder, use_decoder=True)
    block, _ = get_base(pretrained=folder, use_decoder=True, pretrained_allow_missing=True)
    assert block(*inputs)[2].shape == (2, 4, 10)
    with pytest.raises(CheckpointError, match='lacks parameters: pooler'):
        make(use_pooler=False).save_parameters(str(tmp_path / 'model.params'), format=form)
        get_base(pretrained=folder)


def test_vocabulary_that_does_not_fit(tmp_path):
    folder = save(make(), tmp_path)
    longer = load_vocab([*TOKENS, 'one', 'more'])
    with pytest.raises(InputError, match='the vocabulary does not fit: it has 12 tokens, .* 10'):
        get_base(pretrained=folder, vocab=longer)
    path = str(tmp_path / 'lone.params')
    make().save_parameters(path, format='gluonnlp')
    (tmp_path / 'config.json').unlink()
    options = {**SMALL, 'use_decoder': False, 'use_classifier': False}
    for tokens in (TOKENS[:-1], [*TOKENS, 'more']):
        with pytest.raises(CheckpointError, match='the vocabulary does not fit'):
            get_base(pretrained=path, vocab=load_vocab(tokens), **options)


def test_wrong_architecture(tmp_path, vocab):
    path = str(tmp_path / 'lone.params')
    make(**ALL_PARTS).save_parameters(path)
    with pytest.raises(CheckpointError, match='lacks parameters: encoder.layers.2'):
        get_base(pretrained=path, vocab=vocab, **{**SMALL, 'num_layers': 3})
    with pytest.raises(CheckpointError, match='wrong shape: .*the model wants'):
        get_base(pretrained=path, vocab=vocab)


def test_weights_with_more_layers_are_not_cut_silently(tmp_path, vocab, caplog):
    path = str(tmp_path / 'lone.params')
    make(**ALL_PARTS).save_parameters(path)
    one_layer = {**SMALL, 'num_layers': 1}
    with caplog.at_level(logging.WARNING):
        get_base(pretrained=path, vocab=vocab, **one_layer)
    assert 'lone.params holds more than is used: encoder.layers.1.' in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):  # but parts that weren't asked for are passed over
        get_base(pretrained=path, vocab=vocab, **SMALL, use_pooler=False, use_decoder=False)
    assert caplog.text == ''


# -- from_pretrained and save_pretrained ---------------------------------------------------------


@pytest.mark.parametrize('name', [name for name in bert.__all__ if name.startswith('BertFor')])
def test_save_and_load(tmp_path, name, caplog):
    block = make(name)
    block.config.extras['origin'] = 'a test'
    with caplog.at_level(logging.WARNING):
        block.save_pretrained(str(tmp_path / 'new' / 'folder'))
        loaded = getattr(bert, name).from_pretrained(str(tmp_path / 'new' / 'folder'))
    assert caplog.records == []
    assert loaded.config == block.config
    assert loaded.config.extras == {'origin': 'a test', 'architectures': [name]}
    assert_equal(loaded._own_tensors(), block._own_tensors())


def test_head_on_weights_without_one(tmp_path, inputs, caplog):
    saved = make()
    folder = save(saved, tmp_path)
    with caplog.at_level(logging.WARNING):
        head = bert.BertForSequenceClassification.from_pretrained(folder, num_labels=5, dropout=0)
    assert 'classifier.weight, classifier.bias: initialized at random' in caplog.text
    assert head(*inputs).shape == (2, 5) and head.config.num_labels == 5
    assert_same(head.bert(*inputs), saved(*inputs), 1e-6)
    weight = head.classifier.weight.data().asnumpy()
    assert 0.005 < weight.std() < 0.05 and not head.classifier.bias.data().asnumpy().any()


def test_fields_of_the_configuration(tmp_path):
    folder = save(make(), tmp_path)
    model = bert.BertModel.from_pretrained(folder, hidden_dropout_prob=0.5, use_pooler=False)
    assert model.config.hidden_dropout_prob == 0.5 and not model.has_pooler


def test_another_head_than_the_saved_one(tmp_path):
    folder = save(make('BertForSequenceClassification', num_labels=3), tmp_path)
    bert.BertForQuestionAnswering.from_pretrained(folder)
    with pytest.raises(CheckpointError, match=r'classifier.weight has shape \(3, 16\), the model'):
        bert.BertForSequenceClassification.from_pretrained(folder, num_labels=4)


def test_hugging_face_folder(tmp_path, inputs):
    """config.json and model.safetensors as transformers writes them."""
    saved = make('BertForTokenClassification', num_labels=4)
    tensors = saved.mappings()['huggingface'].save(saved._own_tensors(), saved.config, True)
    safetensors.numpy.save_file(tensors, str(tmp_path / 'model.safetensors'), {'format': 'pt'})
    config = {**CONFIG, 'num_labels': 4, 'model_type': 'bert', 'transformers_version': '4.0'}
    (tmp_path / 'config.json').write_text(json.dumps(config))
    block = bert.BertForTokenClassification.from_pretrained(str(tmp_path))
    assert_same(block(*inputs), saved(*inputs), 1e-6)


def test_folder_without_weights(tmp_path):
    with pytest.raises(InputError, match='has no weights'):
        bert.BertModel.from_pretrained(str(tmp_path))


@pytest.mark.weights
def test_minilm(minilm_dir):
    block, vocab = model_zoo.get_model('bert_6_384_12', dataset_name='all_minilm_l6_v2')
    assert isinstance(vocab, BERTVocab) and len(vocab) == 30522 == block.config.vocab_size
    assert vocab['[CLS]'] == 101 and vocab['the'] == 1996
    assert block.has_pooler and not block.has_decoder and not block.has_classifier
    same, _ = model_zoo.get_model('bert_6_384_12', pretrained=str(minilm_dir))
    words = mx.nd.array([[101, 1996, 4937, 102]])
    assert_same(block(words), same(words), 1e-6)
    assert not same.has_decoder


@pytest.mark.weights
@pytest.mark.parametrize('head', [False, True])
def test_save_pretrained_keeps_the_vocabulary_of_the_weights(minilm_dir, tmp_path, head):
    if head:
        block = bert.BertForSequenceClassification.from_pretrained('all-MiniLM-L6-v2')
    else:
        block, _ = model_zoo.get_model('bert_6_384_12')
    block.save_pretrained(tmp_path / 'saved')
    text = 'An unaffable tokenizer.'
    again = bert.BertTokenizer.from_pretrained(tmp_path / 'saved')
    original = bert.BertTokenizer.from_pretrained(minilm_dir)
    assert again.encode(text).input_ids.tolist() == original.encode(text).input_ids.tolist()


@pytest.mark.weights
def test_gpu_on_a_build_without(minilm_dir):
    if mx.runtime.Features().is_enabled('CUDA'):
        pytest.skip('this build has GPU support')
    with pytest.raises(InputError, match='no GPU support'):
        model_zoo.get_model('bert_6_384_12', ctx=mx.gpu(0))
