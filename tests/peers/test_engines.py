"""ONNX Runtime and OpenVINO as engines: MXNet's results, in pipelines, embeddings and scripts."""

import numpy as np
import pytest
import tiny

import bert
from gpt import OpenAIGPTLMHeadModel
from gpt2 import GPT2LMHeadModel
from model_zoo.environment import cpu_flags
from model_zoo.errors import InputError
from model_zoo.generation import generate
from model_zoo.inference import make_engine
from model_zoo.inference.onnx_engine import OpenVINOEngine
from transfo_xl import TransfoXLLMHeadModel

pytest.importorskip('onnx')
pytest.importorskip('onnxruntime')
openvino = pytest.importorskip('openvino')
pytestmark = pytest.mark.peers


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """A cache that all tests of the file share."""
    monkeypatch.setenv('MXNET_HOME', str(tmp_path_factory.getbasetemp() / 'mxnet_home'))


def small(name, **options):
    config = tiny.bert_config(90, **tiny.WIDER, max_position_embeddings=40)
    return tiny.initialized(getattr(bert, name)(config, **options), 0.1, 5)


def arrays(rows=3, length=17):
    random = np.random.RandomState(0)
    return (
        random.randint(0, 90, (rows, length)).astype('int32'),
        random.randint(0, 2, (rows, length)).astype('int32'),
        random.randint(1, length + 1, rows).astype('int32'),
    )


HEADS = ['BertModel', *(name for name in bert.__all__ if name.startswith('BertFor'))]


@pytest.mark.parametrize('name', HEADS)
def test_engines_agree(name):
    block = small(name)
    for shape in ((3, 17), (1, 4), (1, 1)):
        batch = arrays(*shape)
        ours, runtime, theirs = (
            make_engine(block, name).run(*batch) for name in ('mxnet', 'onnxruntime', 'openvino')
        )
        assert len(ours) == len(runtime) == len(theirs)
        for one, two, three in zip(ours, runtime, theirs):
            assert one.shape == two.shape == three.shape
            rows = np.arange(shape[1]) < batch[2][:, None]
            keep = rows if one.ndim > 1 and one.shape[1] == shape[1] else slice(None)
            np.testing.assert_allclose(one[keep], two[keep], rtol=0, atol=1e-4)
            np.testing.assert_allclose(two[keep], three[keep], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    'engine, precision, most',
    [
        ('onnxruntime', 'int8', 0.1),
        pytest.param(
            'openvino',
            'bfloat16',
            0.02,
            marks=pytest.mark.skipif('avx512_bf16' not in cpu_flags(), reason='no bfloat16'),
        ),
    ],
)
def test_lower_precision_is_close(engine, precision, most):
    block, batch = small('BertForSequenceClassification', num_labels=3), arrays()
    exact, close = (
        make_engine(block, engine, each).run(*batch)[0] for each in ('float32', precision)
    )
    assert 0 < np.abs(exact - close).max() < most * np.abs(exact).max()


def test_what_cannot_be():
    block, memory = small('BertModel'), writer('transfo_xl', same_length=False)
    for each, engine, precision in (
        (block, 'onnxruntime', 'bfloat16'),
        (block, 'mxnet', 'int8'),
        (block, 'openvino', 'float16'),
        (writer('gpt2'), 'openvino', 'int8'),
        (memory, 'onnxruntime', 'float32'),
    ):
        with pytest.raises(InputError):
            make_engine(each, engine, precision)
    assert make_engine(memory, 'auto').name == 'mxnet'
    assert make_engine(block, 'auto', 'int8').name == 'onnxruntime'
    assert make_engine(block, 'auto', 'float16').name == 'mxnet'


@pytest.mark.parametrize('name', ['BertForSequenceClassification', 'gpt2'])
def test_auto_is_the_fastest_engine(name):
    block = writer(name) if name == 'gpt2' else small(name, num_labels=4)
    engine = make_engine(block, 'auto')
    assert engine.name == 'openvino'
    if name == 'gpt2':
        found, exact = generate(engine.language_model, PROMPTS, 12), generate(block, PROMPTS, 12)
        assert [each[0].tokens for each in found] == [each[0].tokens for each in exact]
    else:
        found, exact = (each.run(*arrays())[0] for each in (engine, make_engine(block)))
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-5)


@pytest.mark.parametrize('problem', ['read-only', 'attentions', 'library'])
def test_auto_takes_the_next_engine_where_it_must(problem, monkeypatch, tmp_path):
    block, batch = small('BertForSequenceClassification', num_labels=5), arrays()
    if problem == 'read-only':
        (tmp_path / 'models').write_text('no folder can be made here')
        monkeypatch.setenv('MXNET_HOME', str(tmp_path))
    elif problem == 'attentions':
        block.base.output_attentions = True
    else:
        monkeypatch.setattr(OpenVINOEngine, '_open', lambda self: 1 / 0)
    engine = make_engine(block, 'auto')
    assert engine.name == ('onnxruntime' if problem == 'library' else 'mxnet')
    if problem != 'attentions':
        assert engine.run(*batch)[0].shape == (3, 5)


def writer(name, same_length=True):
    """A small language model whose likeliest tokens vary."""
    kinds = {
        'gpt': OpenAIGPTLMHeadModel,
        'gpt2': GPT2LMHeadModel,
        'transfo_xl': TransfoXLLMHeadModel,
    }
    sizes = {'cutoffs': (20, 40), 'div_val': 1, 'tgt_len': 8, 'mem_len': 6, 'clamp_len': 6}
    sizes = {**sizes, 'same_length': same_length} if name == 'transfo_xl' else {}
    return tiny.make(kinds[name], 60, 0.4, **sizes)


PROMPTS = [[3, 17, 40, 8], [5], [9, 2, 11, 30, 21, 7, 7]]
WAYS = [
    {},
    {'temperature': 0.8, 'top_k': 20, 'num_return_sequences': 2, 'seed': 3},
    {'num_beams': 3},
]


@pytest.mark.parametrize('name', ['gpt', 'gpt2'])
@pytest.mark.parametrize('engine', ['onnxruntime', 'openvino'])
def test_generation(engine, name):
    block = writer(name)
    engine = make_engine(block, engine)
    for way in WAYS:
        models = block, engine.language_model
        ours, theirs = (generate(each, PROMPTS, max_new_tokens=12, **way) for each in models)
        tokens = [[each.tokens for each in of_prompt] for of_prompt in ours]
        assert tokens == [[each.tokens for each in of_prompt] for of_prompt in theirs]
        assert len({token for of_prompt in tokens for row in of_prompt for token in row}) > 1
        for one, other in zip(ours, theirs):
            for left, right in zip(one, other):
                assert left.log_prob == pytest.approx(right.log_prob, abs=1e-3)
    # beyond the context
    options = {'max_new_tokens': 40, 'overflow': 'slide'}
    ours, theirs = (generate(each, PROMPTS, **options) for each in (block, engine))
    assert [each[0].tokens for each in ours] == [each[0].tokens for each in theirs]
    with pytest.raises(InputError):
        generate(engine, PROMPTS, 40)
