"""The largest requests that the server accepts by default take a bounded memory."""

import pathlib
import re

import pytest
import tiny

import bert
from model_zoo import pipeline
from model_zoo.inference.server import Settings

pytest.importorskip('fastapi')

from served_models import Served

WORDS = [*(f'w{number}' for number in range(30_000)), '?']
#: a model as wide as MiniLM, with one layer
WIDE = {
    'hidden_size': 384,
    'num_attention_heads': 12,
    'intermediate_size': 1536,
    'num_hidden_layers': 1,
    'max_position_embeddings': 512,
}
LABELS = ['contradiction', 'neutral', 'entailment']
CLASSES = {
    'text-classification': (bert.BertForSequenceClassification, LABELS),
    'question-answering': (bert.BertForQuestionAnswering, None),
    'feature-extraction': (bert.BertModel, None),
    'token-classification': (bert.BertForTokenClassification, LABELS),
}
FULL = 'w7 ' * 509
#: path and body; each is near one of the limits, and is answered
LARGE = [
    ('/models/text-classification', {'inputs': [FULL] * 256}),
    (
        '/models/text-classification',
        {'inputs': ['w1'] * 4, 'parameters': {'candidate_labels': [f'w{n}' for n in range(1024)]}},
    ),
    (
        '/models/question-answering',
        {'inputs': {'question': 'w1', 'context': 'w7 ' * 9000}, 'parameters': {'top_k': 1000}},
    ),
    ('/models/feature-extraction', {'inputs': [FULL] * 256, 'parameters': {'pooling': 'max'}}),
    ('/models/token-classification', {'inputs': ['w7 ' * 33_000]}),
    ('/v1/embeddings', {'model': 'feature-extraction', 'input': [FULL] * 256}),
]
MOST = 1 << 30  # bytes above the idle server


@pytest.fixture(scope='module')
def requests(tmp_path_factory):
    models = {}
    for task, (block_class, labels) in CLASSES.items():
        folder = tmp_path_factory.mktemp(task)
        tiny.save_bert(folder, WORDS, block_class, labels, **WIDE)
        models[task] = pipeline(task, str(folder))
    made = Served(models=models, settings=Settings(timeout=1000))
    yield made
    made.close()


def memory(name):
    status = pathlib.Path('/proc/self/status').read_text()
    return int(re.search(rf'{name}:\s+(\d+) kB', status)[1]) << 10


@pytest.mark.slow
@pytest.mark.parametrize('path, body', LARGE, ids=range(len(LARGE)))
def test_memory_of_the_largest_requests(requests, path, body):
    pathlib.Path('/proc/self/clear_refs').write_text('5')  # the peak begins anew
    idle = memory('VmRSS')
    status, answer = requests.ask_json(path, body)
    assert status == 200, answer[:500]
    assert memory('VmHWM') - idle < MOST
