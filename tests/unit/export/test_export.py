"""export_block: for every block, loaded back by plain MXNet, whole or not at all."""

import os

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import assert_same, flatten, imported
from refusals import refuses

import bert
import export
from export import symbol_file
from model_zoo.errors import InputError

CONFIG = {**tiny.BERT, 'vocab_size': 40, 'num_attention_heads': 4, 'initializer_range': 0.3}


def make(name='BertModel', **options):
    return tiny.initialized(getattr(bert, name)(bert.BertConfig(**CONFIG), **options))


def make_inputs(batch=3, length=9, choices=False, dtype='int32'):
    shape = (batch, 2) if choices else (batch,)
    words = np.random.randint(0, 40, (*shape, length))
    types = np.random.randint(0, 2, (*shape, length))
    valid = np.random.randint(1, length + 1, shape)
    return [mx.nd.array(x, dtype=dtype) for x in (words, types, valid)]


def exported(block, folder, inputs=None, count=3, **options):
    """The block's graph as plain MXNet reads it."""
    export.export_block(block, str(folder), 'block', inputs, **options)
    return imported(folder / 'block', count)


def assert_graph(loaded, block, inputs):
    assert_same(loaded(*[x for x in inputs if x is not None]), block(*inputs))


OPTIONS = [
    {'use_pooler': False},
    {'use_decoder': True, 'use_classifier': True},
    {'output_attentions': True, 'output_all_encodings': True, 'keep_multihead_output': True},
]


@pytest.mark.parametrize('options', OPTIONS)
def test_model_with_options(tmp_path, options):
    block = make(**options)
    block(*make_inputs())
    assert_graph(exported(block, tmp_path), block, make_inputs(2, 7))
    assert block.keep_multihead_output == options.get('keep_multihead_output', False)


@pytest.mark.parametrize('chosen', [(0,), (0, 2), (0, 1, 2, 4), (0, 1, 2, 3, 4)])
def test_inputs_that_are_none_are_no_inputs_of_the_graph(tmp_path, chosen):
    block = make(use_decoder=True)
    positions = mx.nd.array([[1, 3], [0, 2]], dtype='int32')
    mask = mx.nd.array([[1, 0, 1, 1], [0, 1, 1, 1]])
    inputs = [*make_inputs(2, 7), positions, mask]
    inputs = [x if i in chosen else None for i, x in enumerate(inputs)]
    loaded = exported(block, tmp_path, inputs, len(chosen))
    names = mx.sym.load(str(tmp_path / 'block-symbol.json')).list_arguments()
    data = [name for name in names if name.startswith('data')]
    assert sorted(data) == [f'data{i}' for i in range(len(chosen))]
    assert_graph(loaded, block, inputs)


def test_block_is_not_disturbed(tmp_path):
    block = make('BertForSequenceClassification', num_labels=3)
    block.hybridize(static_alloc=True)
    inputs = make_inputs()
    expected = block(*inputs).asnumpy()
    with mx.autograd.record():
        export.export_block(block, str(tmp_path), 'block')
        assert mx.autograd.is_recording() and mx.autograd.is_training()
    np.testing.assert_array_equal(block(*inputs).asnumpy(), expected)


# -- what can go wrong --------------------------------------------------------------------------


def test_difference_is_found_and_nothing_is_left(tmp_path, monkeypatch):
    block = make('BertForSequenceClassification')
    write = symbol_file.write_params

    def write_wrong(path, tensors):
        name = next(name for name in tensors if name.endswith('classifier_bias'))
        write(path, {**tensors, name: tensors[name] + np.float32(3e-5)})

    monkeypatch.setattr(symbol_file, 'write_params', write_wrong)
    with pytest.raises(export.ExportError):
        export.export_block(block, str(tmp_path), 'block')
    assert os.listdir(tmp_path) == []


def test_both_files_or_none(tmp_path, monkeypatch):
    """If the second can't be written, the old ones stay."""
    export.export_block(make(), str(tmp_path), 'block')
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    count, replace = [0], os.replace

    def failing(source, target):
        if target.endswith('.params') and '-0000.params.' in source:
            return replace(source, target)  # the writer's own temporary file
        count[0] += 1
        if count[0] == 2:
            raise OSError(28, 'No space left on device')
        return replace(source, target)

    monkeypatch.setattr(os, 'replace', failing)
    with refuses(says=str(tmp_path)):
        export.export_block(make(), str(tmp_path), 'block')
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    monkeypatch.undo()
    export.export_block(make(), str(tmp_path), 'block')
    assert {path.name for path in tmp_path.iterdir()} == set(before)


REFUSED = [
    *((make, name) for name in ('', 'a/b', '..' + os.sep)),
    (lambda: bert.BertModel(bert.BertConfig(**CONFIG)), 'block'),  # without values
    (lambda: mx.gluon.nn.Dense(2), 'block'),
    (lambda: in_float64(make()), 'block'),
]


@pytest.mark.parametrize('make_bad, name', REFUSED)
def test_what_cannot_be_exported(tmp_path, make_bad, name):
    with pytest.raises(InputError):
        export.export_block(make_bad(), str(tmp_path), name)
    assert not os.listdir(tmp_path)


def in_float64(block):
    block.cast('float64')
    return block


def test_inputs_that_are_refused(tmp_path):
    words, types, valid = make_inputs()
    head, labels = make('BertForSequenceClassification'), mx.nd.array([0, 1, 1])
    for block, inputs in [
        (make(), [None, types]),
        (make(), [words] * 20),
        (make(), [words, types, words]),
        (make(), [words, types, valid, words]),
        (head, [words, types, valid, labels]),
    ]:
        with pytest.raises(InputError):
            export.export_block(block, str(tmp_path), 'block', inputs)
    (tmp_path / 'file').write_text('')
    with refuses(says='file'):
        export.export_block(make(), str(tmp_path / 'file' / 'out'), 'block')
    assert os.listdir(tmp_path) == ['file']


@pytest.mark.parametrize('name', ['BertModel', 'BertForMultipleChoice', 'BertForPreTraining'])
def test_attention_mask(tmp_path, name):
    """Padding in front, and holes; at other sizes than the example's."""
    block = make(name)
    choices = name == 'BertForMultipleChoice'
    words, types, _ = make_inputs(2, 7, choices)
    mask = mx.nd.array(np.random.randint(0, 2, words.shape), dtype='int32')
    mask[..., 3] = 1
    loaded = exported(block, tmp_path, [words, types, mask])
    assert_graph(loaded, block, [words, types, mask])
    words, types, _ = make_inputs(4, 11, choices, 'float32')
    mask = mx.nd.ones_like(words)
    mask[..., :4] = 0
    assert_graph(loaded, block, [words, types, mask])
    result = flatten(loaded(words, types, mask))[0]
    other = flatten(loaded(words, types, mx.nd.ones_like(words)))[0]
    assert np.abs((result - other).asnumpy()).max() > 1e-3
