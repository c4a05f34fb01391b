"""Everyone's folders: the ids of transformers, and of what is saved there and back."""

import json

import folders
import numpy as np
import pytest
from script_runs import run

import model_zoo
from export import export as export_script
from model_zoo.opening import open_tokenizer

transformers = pytest.importorskip('transformers')
pytestmark = pytest.mark.peers

MODEL_TYPES = {'XLMRoberta': 'xlm-roberta'}
TEXTS = [
    'The cat sat',
    'Sch\xf6n die \u4e2da',
    '<e1>x the <e1> cat<e1>',
    'a [MASK] b <mask> c',
    '  the   cat ',
    "it's 10 o'clock!",
    '',
    '\xc1<|endoftext|>b',
]


@pytest.mark.parametrize('kind', folders.FOLDERS)
def test_ids(tmp_path, kind):
    folder, saved = tmp_path / 'folder', tmp_path / 'saved'
    size, prefix = folders.write_tokenizer(folder, kind), folders.FOLDERS[kind][0]
    saved.mkdir()
    for each in (folder, saved):
        model_type = MODEL_TYPES.get(prefix, prefix.lower())
        (each / 'config.json').write_text(json.dumps({'model_type': model_type}))
    ours = open_tokenizer(str(folder))
    ours.save_pretrained(saved)
    theirs, back = map(transformers.AutoTokenizer.from_pretrained, (folder, saved))
    assert len(ours) == len(theirs) == len(back) == size
    for text in TEXTS:
        for texts in ((text,), (text, 'a b')):
            expected = theirs(*texts)
            assert ours.encode(*texts) == expected['input_ids'] == back(*texts)['input_ids']
            if 'token_type_ids' in expected:
                assert ours.encode(*texts).token_types.tolist() == expected['token_type_ids']


@pytest.mark.parametrize('kind', folders.FOLDERS)
def test_engines_and_exported_folders(tmp_path, kind):
    folder, out = str(tmp_path / 'folder'), str(tmp_path / 'out')
    is_writer = kind.startswith('gpt')
    head = 'LMHeadModel' if is_writer else 'ForSequenceClassification'
    size = folders.write_tokenizer(tmp_path / 'folder', kind)
    folders.add_model(tmp_path / 'folder', kind, size, head)
    task = 'language_model' if is_writer else 'classification'
    words = ('--task', task, '--model_name', folder, '--output_dir', out, '--format', 'onnx')
    assert run(export_script, *words) == 0

    def answer(source, engine, precision='float32'):
        pipeline = model_zoo.pipeline(source, engine=engine, precision=precision)
        if is_writer:
            return [pipeline(text, max_new_tokens=4) for text in TEXTS if text]
        rows = [pipeline(text, top_k=None) for text in TEXTS]
        return [[row['score'] for row in sorted(each, key=lambda r: r['label'])] for each in rows]

    expected = answer(folder, 'mxnet')
    for engine in ('onnxruntime', 'openvino'):
        for source in (folder, out):
            found = answer(source, engine)
            if is_writer:
                assert found == expected
            else:
                np.testing.assert_allclose(found, expected, atol=1e-5)
    if not is_writer:
        found = answer(folder, 'onnxruntime', 'int8')
        np.testing.assert_allclose(found, expected, atol=0.02)
