"""Blocks as ONNX graphs: ONNX Runtime computes what the blocks do."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import assert_same

import bert
import gpt
import gpt2
import transfo_xl
from export import ExportError, export_onnx
from export import export as symbols
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.onnx import OPSET, to_onnx

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


def test_ids_out_of_range_are_refused(tmp_path):
    run = session(export_onnx(bert_block('BertModel'), str(tmp_path), 'model')).run
    ones = np.ones((1, 3), 'int64')
    with pytest.raises(Exception, match='out of data bounds|indices element out of'):
        run(None, {'input_ids': 90 * ones, 'token_type_ids': 0 * ones, 'attention_mask': ones})


def test_pruned_heads(tmp_path):
    block = bert_block('BertModel')
    block.prune_heads({0: [1], 2: [0, 3]})
    export_onnx(block, str(tmp_path), 'model')


def test_what_cannot_be_exported(tmp_path):
    folder = str(tmp_path)
    with pytest.raises(InputError, match='not a model of this zoo'):
        export_onnx(initialized(mx.gluon.nn.Dense(2, in_units=2)), folder, 'model')
    with pytest.raises(InputError, match='GPT2Model cannot be optimized'):
        export_onnx(tiny.make(gpt2.GPT2Model), folder, 'model', optimize=True)
    with pytest.raises(UnknownNameError, match="precision of ONNX 'int4'"):
        export_onnx(bert_block('BertModel'), folder, 'model', precision='int4')
    with pytest.raises(InputError, match='output_attentions'):
        export_onnx(bert_block('BertModel', output_attentions=True), folder, 'model')
    with pytest.raises(InputError, match='optimize'):
        export_onnx(bert_block('BertForMultipleChoice'), folder, 'model', optimize=True)
    with pytest.raises(InputError, match='name'):
        export_onnx(bert_block('BertModel'), folder, 'a/b')
    assert not list(tmp_path.iterdir())


def test_wrong_results_are_not_written(tmp_path, monkeypatch):
    from model_zoo.onnx import operators

    monkeypatch.setitem(operators.OPERATORS, 'Activation', lambda writer, node: node.inputs[0])
    with pytest.raises(ExportError, match='differs'):
        export_onnx(bert_block('BertForSequenceClassification'), str(tmp_path), 'model')
    assert not list(tmp_path.iterdir())


# -- other families: their graphs as symbols, translated -----------------------------------------

OTHERS = [
    gpt2.GPT2Model, gpt2.GPT2LMHeadModel, gpt2.GPT2DoubleHeadsModel,
    gpt.OpenAIGPTModel, gpt.OpenAIGPTLMHeadModel, gpt.OpenAIGPTDoubleHeadsModel,
]  # fmt: skip
MEMORY = {'cutoffs': [20, 50], 'tgt_len': 8, 'mem_len': 8}
CASES = [(kind, {}) for kind in OTHERS] + [
    (kind, {**MEMORY, 'div_val': value})
    for kind in (transfo_xl.TransfoXLModel, transfo_xl.TransfoXLLMHeadModel)
    for value in (1, 2)
]


@pytest.mark.parametrize('kind, sizes', CASES, ids=lambda each: getattr(each, '__name__', ''))
def test_graphs_of_other_families(kind, sizes):
    block, random = tiny.make(kind, 90, 0.05, **sizes), np.random.RandomState(0)
    batches = [
        symbols.make_batch(block, block.export_inputs, rows, length, 'int32', random)
        for rows, length in ((1, 16), (3, 23), (2, 9))
    ]
    flat = [symbols.flatten(list(batch.values())) for batch in batches]
    symbol, names = symbols._trace(block, batches[0])
    inputs = {}
    for name, arrays in zip(names, zip(*flat)):
        sizes = zip(*(array.shape for array in arrays))
        axes = tuple(str(each) if len({*each}) > 1 else each[0] for each in sizes)
        dtype = 'int64' if np.issubdtype(arrays[0].dtype, np.integer) else 'float32'
        inputs[name] = name, dtype, axes
    params = {each.name: each.data().asnumpy() for each in block.collect_params().values()}
    model = to_onnx(symbol, params, inputs, {f'output{i}': None for i in range(len(symbol))})
    run = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=['CPUExecutionProvider']
    )
    used = {each.name for each in run.get_inputs()}
    for batch, arrays in zip(batches, flat):
        feed = {name: array.asnumpy().astype(inputs[name][1])
                for name, array in zip(names, arrays) if name in used}  # fmt: skip
        with symbols.plain_calls(block):
            expected = symbols.flatten(block(**batch))
        for wanted, result in zip(expected, run.run(None, feed)):
            np.testing.assert_allclose(result, wanted.asnumpy(), rtol=0, atol=1e-4)
