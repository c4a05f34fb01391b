"""ONNX Runtime as an engine: same results as MXNet's, in pipelines, embeddings and scripts."""

import json
import os

import mxnet as mx
import numpy as np
import pytest
from script_runs import load_script, run
from toy_data import write_reviews

import bert
import model_zoo
from bert_embedding import BertEmbedding
from gpt import OpenAIGPTConfig, OpenAIGPTLMHeadModel
from gpt2 import GPT2Config, GPT2LMHeadModel, GPT2Tokenizer
from gpt2.tokenizer import bytes_to_unicode
from model_zoo.errors import CheckpointError, InputError
from model_zoo.generation import generate
from model_zoo.inference import make_engine
from model_zoo.inference.onnx_engine import OnnxRuntimeEngine
from transfo_xl import TransfoXLConfig, TransfoXLLMHeadModel

pytest.importorskip('onnx')
pytest.importorskip('onnxruntime')
pytestmark = pytest.mark.peers

TEXTS = ['A cat sleeps on the warm windowsill.', 'no', '', 'Well, that is that. ' * 12]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """A cache that all tests of the file share."""
    folder = tmp_path_factory.getbasetemp() / 'mxnet_home'
    monkeypatch.setenv('MXNET_HOME', str(folder))
    return folder / 'models' / 'engines'


def tiny(name, **options):
    config = bert.BertConfig(
        90, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=40,
    )  # fmt: skip
    block = getattr(bert, name)(config, **options)
    mx.random.seed(5)
    block.initialize(mx.init.Normal(0.1))
    return block


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
    block = tiny(name)
    for shape in ((3, 17), (1, 4)):
        batch = arrays(*shape)
        ours = make_engine(block).run(*batch)
        theirs = make_engine(block, 'onnxruntime').run(*batch)
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            rows = np.arange(shape[1]) < batch[2][:, None]
            keep = rows if one.ndim > 1 and one.shape[1] == shape[1] else slice(None)
            np.testing.assert_allclose(one[keep], other[keep], rtol=0, atol=1e-4)


def test_a_file_is_made_once(cache):
    block = tiny('BertForSequenceClassification', num_labels=3)
    first = OnnxRuntimeEngine.of(block).path
    made = [path.stat().st_mtime_ns for path in sorted(cache.glob('*.onnx'))]
    assert OnnxRuntimeEngine.of(tiny('BertForSequenceClassification', num_labels=3)).path == first
    assert [path.stat().st_mtime_ns for path in sorted(cache.glob('*.onnx'))] == made
    block.classifier.bias.set_data(mx.nd.ones(3))
    assert OnnxRuntimeEngine.of(block).path != first
    with open(first, 'r+b') as file:
        file.truncate(100)
    with pytest.raises(CheckpointError, match='is damaged or was changed: its checksum'):
        OnnxRuntimeEngine(first)
    os.remove(f'{first}-SHA256SUMS')
    with pytest.raises(CheckpointError, match='cannot load'):
        OnnxRuntimeEngine(first)


def test_int8_is_close():
    block, batch = tiny('BertForSequenceClassification', num_labels=3), arrays()
    (ours,), (theirs,) = make_engine(block).run(*batch), make_engine(
        block, 'onnxruntime', 'int8'
    ).run(*batch)
    assert 0 < np.abs(ours - theirs).max() < 0.1 * max(1, np.abs(ours).max())


def test_what_cannot_be():
    block = tiny('BertModel')
    with pytest.raises(InputError, match='bfloat16'):
        make_engine(block, 'onnxruntime', 'bfloat16')
    with pytest.raises(InputError, match='calibration'):
        make_engine(block, 'mxnet', 'int8')
    assert make_engine(block, 'auto').name == 'onnxruntime'
    assert make_engine(block, 'auto', 'float16').name == 'mxnet'


