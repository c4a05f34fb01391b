"""The tables of BERT's names in other programs: reversible, and complete in what they report."""

import mxnet as mx
import numpy as np
import pytest
import safetensors.numpy
import tiny
from arrays import assert_equal, assert_loads

import bert
from model_zoo.errors import CheckpointError

SIZES = {'num_hidden_layers': 3, 'num_attention_heads': 4, 'intermediate_size': 512}
DEEP = {'num_hidden_layers': 11}  # a number of two digits
HEADS = [name for name in bert.__all__ if name.startswith('BertFor')]
FORMATS = ['gluonnlp', 'huggingface']


def make(name='BertModel', changes=(), **options):
    config = tiny.bert_config(40, **{**SIZES, **dict(changes)})
    block = getattr(bert, name)(config, **options)
    block.initialize(mx.init.Normal(1))
    for parameter in block.collect_params().values():  # norms and biases too
        if parameter.name.endswith(('gamma', 'beta', 'bias')) and 'ffn_1' not in parameter.name:
            parameter.set_data(mx.nd.random.normal(shape=parameter.shape))
    return block


ALL_PARTS = {'use_decoder': True, 'use_classifier': True}
BLOCKS = [
    ('BertModel', {}),
    ('BertModel', {'use_pooler': False}),
    ('BertModel', {'use_decoder': True, 'use_pooler': False}),
    ('BertModel', ALL_PARTS),
    *[(name, {}) for name in HEADS],
    *[(name, {'use_pooler': True, **ALL_PARTS}) for name in HEADS],
    ('BertForSequenceClassification', {'dropout': 0.0}),
    ('BertForSequenceClassification', {'dropout': 0.5, 'num_labels': 1}),
]


@pytest.mark.parametrize('form', [*FORMATS, 'native'])
@pytest.mark.parametrize('name, options', BLOCKS)
def test_round_trip(tmp_path, name, options, form):
    block, other = make(name, **options), make(name, **options)
    path = str(tmp_path / 'block.params')
    block.save_parameters(path, format=form)
    other.load_parameters(path)
    assert_equal(other._own_tensors(), block._own_tensors())
    if form != 'native':
        mapping = block.mappings()[form]
        for with_prefix in {True, block.backbone is not None}:
            theirs = mapping.save(block._own_tensors(), block.config, with_prefix)
            assert_loads(block, form, theirs)


@pytest.mark.parametrize('form', [*FORMATS, 'native'])
def test_pruned_round_trip(tmp_path, form):
    blocks = [make(changes={'pruned_heads': {1: [0, 2], 2: [3]}}) for _ in range(2)]
    path = str(tmp_path / 'block.params')
    blocks[0].save_parameters(path, format=form)
    blocks[1].load_parameters(path)
    assert_equal(*(block._own_tensors() for block in blocks))
    with pytest.raises(CheckpointError, match='wrong shape: encoder.layers.1.attention.qkv.weight'):
        make().load_parameters(path)


def test_older_names_of_hugging_face():
    block = make()
    theirs = block.mappings()['huggingface'].save(block._own_tensors(), block.config, False)
    old = {
        name.replace('LayerNorm.weight', 'LayerNorm.gamma').replace(
            'LayerNorm.bias', 'LayerNorm.beta'
        ): value
        for name, value in theirs.items()
    }
    assert len(set(old) - set(theirs)) == 2 * (1 + 2 * 3)
    old['embeddings.position_ids'] = np.arange(24)[None]
    assert_loads(block, 'huggingface', old)


@pytest.mark.parametrize('form', FORMATS)
def test_tied_decoder_may_bear_either_name(form):
    block = make('BertForMaskedLM')
    theirs = block.mappings()[form].save(block._own_tensors(), block.config, True)
    names = [name for name, value in theirs.items() if value.shape == (40, 16)]
    assert len(names) == 2
    np.testing.assert_array_equal(theirs[names[0]], theirs[names[1]])
    for name in names:
        assert_loads(block, form, {key: theirs[key] for key in theirs if key != name})


@pytest.mark.parametrize('form', FORMATS)
def test_tied_name_is_only_written_with_the_decoder(form):
    plain, with_decoder = make(use_pooler=False), make(use_pooler=False, use_decoder=True)
    names = [
        set(block.mappings()[form].save(block._own_tensors(), block.config, False))
        for block in (plain, with_decoder)
    ]
    assert not [name for name in names[0] if 'decoder' in name or name.startswith('cls')]
    assert len([name for name in names[1] if name.endswith(('decoder.weight', 'decoder.3.weight'))
                ]) == 1  # fmt: skip


