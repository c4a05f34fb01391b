"""Vectors of short and long texts on every road: Python, commands, HTTP, each engine, exported."""

import json
import shutil

import numpy as np
import pytest
from arrays import stored
from refusals import refuses
from script_runs import load_script, run

import model_zoo
from bert_embedding import BertEmbedding
from bert_embedding.cli import embed
from export.export import main as export
from model_zoo.errors import InputError, UnknownNameError
from model_zoo.inference.server import build_app
from model_zoo.util.choices import POOLINGS

TEXTS = ['The cat sleeps.', 'a dog barks and then the dog runs and the cat sleeps and then runs!']
TEXTS += ['Cat', ' '.join(['the dog and a cat'] * 9), 'unknown words and a cats']
LONG = [0, 1, 0, 1, 0]


@pytest.fixture(scope='module')
def folders(fixtures, tmp_path_factory):
    """Engine -> the folder that it opens, of a model of sentence-transformers with 12 tokens."""
    root = tmp_path_factory.mktemp('vectors')
    folder = shutil.copytree(fixtures / 'sentence_transformers' / 'today', root / 'model')
    export([str(folder), '--format', 'onnx', '--output_dir', f'{root}/out', '--seq_length', '8'])
    return {'exported': str(root / 'out')}, str(folder)


def by_pipeline(folder, engine, way, path):
    pipe = model_zoo.pipeline('feature-extraction', folder, engine=engine, long_texts=way)
    return pipe(TEXTS, pooling='model', return_tensors=True)


def by_command(folder, engine, way, path):
    argv = [folder, *TEXTS, '--engine', engine, '--pooling', 'model', '--long_texts', way]
    embed([*argv, '--output', str(path / 'vectors.npz')])
    return stored(path / 'vectors.npz')['vectors']


def by_http(folder, engine, way, path):
    testclient = pytest.importorskip('starlette.testclient')
    pipe = model_zoo.pipeline('feature-extraction', folder, engine=engine)
    with testclient.TestClient(build_app({'m': pipe})) as client:
        options = {'pooling': 'model', 'long_texts': way}
        answer = client.post('/models/m', json={'inputs': TEXTS, 'parameters': options})
        cut = None if way == 'windows' else str(sum(LONG))
        assert answer.headers.get('Truncated-Texts') == cut
        if way == 'cut':
            found = client.post('/v1/embeddings', json={'model': 'm', 'input': TEXTS})
            assert found.headers['Truncated-Texts'] == cut
            vectors = [each['embedding'] for each in found.json()['data']]
            np.testing.assert_allclose(unit(vectors), unit(answer.json()), atol=1e-5)
        return answer.json()


def unit(vectors):
    return np.array(vectors) / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize('way', ['cut', 'windows'])
@pytest.mark.parametrize('engine', ['mxnet', 'onnxruntime', 'openvino', 'exported'])
def test_equal_vectors_on_every_road(folders, tmp_path, caplog, capsys, engine, way):
    if engine != 'mxnet':
        pytest.importorskip({'exported': 'onnxruntime'}.get(engine, engine))
    exported, folder = folders
    wanted = BertEmbedding(folder, long_texts=way).sentence_vectors(TEXTS)
    folder, engine = exported.get(engine, folder), {'exported': 'onnxruntime'}.get(engine, engine)
    options, close = {'engine': engine, 'long_texts': way}, {'rtol': 0, 'atol': 1e-4}
    caplog.clear()
    found = BertEmbedding(folder, **options).sentence_vectors(TEXTS)
    said = [record for record in caplog.records if 'longer than 12 tokens' in record.getMessage()]
    assert len(said) == (way == 'cut')
    np.testing.assert_allclose(found, wanted, **close)
    for road in (by_pipeline, by_command, by_http):
        np.testing.assert_allclose(road(folder, engine, way, tmp_path), wanted, **close)
    cosines = (unit(wanted) @ unit(wanted).T)[0]
    item = {'source_sentence': TEXTS[0], 'sentences': TEXTS}
    pipe = model_zoo.pipeline('sentence-similarity', folder, **options)
    np.testing.assert_allclose(pipe(item), cosines, **close)
    (tmp_path / 'corpus.txt').write_text('\n'.join(TEXTS))
    argv = [folder, '--corpus', tmp_path / 'corpus.txt', '--top_k', 9, '--engine', engine]
    for _ in range(2):  # the second time with the vectors beside the corpus
        capsys.readouterr()
        assert run(load_script('search'), *argv, '--long_texts', way, TEXTS[0]) == 0
        hits = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        scores = {hit['line']: hit['score'] for hit in hits}
        np.testing.assert_allclose([scores[n] for n in range(1, 6)], cosines, **close)


