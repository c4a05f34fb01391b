"""INT8 in ONNX: calibrated, measured, and without the layers that cost too much."""

import numpy as np
import pytest
import tiny
from script_runs import read_json

import bert
from export import Measures, export_onnx
from export.export import main
from gpt2 import GPT2LMHeadModel
from model_zoo.batches import BucketedLoader, Sample
from model_zoo.errors import InputError
from model_zoo.inference.onnx_engine import OnnxRuntimeEngine

onnx = pytest.importorskip('onnx')
pytest.importorskip('onnxruntime')
pytestmark = pytest.mark.peers

LAYERS = 2
PRODUCTS = 6 * LAYERS + 2  # three projections of attention and one after it, two of FFN; the heads


def make(name='BertForSequenceClassification', vocab_size=90, **options):
    config = tiny.bert_config(vocab_size, **tiny.WIDER, max_position_embeddings=64)
    return tiny.initialized(getattr(bert, name)(config, **options), 0.15, 5)


def batches(count=3):
    random = np.random.RandomState(1)
    samples = [
        Sample(list(random.randint(0, 90, length)), [0] * length, None)
        for length in random.randint(3, 30, 8 * count)
    ]
    return list(BucketedLoader(samples, 8, pad_val=0))


def quantized(path):
    """Operators, and the sizes of the weights' scales."""
    graph = onnx.load(path).graph
    arrays = {each.name: each for each in graph.initializer}
    scales = {
        node.input[0]: arrays[node.input[1]].dims
        for node in graph.node
        if node.op_type == 'DequantizeLinear' and node.input[0] in arrays
    }
    return [node.op_type for node in graph.node], scales


def test_static(tmp_path):
    block, texts = make(num_labels=3), batches()
    path = export_onnx(block, str(tmp_path), 'model', precision='int8', measures=Measures(texts))
    kinds, scales = quantized(path)
    assert len(scales) == PRODUCTS and 'DynamicQuantizeLinear' not in kinds
    assert {tuple(dims) for dims in scales.values()} == {(32,), (64,), (3,)}  # one a channel
    told = read_json(tmp_path, 'model_int8.json')
    assert told['quantization'] == 'static'
    assert told['float32_layers'] == [] and told['layers'] == PRODUCTS
    assert 0.99 <= told['int8']['cosine'] < 1
    arrays = [each.asnumpy().astype('int32') for each in texts[0].inputs]
    wanted = block(*texts[0].inputs).asnumpy()
    (found,) = OnnxRuntimeEngine(path).run(*arrays)
    assert 0 < np.abs(found - wanted).max() < 0.1 * np.abs(wanted).max()
    export_onnx(block, str(tmp_path), 'model')  # in float32: the measures are another file's
    assert not (tmp_path / 'model_int8.json').exists()


@pytest.mark.parametrize(('static', 'optimize'), [(True, False), (False, False), (False, True)])
def test_layers_that_cost_too_much_stay_in_float32(static, optimize, tmp_path):
    block, texts = make(num_labels=3), batches(1)
    asked = []

    def evaluate(forward):
        """Whether three more layers than allowed are quantized."""
        scores = forward(texts[0])
        asked.append(np.abs(scores.asnumpy() - asked[0]).max() if asked else scores.asnumpy())
        count = len(asked) - 1
        return (1.0 if count == 0 else 0.9 if count < 3 else 1.0), {'asked': count}

    measures = Measures(texts, static, evaluate=evaluate, metric='accuracy')
    export_onnx(block, str(tmp_path), 'm', optimize, 'int8', measures)
    told = read_json(tmp_path, 'm_int8.json')
    # with none left out and with the worst one it is too bad, with the two worst it is enough
    assert len(told['float32_layers']) == 2 and len(asked) == 4
    assert told['float32'] == {'asked': 0} and told['int8'] == {'asked': 3}
    assert told['lost'] == 0
    kinds, scales = quantized(str(tmp_path / 'm.onnx'))
    if static:
        assert len(scales) == told['layers'] - 2 == PRODUCTS - 2
        for name in told['float32_layers']:
            assert not [weight for weight in scales if weight.startswith(name)]
    elif optimize:
        assert 'QAttention' in kinds
    assert asked[3] < asked[1]  # nearer to float32


def test_bad_arguments(tmp_path):
    block, few = make(), batches(1)
    for error, exported, *options in (
        (InputError, block, False, 'int8', Measures([])),
        (InputError, block, False, 'float32', Measures(few)),
        (InputError, block, True, 'int8', Measures(few)),
        (InputError, tiny.make(GPT2LMHeadModel), False, 'int8', Measures(few)),
    ):
        with pytest.raises(error):
            export_onnx(exported, str(tmp_path), 'm', *options)
    assert not list(tmp_path.glob('m*'))


def export(folder, block, task, *flags):
    """The measures that the command writes."""
    tokenizer = bert.BertTokenizer(folder / 'vocab.txt')
    block.save_pretrained(str(folder / 'model'), tokenizer)
    words = f'--task {task} --model_name {folder}/model --format onnx --precision int8 '
    words += f'--output_dir {folder}/out --max_length 40'
    main([*words.split(), *map(str, flags)])
    assert (folder / 'out' / 'tokenizer.json').exists()
    return read_json(folder / 'out', 'model_int8.json')


def test_command_for_texts(tmp_path):
    tiny.write_words(tmp_path, ['one', 'two', 'three'])
    (tmp_path / 'texts').write_text('one two\nthree\n\ntwo two one\n')
    block, texts = make('BertSentenceEncoder', 8), ['--calib_data', tmp_path / 'texts']
    told = export(tmp_path, block, 'sentence_embedding', *texts, '--calib_batch_size', '2')
    assert told['metric'] == 'cosine' and told['int8']['cosine'] >= 0.99
    (tmp_path / 'table.tsv').write_text('n\ta\tb\n1\tone two\ttwo\n2\tthree\tone\n')
    table = ['--calib_data', tmp_path / 'table.tsv', '--text_columns', 'a', 'b']
    assert export(tmp_path, block, 'sentence_embedding', *table)['quantization'] == 'static'
    for flags in (
        ['--calib_data', tmp_path / 'no'],
        ['--text_columns', '1'],
        table[:2],
        [*texts, '--precision', 'float16'],
    ):
        with pytest.raises(InputError):
            export(tmp_path, block, 'sentence_embedding', *flags)
