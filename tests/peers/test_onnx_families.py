"""ONNX files of all families: ONNX Runtime computes what the blocks do."""

import functools

import mxnet as mx
import numpy as np
import pytest
import tiny
from variant_models import MAKERS

import bert
import gpt
import gpt2
from export import ExportError, export_onnx
from model_zoo.checkpoint.readers import read_sums
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.onnx import OPSET, graph
from model_zoo.registry import get_family

onnx = pytest.importorskip('onnx')
onnxruntime = pytest.importorskip('onnxruntime')
pytestmark = pytest.mark.peers

#: the other heads have the operators of these
VARIANTS = [
    (family, block)
    for family in MAKERS
    for block in get_family(family).blocks
    if block.__name__.endswith(('Model', 'ForPreTraining', 'ForMaskedLM', 'Classification'))
]
SIZE = 90
LAYERS = 2  # of tiny models
HEADS = [name for name in bert.__all__ if name.startswith('BertFor')]
CONFIG = tiny.bert_config(SIZE, num_hidden_layers=LAYERS, **tiny.WIDER)


initialized = functools.partial(tiny.initialized, scale=0.1)


def bert_block(name, **options):
    return initialized(getattr(bert, name)(CONFIG, **options))


def decoder(name, **options):
    kind = getattr(gpt if name.startswith('OpenAI') else gpt2, name)
    return initialized(kind(tiny.decoder_config(kind.config_class, SIZE), **options))


class Runner:
    """A file in ONNX Runtime: inputs and outputs by name."""

    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(str(path), providers=['CPUExecutionProvider'])
        self.inputs = [each.name for each in self.session.get_inputs()]
        self.outputs = [each.name for each in self.session.get_outputs()]

    def __call__(self, **feed):
        return dict(zip(self.outputs, self.session.run(None, feed)))


def exported(block, folder, **options):
    return Runner(export_onnx(block, str(folder), 'model', **options))


def only_standard_operators(path):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return {each.domain for each in model.opset_import} == {''}


STATE, CHOICE = ['last_hidden_state'], ['logits', 'mc_logits']
LAYERS_BEFORE = ['hidden_states_0', 'hidden_states_1']


@pytest.mark.parametrize(
    'name, options, more, outputs',
    [
        ('OpenAIGPTModel', {}, [], STATE),
        ('GPT2Model', {}, [], STATE),
        ('GPT2Model', {'output_all_encodings': True}, [], [*LAYERS_BEFORE, *STATE]),
        ('OpenAIGPTDoubleHeadsModel', {}, ['mc_token_ids'], CHOICE),
        ('GPT2DoubleHeadsModel', {}, ['mc_token_ids'], CHOICE),
    ],
)
def test_decoders(name, options, more, outputs, tmp_path):
    """Whose results `export_onnx` compares with the block's."""
    run = exported(decoder(name, **options), tmp_path)
    assert sorted(run.inputs) == ['attention_mask', 'input_ids', *more]
    assert run.outputs == outputs
    assert only_standard_operators(tmp_path / 'model.onnx')


def test_pruned_heads_of_a_language_model(tmp_path):
    block = decoder('GPT2LMHeadModel')
    block.prune_heads({1: [0]})
    run = exported(block, tmp_path)
    assert {each.name: each.shape[1] for each in run.session.get_inputs()[3:]} == {
        'past_key_values.0.key': 2,
        'past_key_values.0.value': 2,
        'past_key_values.1.key': 1,
        'past_key_values.1.value': 1,
    }


BLOCKS = {
    'bert': lambda: bert_block('BertForSequenceClassification'),
    'sentences': lambda: initialized(bert.BertSentenceEncoder(CONFIG)),
    'gpt': lambda: decoder('OpenAIGPTLMHeadModel'),
    'gpt2': lambda: decoder('GPT2LMHeadModel'),
}


@pytest.mark.parametrize('name', BLOCKS)
def test_float16(name, tmp_path):
    """`export_onnx` compares its results with the block's."""
    block = BLOCKS[name]()
    half = exported(block, tmp_path / 'half', precision='float16')
    full = exported(block, tmp_path / 'full')
    assert (half.inputs, half.outputs) == (full.inputs, full.outputs)
    arrays = onnx.load(tmp_path / 'half' / 'model.onnx').graph.initializer
    assert any(each.data_type == onnx.TensorProto.FLOAT16 for each in arrays)