def test_embeddings(minilm_dir):
    ours = BertEmbedding(model=str(minilm_dir))
    theirs = BertEmbedding(model=str(minilm_dir), engine='onnxruntime')
    one, other = ours.sentence_vectors(TEXTS), theirs.sentence_vectors(TEXTS)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)
    small = BertEmbedding(model=str(minilm_dir), engine='onnxruntime', dtype='int8')
    vectors = small.sentence_vectors(TEXTS, normalize=True)
    one /= np.linalg.norm(one, axis=1, keepdims=True)
    assert (vectors * one).sum(axis=1).min() > 0.95


def test_pipelines(minilm_dir):
    ours = model_zoo.pipeline('sentence-similarity', str(minilm_dir))
    theirs = model_zoo.pipeline('sentence-similarity', str(minilm_dir), engine='onnxruntime')
    item = {'source_sentence': TEXTS[0], 'sentences': TEXTS[1:]}
    assert ours(item) == pytest.approx(theirs(item), abs=1e-5)


def arguments(data, output, *more):
    argv = ['--task_name', 'custom', '--text_columns', 'text', '--label_column', 'label']
    argv += ['--train_file', data / 'train.tsv', '--dev_file', data / 'dev.tsv']
    argv += ['--vocab_file', data / 'vocab.txt', '--batch_size', '16', '--lr', '3e-3']
    argv += ['--hparams', 'num_layers=2,units=16,hidden_size=32,num_heads=2,max_length=40']
    return [*argv, '--max_len', '24', '--output_dir', output, *more]


def test_scripts(tmp_path):
    write_reviews(tmp_path)
    script = load_script('finetune_classifier')
    more = ['--from_scratch', '--epochs', '2']
    assert run(script, *arguments(tmp_path, tmp_path / 'trained', *more)) == 0
    results = json.loads((tmp_path / 'trained' / 'results.json').read_text())
    path = tmp_path / 'trained' / results['best']['parameters']
    found = {}
    for engine in (['mxnet'], ['onnxruntime'], ['onnxruntime', '--precision', 'int8']):
        folder = tmp_path / '-'.join(engine)
        argv = arguments(tmp_path, folder, '--only_inference', '--model_parameters', path)
        assert run(script, *argv, '--engine', *engine) == 0
        found[folder.name] = json.loads((folder / 'inference.json').read_text())['dev']['dev']
    mxnet, onnx, int8 = found.values()
    assert mxnet['loss'] == pytest.approx(onnx['loss'], abs=1e-4)
    assert mxnet['accuracy'] == onnx['accuracy']
    assert abs(mxnet['accuracy'] - int8['accuracy']) < 0.05


def writer(name, same_length=True):
    """A small language model whose likeliest tokens vary."""
    if name == 'transfo_xl':
        block = TransfoXLLMHeadModel(TransfoXLConfig(
            60, cutoffs=(20, 40), n_layer=2, n_head=2, d_head=8, d_model=16, d_embed=16,
            d_inner=32, div_val=1, tgt_len=8, mem_len=6, clamp_len=6, same_length=same_length,
        ))  # fmt: skip
    else:
        config, kind = {
            'gpt': (OpenAIGPTConfig, OpenAIGPTLMHeadModel),
            'gpt2': (GPT2Config, GPT2LMHeadModel),
        }[name]
        block = kind(config(60, n_layer=2, n_head=2, n_embd=16, n_positions=24, n_ctx=24))
    mx.random.seed(4)
    block.initialize(mx.init.Normal(0.4))
    return block


PROMPTS = [[3, 17, 40, 8], [5], [9, 2, 11, 30, 21, 7, 7]]
WAYS = {
    'greedy': {},
    'drawn': {'temperature': 0.8, 'top_k': 20, 'num_return_sequences': 2, 'seed': 3},
    'beams': {'num_beams': 3},
}