@pytest.mark.parametrize('form', FORMATS)
@pytest.mark.parametrize('name', ['BertModel', 'BertForTokenClassification'])
def test_names_that_are_missing_left_over_or_wrong_are_listed(tmp_path, form, name):
    block = make(name)
    path = str(tmp_path / 'block.safetensors')
    theirs = block.mappings()[form].save(block._own_tensors(), block.config, name != 'BertModel')
    layer_norm = next(key for key in theirs if '.2.' in key and 'orm' in key)
    key_bias = next(key for key in theirs if '.1.' in key and 'key.bias' in key)

    def load(tensors, **options):
        safetensors.numpy.save_file(tensors, path)
        make(name).load_parameters(path, **options)

    load(theirs)
    less = {key: value for key, value in theirs.items() if key not in (layer_norm, key_bias)}
    with pytest.raises(CheckpointError) as caught:
        load(less)
    message = str(caught.value)
    assert path in message and name in message
    assert 'missing: encoder.layers.1.attention.qkv.bias, encoder.layers.2.' in message
    assert key_bias.replace('key', 'query') in message  # of no use without the key
    with pytest.raises(CheckpointError, match='not in the model: .*query.bias'):
        load(less, allow_missing=True)
    load(less, allow_missing=True, ignore_extra=True)

    more = {**theirs, 'mystery.weight': np.zeros(3, 'float32')}
    with pytest.raises(CheckpointError, match='not in the model: mystery.weight$'):
        load(more)
    load(more, ignore_extra=True)

    word = next(key for key in theirs if theirs[key].shape == (40, 16))
    wrong = {**theirs, word: np.zeros((41, 16), 'float32')}
    with pytest.raises(CheckpointError) as caught:
        load(wrong, ignore_extra=True, allow_missing=True)
    assert 'word_embed.weight has shape (41, 16), the model wants (40, 16)' in str(caught.value)
    assert 'vocabulary does not fit' in str(caught.value)

    odd = {**theirs, key_bias: np.zeros(7, 'float32')}
    with pytest.raises(CheckpointError, match=r'tensors of the wrong shape: .*key.bias \(7,\)'):
        load(odd)


def test_what_fails_leaves_the_block_as_it_was(tmp_path):
    path = str(tmp_path / 'block.params')
    make(changes={'max_position_embeddings': 19}).save_parameters(path)
    block = make()
    before = block._own_tensors()
    with pytest.raises(CheckpointError, match='encoder.position_weight'):
        block.load_parameters(path)
    assert_equal(block._own_tensors(), before)


def test_long_lists_are_cut(tmp_path):
    path = str(tmp_path / 'block.params')
    make(changes={'num_hidden_layers': 1}).save_parameters(path)
    with pytest.raises(CheckpointError, match=r'missing: .*, and \d+ more') as caught:
        make('BertModel', DEEP).load_parameters(path)
    assert len(str(caught.value)) < 1500


def test_deeper_file_is_not_cut_silently(tmp_path):
    path = str(tmp_path / 'block.params')
    for form in ('native', *FORMATS):
        make().save_parameters(path, format=form)
        with pytest.raises(CheckpointError, match=r'not in the model: .*\.2\.'):
            make(changes={'num_hidden_layers': 2}).load_parameters(path)


def test_other_families_file(tmp_path):
    path = str(tmp_path / 'other.safetensors')
    safetensors.numpy.save_file({'h.0.attn.c_attn.weight': np.zeros((2, 2), 'float32')}, path)
    with pytest.raises(CheckpointError, match=r'none of its names belongs to a BertModel \(h.0'):
        make().load_parameters(path)


def test_values_that_are_not_numbers(tmp_path):
    block = make()
    block.pooler.bias.data()[3] = np.nan
    path = str(tmp_path / 'block.params')
    block.save_parameters(path)
    with pytest.raises(CheckpointError, match='NaN or infinite values: pooler.bias'):
        make().load_parameters(path)


def test_half_precision_safetensors(tmp_path):
    block = make()
    theirs = block.mappings()['huggingface'].save(block._own_tensors(), block.config, False)
    path = str(tmp_path / 'block.safetensors')
    halves = {name: value.astype('float16') for name, value in theirs.items()}
    safetensors.numpy.save_file(halves, path)
    other = make()
    other.load_parameters(path)
    for name, value in other._own_tensors().items():
        np.testing.assert_allclose(value, block._own_tensors()[name], rtol=1e-3, atol=1e-4)


def test_a_next_sentence_classifier_is_no_tasks_classifier(tmp_path):
    path = str(tmp_path / 'block.params')
    make(use_classifier=True).save_parameters(path)
    with pytest.raises(CheckpointError, match='missing: classifier.weight, classifier.bias; not in '
                       'the model: '):  # fmt: skip
        make('BertForSequenceClassification').load_parameters(path)