@pytest.mark.parametrize('options', [{}, {'precision': 'int8'}])
def test_large_weights_are_in_a_file_of_their_own(options, tmp_path, monkeypatch):
    block = BLOCKS['bert']()
    small = exported(block, tmp_path / 'small', **options)
    monkeypatch.setattr(graph, 'EXTERNAL_FROM', 1000)
    large = exported(block, tmp_path / 'large', **options)
    names = sorted(each.name for each in (tmp_path / 'large').iterdir())
    assert names == ['model.onnx', 'model.onnx-SHA256SUMS', 'model.onnx_data']
    sums = read_sums(str(tmp_path / 'large' / 'model.onnx-SHA256SUMS'))
    assert [*sums] == ['model.onnx', 'model.onnx_data']
    feed = {name: np.ones((2, 5), 'int64') for name in small.inputs}
    np.testing.assert_array_equal(large(**feed)['logits'], small(**feed)['logits'])
    monkeypatch.undo()  # a smaller one takes its place
    export_onnx(block, str(tmp_path / 'large'), 'model', **options)
    names = sorted(each.name for each in (tmp_path / 'large').iterdir())
    assert names == ['model.onnx', 'model.onnx-SHA256SUMS']


# -- BERT ------------------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['BertModel', *HEADS])
def test_each_class_of_bert(name, tmp_path):
    block = bert_block(name)
    model = onnx.load(export_onnx(block, str(tmp_path), 'model'))
    onnx.checker.check_model(model, full_check=True)
    assert [(each.domain, each.version) for each in model.opset_import] == [('', OPSET)]
    names = [each.name for each in model.graph.input]
    assert names == ['input_ids', 'token_type_ids', 'attention_mask']
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


NORMS = 2 * LAYERS
CLASSIFIER = {'Attention': LAYERS, 'BiasGelu': LAYERS, 'SkipLayerNormalization': NORMS}
SHARED = {'Attention': 4, 'FastGelu': 4, 'SkipLayerNormalization': 8}
#: class of the block, sizes, options, and the operators of its file
FUSIONS = [
    ('BertForSequenceClassification', {}, {}, {**CLASSIFIER, 'EmbedLayerNormalization': 1}),
    ('BertForSequenceClassification', {}, {'precision': 'int8'}, {'QAttention': LAYERS}),
    # parameters that layers share are in the file once, also those that are joined
    ('AlbertModel', {'num_hidden_layers': 4}, {}, SHARED),
    # it adds positions in front of the layers
    ('MPNetModel', {}, {}, {'SkipLayerNormalization': NORMS + 1, 'BiasGelu': LAYERS}),
    ('DebertaV2Model', {}, {}, {'SkipLayerNormalization': NORMS, 'BiasGelu': LAYERS}),
    ('ModernBertModel', {}, {}, {'SkipLayerNormalization': NORMS, 'Gelu': LAYERS}),
]


@pytest.mark.parametrize('name, sizes, options, counts', FUSIONS)
def test_all_fusions_are_found(name, sizes, options, counts, tmp_path):
    block = tiny.make(getattr(bert, name), SIZE, 0.1, **sizes)
    model = onnx.load(export_onnx(block, str(tmp_path), 'model', optimize=True, **options))
    kinds = [node.op_type for node in model.graph.node]
    assert {kind: kinds.count(kind) for kind in counts} == counts
    if name == 'AlbertModel':
        size = sum(4 * parameter.data().size for parameter in block.collect_params().values())
        assert graph.weight_bytes(model) < 1.05 * size


@pytest.mark.parametrize('family, block_class', VARIANTS)
def test_variants(tmp_path, family, block_class):
    """Which ONNX Runtime compares with the block, for masks with holes."""
    block, _ = MAKERS[family](tmp_path / 'words')
    block = tiny.initialized(block_class(block.config), 0.3)
    model = onnx.load(export_onnx(block, str(tmp_path / 'out'), 'model'))
    types = set() if 'token_types' in block_class.unused_inputs else {'token_type_ids'}
    assert {each.name for each in model.graph.input} == {'input_ids', 'attention_mask', *types}


class HeadOfAUser(bert.BertForSequenceClassification):
    def _classify(self, F, encoded, valid_length):
        scores = F.sigmoid(F.tanh(super()._classify(F, encoded, valid_length)))
        return F.log(F.exp(F.relu(scores)) + F.sqrt(F.abs(scores)))


def test_functions_of_a_users_head(tmp_path):
    runner = exported(initialized(HeadOfAUser(CONFIG, num_labels=3)), tmp_path)  # it compares
    assert runner.outputs == ['logits']


@pytest.mark.parametrize(
    'make, options, error',
    [
        (lambda: initialized(mx.gluon.nn.Dense(2, in_units=2)), {}, InputError),
        (lambda: tiny.make(gpt2.GPT2Model), {'optimize': True}, InputError),
        (lambda: bert_block('BertModel'), {'precision': 'int4'}, UnknownNameError),
        (lambda: bert_block('BertModel', output_attentions=True), {}, InputError),
        (lambda: bert_block('BertForMultipleChoice'), {'optimize': True}, InputError),
        (lambda: bert_block('BertModel'), {'name': 'a/b'}, InputError),
    ],
)
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