def test_an_export_of_vectors_has_the_length_of_its_model(folders, tmp_path):
    pytest.importorskip('onnxruntime')
    folder = shutil.copytree(folders[1], tmp_path / 'model')
    (folder / 'config_sentence_transformers.json').unlink()  # the prompts
    modules = json.loads((folder / 'modules.json').read_text())
    (folder / 'modules.json').write_text(json.dumps(modules[:2]))  # without a dense layer
    argv = [str(folder), '--format', 'onnx', '--task', 'sentence_embedding', '--seq_length', '8']
    export([*argv, '--output_dir', f'{tmp_path}/out'])
    found = BertEmbedding(tmp_path / 'out').sentence_vectors(TEXTS)
    wanted = BertEmbedding(folder).sentence_vectors(TEXTS)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4)
    with pytest.raises(InputError):  # whose graph has no states of words
        BertEmbedding(tmp_path / 'out')(TEXTS)


def test_windows_have_every_word_and_change_no_short_text(folders):
    _, folder = folders
    cut, windows = (BertEmbedding(folder, long_texts=way)(TEXTS) for way in ('cut', 'windows'))
    more = [len(other[0]) > len(one[0]) for one, other in zip(cut, windows)]
    assert more == list(map(bool, LONG))
    pipe = model_zoo.pipeline('feature-extraction', folder, long_texts='windows')
    states = [np.array(each) for each in pipe(TEXTS, return_tensors=True)]
    assert [each.shape[1] > 12 for each in states] == list(map(bool, LONG))
    means = pipe(TEXTS, pooling='mean', return_tensors=True)
    np.testing.assert_allclose([each[0].mean(axis=0) for each in states], means, atol=1e-6)
    with refuses(says='long_texts'):
        pipe(TEXTS, long_texts='all')
    with pytest.raises(UnknownNameError):
        BertEmbedding(folder, long_texts='all')


def test_onnx_runtime_answers_with_the_pooling_that_is_asked_for(folders, tmp_path):
    pytest.importorskip('onnxruntime')
    rows = [f'{text},the cat runs,{score}' for score, text in zip((1, 0.1, 0.9, 0.4, 0), TEXTS)]
    (tmp_path / 'dev.csv').write_text('\n'.join(['sentence1,sentence2,score', *rows]))
    scores = {}
    for engine in ('onnxruntime', 'mxnet'):
        for pooling in POOLINGS:
            argv = ['--model', folders[1], '--dev_file', tmp_path / 'dev.csv']
            argv += ['--only_inference', '--engine', engine, '--output_dir', tmp_path / 'out']
            assert run(load_script('finetune_embedding'), *argv, '--pooling', pooling) == 0
            written = json.loads((tmp_path / 'out' / 'inference.json').read_text())['dev']['dev']
            scores[engine, pooling] = written['pearson']
    for pooling in POOLINGS:
        assert scores['onnxruntime', pooling] == pytest.approx(scores['mxnet', pooling], abs=1e-4)
    assert len({round(score, 3) for score in scores.values()}) == len(POOLINGS)
