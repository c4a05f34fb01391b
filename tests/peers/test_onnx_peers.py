"""Blocks as ONNX graphs: ONNX Runtime computes what the blocks do."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import assert_same

import bert
import gpt2
from export import ExportError, export_onnx
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.onnx import OPSET

onnx = pytest.importorskip('onnx')
onnxruntime = pytest.importorskip('onnxruntime')
pytestmark = pytest.mark.peers

LAYERS = 3
HEADS = [name for name in bert.__all__ if name.startswith('BertFor')]


def initialized(block):
    block.initialize(mx.init.Normal(0.05))
    return block


def bert_block(name, **options):
    config = tiny.bert_config(
        90, num_hidden_layers=LAYERS, hidden_size=32, num_attention_heads=4, intermediate_size=64
    )
    return initialized(getattr(bert, name)(config, **options))


def session(path):
    return onnxruntime.InferenceSession(str(path), providers=['CPUExecutionProvider'])


@pytest.mark.parametrize('name', ['BertModel', *HEADS])
def test_each_class_of_bert(name, tmp_path):
    block = bert_block(name)
    path = export_onnx(block, str(tmp_path), 'model')
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [(each.domain, each.version) for each in model.opset_import] == [('', OPSET)]
    assert [each.name for each in model.graph.input] == [
        'input_ids', 'token_type_ids', 'attention_mask'
    ]  # fmt: skip
    first = model.graph.input[0].type.tensor_type
    assert all(axis.dim_param for axis in first.shape.dim)
    assert first.elem_type == onnx.TensorProto.INT64
    names = [each.name for each in model.graph.output]
    assert names == {
        'BertModel': ['last_hidden_state', 'pooler_output'],
        'BertForPreTraining': ['prediction_logits', 'seq_relationship_logits'],
        'BertForQuestionAnswering': ['start_logits', 'end_logits'],
    }.get(name, ['logits'])
    written = sorted(each.name for each in tmp_path.iterdir())
    assert written == ['model.onnx', 'model.onnx-SHA256SUMS']


def test_all_layers(tmp_path):
    path = export_onnx(bert_block('BertModel', output_all_encodings=True), str(tmp_path), 'model')
    names = [each.name for each in onnx.load(path).graph.output]
    assert names == ['hidden_states_1', 'hidden_states_2', 'last_hidden_state', 'pooler_output']


def test_all_fusions_are_found(tmp_path):
    path = export_onnx(
        bert_block('BertForSequenceClassification'), str(tmp_path), 'model', optimize=True
    )
    kinds = [node.op_type for node in onnx.load(path).graph.node]
    for name, count in (('Attention', LAYERS), ('BiasGelu', LAYERS),
                        ('SkipLayerNormalization', 2 * LAYERS),
                        ('EmbedLayerNormalization', 1)):  # fmt: skip
        assert kinds.count(name) == count, name


def test_padding_may_be_anywhere(tmp_path):
    block = bert_block('BertForSequenceClassification')
    run = session(export_onnx(block, str(tmp_path), 'model', optimize=True)).run
    random = np.random.RandomState(3)
    ids, mask = random.randint(0, 90, (2, 9)), np.ones((2, 9), 'int64')
    mask[1, 3:6] = 0
    types = np.zeros_like(ids)
    feed = {'input_ids': ids, 'token_type_ids': types, 'attention_mask': mask}
    both = run(None, feed)[0]
    assert_same(both, block(*map(mx.nd.array, (ids, types, mask))))
    feed['input_ids'] = np.where(mask, ids, (ids + 1) % 90)  # what is padding doesn't matter
    np.testing.assert_allclose(run(None, feed)[0], both, atol=1e-6)


def test_pruned_heads(tmp_path):
    block = bert_block('BertModel')
    block.prune_heads({0: [1], 2: [0, 3]})
    export_onnx(block, str(tmp_path), 'model')


@pytest.mark.parametrize('make, options, error', [
    (lambda: initialized(mx.gluon.nn.Dense(2, in_units=2)), {}, InputError),
    (lambda: tiny.make(gpt2.GPT2Model), {'optimize': True}, InputError),
    (lambda: bert_block('BertModel'), {'precision': 'int4'}, UnknownNameError),
    (lambda: bert_block('BertModel', output_attentions=True), {}, InputError),
    (lambda: bert_block('BertForMultipleChoice'), {'optimize': True}, InputError),
    (lambda: bert_block('BertModel'), {'name': 'a/b'}, InputError),
])  # fmt: skip
def test_what_cannot_be_exported(tmp_path, make, options, error):
    with pytest.raises(error):
        export_onnx(make(), str(tmp_path), **{'name': 'model', **options})
    assert not list(tmp_path.iterdir())


def test_wrong_results_are_not_written(tmp_path, monkeypatch):
    from model_zoo.onnx import operators

    monkeypatch.setitem(operators.OPERATORS, 'Activation', lambda writer, node: node.inputs[0])
    with pytest.raises(ExportError):
        export_onnx(bert_block('BertForSequenceClassification'), str(tmp_path), 'model')
    assert not list(tmp_path.iterdir())


