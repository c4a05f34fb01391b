"""ONNX files that other programs wrote: names, types and outputs; and files for another task."""

import json
import pathlib
import shutil

import numpy as np
import pytest

import bert
import model_zoo
from bert_embedding import BertEmbedding
from export import export_onnx_folder
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.opening import open_model

onnx = pytest.importorskip('onnx')
pytest.importorskip('onnxruntime')

TEXTS = ['the cat sleeps in paris .', 'a', 'good film .']
INT32, BATCH = onnx.TensorProto.INT32, ['batch', 'sequence']


@pytest.fixture(scope='module')
def exported(saved, tmp_path_factory):
    """Name of a class -> the folder of its export, which is made once."""
    folders = {}

    def of(block_class):
        if block_class not in folders:
            folders[block_class] = tmp_path_factory.mktemp('exported')
            labels = ['bad', 'good'] if block_class is bert.BertForSequenceClassification else None
            block, tokenizer, _ = open_model(saved(block_class, labels))
            export_onnx_folder(block, str(folders[block_class]), tokenizer)
        return folders[block_class]

    return of


def change_input(graph, old, new, kind=INT32, shape=BATCH):
    """Give an input another name, type or shape; the graph casts it."""
    (given,) = (each for each in graph.input if each.name == old)
    given.CopyFrom(onnx.helper.make_tensor_value_info(new + '_', kind, shape))
    given.name = new
    for node in graph.node:
        node.input[:] = ['cast_' + old if name == old else name for name in node.input]
    cast = onnx.helper.make_node('Cast', [new], ['cast_' + old], to=onnx.TensorProto.INT64)
    graph.node.insert(0, cast)


def types(graph):
    for name in ('input_ids', 'token_type_ids', 'attention_mask'):
        change_input(graph, name, name)


def names(graph):
    change_input(graph, 'token_type_ids', 'segment_ids')
    change_input(graph, 'attention_mask', 'input_mask', onnx.TensorProto.FLOAT)


def positions(graph):
    more = onnx.helper.make_tensor_value_info('position_ids', onnx.TensorProto.INT64, BATCH)
    graph.input.append(more)


def outputs(graph):
    """A text's vector before the tokens' vectors."""
    states, make = graph.output[0].name, onnx.helper.make_node
    graph.node.append(make('ReduceMax', [states], ['sentence_embedding'], axes=[1], keepdims=0))
    graph.node.append(make('Identity', [states], ['token_embeddings']))
    del graph.output[:]
    for name in ('sentence_embedding', 'token_embeddings'):
        graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))


@pytest.fixture
def changed(exported, tmp_path):
    """Write a copy of a folder whose file has another graph, in optimum's layout or not."""

    def write(edit, block_class=bert.BertModel, where='model.onnx'):
        folder = shutil.copytree(exported(block_class), tmp_path / 'copy')
        for file in folder.glob('model.onnx*'):
            file.unlink()
        model = onnx.load(exported(block_class) / 'model.onnx')
        edit(model.graph)
        (folder / where).parent.mkdir(exist_ok=True)
        onnx.save(model, folder / where)
        return folder

    return write


@pytest.mark.parametrize('engine', ['onnxruntime', 'openvino'])
@pytest.mark.parametrize('edit', [types, names, positions, outputs])
def test_what_others_write(saved, changed, edit, engine):
    pytest.importorskip(engine)
    wanted = BertEmbedding(saved(bert.BertModel)).encode(TEXTS)
    found = BertEmbedding(changed(edit), engine=engine).encode(TEXTS)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


REFUSED = [
    lambda graph: change_input(graph, 'token_type_ids', 'pixels'),
    lambda graph: change_input(graph, 'token_type_ids', 'token_type_ids', shape=[1, 16]),
]


@pytest.mark.parametrize('edit', REFUSED)
def test_what_is_not_known_is_refused_when_opened(changed, edit):
    with pytest.raises(InputError, match='pixels|token_type_ids'):
        BertEmbedding(changed(edit))


def test_a_file_for_another_task(changed, exported, saved):
    classifier = exported(bert.BertForSequenceClassification)
    for task in ('feature-extraction', 'sentence-similarity'):
        with pytest.raises(InputError, match='logits'):
            model_zoo.pipeline(task, classifier)
    with pytest.raises(InputError, match='logits'):
        BertEmbedding(classifier)
    with pytest.raises(InputError):
        model_zoo.pipeline('text-classification', exported(bert.BertModel))
    found = model_zoo.pipeline(classifier)(TEXTS)
    wanted = model_zoo.pipeline(saved(bert.BertForSequenceClassification, ['bad', 'good']))(TEXTS)
    assert found == [pytest.approx(each, abs=1e-5) for each in wanted]


def test_labels_without_names(saved, tmp_path):
    block, tokenizer, _ = open_model(saved(bert.BertModel), 'classification', num_labels=3)
    export_onnx_folder(block, str(tmp_path), tokenizer)
    labels = json.loads((tmp_path / 'config.json').read_text())['id2label']  # for other programs
    assert [*labels.values()] == model_zoo.pipeline(str(tmp_path)).labels and len(labels) == 3


def test_several_files_in_the_folder_onnx(saved, changed):
    folder = changed(types, where='onnx/model.onnx')
    shutil.copy(folder / 'onnx' / 'model.onnx', folder / 'onnx' / 'model_quantized.onnx')
    wanted = BertEmbedding(saved(bert.BertModel)).encode(TEXTS)
    file = pathlib.Path('onnx', 'model_quantized.onnx')
    for name, options in [
        (folder, {}),
        (folder, {'file_name': 'model_quantized.onnx'}),
        (folder, {'file_name': str(file)}),
        (folder / file, {}),
        (folder / 'onnx', {}),
    ]:
        extract = model_zoo.pipeline('feature-extraction', name, **options)
        vectors = extract(TEXTS, pooling='mean', return_tensors=True)
        np.testing.assert_allclose(vectors, wanted, rtol=0, atol=1e-5)
        assert extract.engine.path.endswith(options.get('file_name', extract.engine.path))
    with pytest.raises(UnknownNameError) as caught:
        model_zoo.pipeline('feature-extraction', folder, file_name='other.onnx')
    assert caught.value.field == 'file_name'
