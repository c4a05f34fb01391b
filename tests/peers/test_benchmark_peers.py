"""scripts/benchmark/compare.py: each work once, beside its peers, with small models."""

import json

import pytest
from script_runs import ROOT, run_python

pytest.importorskip('torch')
pytest.importorskip('transformers')
pytestmark = pytest.mark.peers

DEMO = ROOT / 'scripts' / 'demo_data'
BERT = '--layers 1 --units 192 --shapes 1x8'
GPT2 = '--layers 1 --vocab_size 1000'


def compare(path, work, *flags):
    """The names of the contenders that have times."""
    script = ROOT / 'scripts' / 'benchmark' / 'compare.py'
    done = run_python(script, work, *flags, '--rounds', 1, '--json', path)
    assert not done.returncode, done.stderr
    rows = json.loads(path.read_text('utf-8'))['rows']
    assert all(row['best ms'] > 0 for row in rows)
    return {row['contender'] for row in rows}


INT8 = f'--precision int8 {BERT}'
TINY = f'{GPT2} --shapes 1x8 --new_tokens 2 --only mxnet torch'
#: work, flags, contenders
WORKS = [
    ('forward', INT8, {'ours, onnxruntime int8', 'torch int8', 'onnxruntime int8'}),
    (
        'forward',
        f'--only openvino gluonnlp {BERT}',
        {'ours, openvino float32', 'openvino float32', 'gluonnlp float32'},
    ),
    ('generation', TINY, {'ours, mxnet float32', 'torch float32'}),
    (
        'training',
        BERT,
        {'ours, float32', "ours, MXNet's operators, float32", 'gluonnlp float32', 'torch float32'},
    ),
]


@pytest.mark.parametrize('work, flags, contenders', WORKS)
def test_small_models(work, flags, contenders, tmp_path):
    for name in ('gluonnlp', 'pytorch_pretrained_bert', 'onnxruntime', 'openvino'):
        pytest.importorskip(name)
    assert compare(tmp_path / 'rows.json', work, *flags.split()) == contenders


def test_vectors(minilm_dir, tmp_path):
    pytest.importorskip('sentence_transformers')
    flags = ['--model', minilm_dir, '--file', DEMO / 'dev.tsv', '--count', '8', '--only', 'mxnet']
    found = compare(tmp_path / 'rows.json', 'vectors', *flags, 'transformers')
    assert found == {'ours, mxnet float32', 'sentence-transformers float32'}


def test_serving(minilm_dir, tmp_path):
    pytest.importorskip('uvicorn')
    flags = ['--model', minilm_dir, '--file', DEMO / 'dev.tsv', '--requests', '8', '--clients', '2']
    found = compare(tmp_path / 'rows.json', 'serving', *flags, '--only', 'mxnet', 'torch')
    assert found == {'ours, mxnet float32', 'torch float32'}
