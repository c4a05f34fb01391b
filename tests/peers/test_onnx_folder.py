"""A folder that serves a model with ONNX Runtime and tokenizers alone."""

import json
import os

import mxnet as mx
import numpy as np
import pytest
import tiny
from script_runs import run_python

import bert
from export import export_onnx_folder
from model_zoo.tasks.labels import name_labels

pytest.importorskip('onnx')
pytest.importorskip('onnxruntime')
pytestmark = pytest.mark.peers

TEXTS = [
    'A man plays the guitar.',
    "Caf\u00e9, na\u00efve: it's 3 o'clock!",
    '\u6771\u4eac [MASK] x',
    'An Unaffable sentence, which is by far the longest one of all four.',
]
PAIRS = ['It rains.', 'Someone makes music.', '', 'No.']
#: but for the checksums
FILES = ['config.json', 'model.onnx', 'special_tokens_map.json', 'tokenizer.json']
FILES += ['tokenizer_config.json', 'vocab.txt']

#: of a program: what a machine without the project lacks can't be imported
BLOCKER = """
import sys

class Refuses:
    ours = {'model_zoo', 'bert', 'gpt', 'gpt2', 'transfo_xl', 'export', 'bert_embedding'}
    others = {'mxnet', 'gluonnlp', 'transformers', 'torch', 'tensorflow', 'onnx', 'optimum'}

    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in self.ours | self.others:
            raise ImportError(f'{name} is not installed')

sys.meta_path.insert(0, Refuses())
"""

SERVER = (
    BLOCKER
    + """
import json
import numpy as np
import onnxruntime
import tokenizers

tokenizer = tokenizers.Tokenizer.from_file('tokenizer.json')
config = json.load(open('config.json'))
tokenizer.enable_padding(pad_id=config['pad_token_id'])
session = onnxruntime.InferenceSession('model.onnx', providers=['CPUExecutionProvider'])
texts, pairs = json.loads(sys.argv[1])
encodings = tokenizer.encode_batch(list(zip(texts, pairs)) if pairs else texts)
feed = {
    'input_ids': [each.ids for each in encodings],
    'attention_mask': [each.attention_mask for each in encodings],
    'token_type_ids': [each.type_ids for each in encodings],
}
feed = {each.name: np.array(feed[each.name], 'int64') for each in session.get_inputs()}
(scores,) = session.run(None, feed)
labels = config.get('id2label')
best = labels and [labels[str(each)] for each in scores.argmax(axis=1)]
print(json.dumps([scores.tolist(), best]))
"""
)


def run(program, folder, *arguments):
    environment = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
    done = run_python('-c', program, *map(json.dumps, arguments), cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def scores_of(model, tokenizer, texts, pairs):
    batch = tokenizer.encode_batch(texts, pairs)
    arrays = (batch.input_ids, batch.token_types, batch.valid_length)
    return model(*map(mx.nd.array, arrays)).asnumpy()


def classifier(num_labels):
    """A small one for MiniLM's words, and its tokenizer."""
    tokenizer = bert.BertTokenizer.from_pretrained('all-MiniLM-L6-v2')
    config = tiny.bert_config(len(tokenizer.vocab), max_position_embeddings=512)
    model = bert.BertForSequenceClassification(config, num_labels=num_labels)
    return tiny.initialized(model, 0.3), tokenizer


@pytest.mark.parametrize('optimize, pairs', [(False, None), (True, [*map('x '.__add__, PAIRS)])])
def test_classifier_from_raw_text(optimize, pairs, tmp_path):
    model, tokenizer = classifier(3)
    name_labels(model, 'weather', ['good', 'bad', 'ugly'])
    paths = export_onnx_folder(model, str(tmp_path), tokenizer, optimize=optimize)
    assert sorted(map(os.path.basename, paths)) == FILES
    written = {*map(os.path.basename, paths), 'model.onnx-SHA256SUMS'}
    assert {*os.listdir(tmp_path)} == written
    wanted = scores_of(model, tokenizer, TEXTS, pairs)
    scores, labels = run(SERVER, tmp_path, [TEXTS, pairs])
    np.testing.assert_allclose(scores, wanted, atol=1e-4)
    assert labels == [['good', 'bad', 'ugly'][n] for n in wanted.argmax(axis=1)]


def test_what_transformers_reads(tmp_path):
    transformers = pytest.importorskip('transformers')
    model, tokenizer = classifier(2)
    export_onnx_folder(model, str(tmp_path), tokenizer)
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    assert config.architectures == ['BertForSequenceClassification']
    assert config.id2label == {0: 'LABEL_0', 1: 'LABEL_1'} and config.pad_token_id == 0
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs.is_fast and theirs.model_max_length == 512
    assert (theirs.pad_token, theirs.mask_token) == ('[PAD]', '[MASK]')
    for text, pair in zip(TEXTS, PAIRS):
        assert theirs(text)['input_ids'] == list(tokenizer.encode(text))
        if pair:
            theirs_pair, ours = theirs(text, pair), tokenizer.encode(text, pair)
            assert theirs_pair['input_ids'] == list(ours)
            assert theirs_pair['token_type_ids'] == list(ours.token_types)