@pytest.mark.parametrize('way', WAYS)
@pytest.mark.parametrize('name', ['gpt', 'gpt2', 'transfo_xl'])
def test_generation(name, way):
    block = writer(name)
    engine = make_engine(block, 'onnxruntime')
    ours = generate(block, PROMPTS, 12, **WAYS[way])
    theirs = generate(engine.language_model, PROMPTS, 12, **WAYS[way])
    tokens = [[each.tokens for each in of_prompt] for of_prompt in ours]
    assert tokens == [[each.tokens for each in of_prompt] for of_prompt in theirs]
    assert len({token for of_prompt in tokens for row in of_prompt for token in row}) > 1
    for one, other in zip(ours, theirs):
        for left, right in zip(one, other):
            assert left.log_prob == pytest.approx(right.log_prob, abs=1e-3)


def test_generation_beyond_the_context():
    block = writer('gpt2')
    engine = make_engine(block, 'onnxruntime')
    options = {'max_new_tokens': 40, 'overflow': 'slide'}
    ours, theirs = generate(block, PROMPTS, **options), generate(engine, PROMPTS, **options)
    assert [each[0].tokens for each in ours] == [each[0].tokens for each in theirs]
    with pytest.raises(InputError, match='context'):
        generate(engine, PROMPTS, 40)


def test_generation_in_int8():
    block = writer('gpt2')
    engines = [make_engine(block, 'onnxruntime', each) for each in ('float32', 'int8')]
    words = [np.array(PROMPTS[0])[None].astype('int32'), None, np.array([4])]
    wanted, found = (each.run(*words)[0] for each in engines)
    assert found.shape == (1, 4, 60)
    cosine = (wanted * found).sum() / np.sqrt((wanted**2).sum() * (found**2).sum())
    assert cosine > 0.98 and np.abs(wanted - found).max() > 0
    (result,) = generate(engines[1].language_model, PROMPTS[:1], 8)
    assert len(result[0].tokens) == 8


def test_generation_that_cannot_be():
    block = writer('transfo_xl', same_length=False)
    with pytest.raises(InputError, match="engine='mxnet'"):
        make_engine(block, 'onnxruntime')
    assert make_engine(block, 'auto').name == 'mxnet'


@pytest.fixture
def gpt2_folder(tmp_path):
    """A GPT-2 whose tokens are bytes."""
    tokens = [*bytes_to_unicode().values(), 'th', '<|endoftext|>']
    (tmp_path / 'vocab.json').write_text(json.dumps({each: n for n, each in enumerate(tokens)}))
    (tmp_path / 'merges.txt').write_text('#version: 0.2\nt h\n')
    tokenizer = GPT2Tokenizer(tmp_path / 'vocab.json', tmp_path / 'merges.txt')
    sizes = {'n_positions': 48, 'n_ctx': 48, 'n_embd': 16, 'n_layer': 1, 'n_head': 2}
    block = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokens), **sizes))
    block.initialize(mx.init.Normal(0.3))
    block.save_pretrained(str(tmp_path / 'gpt2'), tokenizer)
    return str(tmp_path / 'gpt2')


def test_generation_by_the_script(tmp_path, gpt2_folder):
    script = load_script('generate_gpt2')
    found = {}
    for engine in (['mxnet'], ['onnxruntime'], ['onnxruntime', '--precision', 'int8']):
        path = tmp_path / f'{"-".join(engine)}.json'
        argv = ['--model_name_or_path', gpt2_folder, '--prompt', 'a b', '--length', '6']
        argv += ['--output', path, '--seed', '2', '--engine', *engine]
        assert run(script, *argv) == 0
        found[engine[-1]] = json.loads(path.read_text())[0]['samples'][0]
    assert found['mxnet']['tokens'] == found['onnxruntime']['tokens']
    assert found['mxnet']['log_prob'] == pytest.approx(found['onnxruntime']['log_prob'], abs=1e-3)
    assert len(found['int8']['tokens']) == 6
    assert run(script, *argv, '--engine', 'mxnet') == 1  # without INT8

    ours = model_zoo.pipeline('text-generation', gpt2_folder)('a b', max_new_tokens=5)
    theirs = model_zoo.pipeline('text-generation', gpt2_folder, engine='onnxruntime')
    assert theirs('a b', max_new_tokens=5) == ours
    assert ours[0]['generated_text'] == 'a b' + ''.join(theirs.stream('a b', max_new_tokens=5))
