"""Requests to a server: odd ones, and the largest that are accepted."""

import pathlib
import re

import tiny
from odd_requests import OddRequests
from target import REFUSED, RIGHT, Target, Unequal

import bert
from model_zoo import pipeline
from model_zoo.inference.server import Settings

__all__ = ['targets']

WORDS = 30_000
#: a model as wide as MiniLM, with one layer
WIDE = {'hidden_size': 384, 'num_attention_heads': 12, 'intermediate_size': 1536,
        'num_hidden_layers': 1, 'max_position_embeddings': 512}  # fmt: skip
LABELS = ['contradiction', 'neutral', 'entailment']
CLASSES = {
    'text-classification': (bert.BertForSequenceClassification, LABELS),
    'question-answering': (bert.BertForQuestionAnswering, None),
    'fill-mask': (bert.BertForMaskedLM, None),
    'feature-extraction': (bert.BertModel, None),
    'token-classification': (bert.BertForTokenClassification, LABELS),
}  # fmt: skip
FULL = 'w7 ' * 509
LONG = {'question': 'w1 ?', 'context': 'w7 ' * 33_000}
#: the largest requests: path and body; each is near one of the limits, and is answered
LARGE = [
    ('/models/text-classification', {'inputs': [FULL] * 256}),
    ('/models/text-classification', {
        'inputs': ['w1'] * 4, 'parameters': {'candidate_labels': [f'w{n}' for n in range(1024)]}}),
    ('/models/text-classification', {'inputs': ['w7 ' * 33_000] * 80}),
    ('/models/question-answering', {'inputs': [LONG] * 2}),
    ('/models/question-answering', {
        'inputs': {'question': 'w1', 'context': 'w7 ' * 9000}, 'parameters': {'top_k': 1000}}),
    ('/models/fill-mask', {'inputs': '[MASK]' * 60, 'parameters': {'top_k': 900}}),
    ('/models/feature-extraction', {'inputs': [FULL] * 7}),
    ('/models/feature-extraction', {'inputs': [FULL] * 256, 'parameters': {'pooling': 'max'}}),
    ('/models/token-classification', {'inputs': ['w7 ' * 33_000]}),
    ('/v1/embeddings', {'model': 'feature-extraction', 'input': [[9] * 512] * 256}),
]  # fmt: skip
MOST = 1 << 30  # bytes above the idle server


def _ask(served, rng, folder):
    path, data = served.draw(rng)
    (folder / 'request').write_bytes(path.encode() + b'\n\n' + data)
    status, answer = served.ask(path, data)
    if status in (400, 404, 413):
        return REFUSED
    if status != 200:
        raise Unequal(f'{path}: status {status}, {answer[:500]!r}')
    return RIGHT


def _wide(folder):
    words = [f'w{number}' for number in range(WORDS)]
    models = {}
    for task, (block_class, labels) in CLASSES.items():
        own = folder / task
        own.mkdir()
        tiny.save_bert(own, [*words, '?'], block_class, labels, **WIDE)
        models[task] = pipeline(task, str(own))
    return OddRequests(models=models, settings=Settings(timeout=1000))


def _memory(name):
    status = pathlib.Path('/proc/self/status').read_text()
    return int(re.search(rf'{name}:\s+(\d+) kB', status)[1]) << 10


def _ask_much(served, rng, folder):
    path, body = rng.choice(LARGE)
    (folder / 'request').write_text(f'{path}\n\n{body!r:.1000}')
    pathlib.Path('/proc/self/clear_refs').write_text('5')  # the peak begins anew
    idle = _memory('VmRSS')
    status, answer = served.ask_json(path, body)
    if status != 200:
        raise Unequal(f'{path}: status {status}, {answer[:500]!r}')
    taken = _memory('VmHWM') - idle
    if taken > MOST:
        raise Unequal(f'{path} took {taken >> 20} MB: {body!r:.300}')
    return RIGHT


def targets():
    return [
        Target('served/odd requests', OddRequests, _ask, seconds=60, memory=None),
        Target('served/large requests', _wide, _ask_much, seconds=600, memory=None, batch=1),
    ]
