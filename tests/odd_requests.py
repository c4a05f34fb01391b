"""Requests to a server of tiny models: what its OpenAPI document allows, and what is beside it."""

import asyncio
import copy
import json

from tiny_models import save_bert, save_gpt2

import bert
from model_zoo import pipeline
from model_zoo.inference.server import Settings, build_app

TEXTS = [
    'the cat',
    'the [MASK] sleeps .',
    '',
    'Käfer 🐈 ' * 9,
    'a\x00b\u202e',
    '{:300000000}',
    '{}',
    '<img src=x onerror=alert(1)>',
    ' ',
    'cat ' * 400,
]
PAIR = {'text': 'the cat', 'text_pair': 'sleeps'}
#: task -> the class of its block, its labels, and right inputs
TASKS = {
    'text-classification': (
        bert.BertForSequenceClassification,
        ['contradiction', 'entailment'],
        ['the cat', PAIR],
    ),
    'token-classification': (bert.BertForTokenClassification, ['O', 'B-X', 'I-X'], ['cat ' * 40]),
    'question-answering': (
        bert.BertForQuestionAnswering,
        None,
        [{'question': 'where ?', 'context': 'in paris . ' * 20}],
    ),
    'fill-mask': (bert.BertForMaskedLM, None, ['the [MASK] [MASK]', 'the [MASK]']),
    'feature-extraction': (
        bert.BertModel,
        None,
        ['the cat', {'source_sentence': 'the cat', 'sentences': ['a dog', 'a']}],
    ),
    'multiple-choice': (
        bert.BertForMultipleChoice,
        None,
        [{'text': 'the cat', 'choices': ['sleeps', 'a film']}],
    ),
    'next-sentence': (bert.BertForNextSentencePrediction, None, [PAIR]),
    'rerank': (
        bert.BertForSequenceClassification,
        ['relevance'],
        [{'query': 'the cat', 'documents': ['sleeps', 'a film']}],
    ),
    'text-generation': (None, None, ['The model']),
}
NAMES = ['self', 'items', 'inputs', 'options', 'parameters', 'top_k', 'topk', 'name', 'x', '']
LIMITS = {
    'max_text': 2000,
    'max_texts': 40,
    'max_rows': 300,
    'max_tokens': 4000,
    'max_answer': 2**18,
    'max_new_tokens': 60,
    'max_sequences': 4,
}


def odd(rng, depth=2):
    """A JSON value of any kind."""
    kind = rng.randrange(9 if depth else 7)
    if kind == 7:
        return [odd(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 8:
        return {rng.choice(NAMES): odd(rng, depth - 1) for _ in range(rng.randrange(3))}
    return rng.choice(
        [
            [None],
            [True, False],
            [0, -1, 1, 2, 7, 10**6, 2**31, 2**63, 2**64 - 1, 10**400],
            [0.5, -1.5, 1e-300, 1e300, 1e308, float('nan'), float('inf'), -0.0],
            TEXTS,
            NAMES,
            ['softmax', 'mean', 'model', 'float', 'simple'],
        ][kind]
    )


def right(schema, rng):
    """A value that a schema allows, mostly a small one."""
    if 'anyOf' in schema:
        return right(rng.choice(schema['anyOf']), rng)
    if 'enum' in schema:
        return rng.choice(schema['enum'])
    if 'const' in schema:
        return schema['const']
    kind = schema.get('type', 'null')
    kind = kind if isinstance(kind, str) else rng.choice(kind)
    if kind in ('integer', 'number'):
        low = schema.get('minimum', schema.get('exclusiveMinimum', -9))
        high = schema.get('maximum', 9)
        if rng.random() < 0.8:
            high = min(high, low + 9)
        return rng.randint(int(low), int(high)) if kind == 'integer' else rng.uniform(low, high)
    if kind == 'array':
        most = min(schema.get('maxItems', 3), 5)
        count = rng.randint(min(schema.get('minItems', 0), most), most)
        return [right(schema.get('items', {}), rng) for _ in range(count)]
    if kind == 'object':
        wanted = schema.get('required', [])
        return {
            name: right(each, rng)
            for name, each in schema.get('properties', {}).items()
            if name in wanted or rng.random() < 0.3
        }
    return {'boolean': rng.random() < 0.5, 'string': rng.choice(TEXTS)}.get(kind)


def mutated(value, rng, whole=0.03):
    """A value with a part replaced, removed, repeated or added."""
    if not isinstance(value, (dict, list)) or not value or rng.random() < whole:
        return odd(rng)
    value = copy.copy(value)
    place = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
    way = rng.random()
    if way < 0.1:
        del value[place]
    elif way < 0.2 and isinstance(value, dict):
        value[rng.choice(NAMES)] = odd(rng)
    elif way < 0.2:
        value *= rng.choice([2, 50])
    else:
        value[place] = mutated(value[place], rng, 0.2)
    return value


def _tiny(folder):
    models = {}
    for task, (block_class, labels, _) in TASKS.items():
        own = folder / task
        own.mkdir()
        saved = save_gpt2(own) if block_class is None else save_bert(own, block_class, labels)
        models[task] = pipeline(task, saved)
    return models


class OddRequests:
    """A server's application in this process, and requests to it.

    Parameters
    ----------
    folder : pathlib.Path, optional
        For the models, tiny ones of all tasks.
    models : dict of str to Pipeline, optional
        Others in place of these.
    settings : Settings, optional
    """

    def __init__(self, folder=None, models=None, settings=None):
        models = _tiny(folder) if models is None else models
        self.app = build_app(models, settings or Settings(**LIMITS))
        self._loop, self._paths = asyncio.new_event_loop(), self.app.openapi()['paths']

    def close(self):
        """End its threads."""
        self.app.state.models.close()
        self._loop.close()

    def _schema(self, path):
        content = self._paths[path]['post']['requestBody']['content']
        return content['application/json']['schema']

    def draw(self, rng):
        """Path and body of a request."""
        task = rng.choice(list(TASKS))
        draw = rng.choice([self._hugging_face, self._hugging_face, self._openai, self._page])
        path, body = draw(task, rng)
        for _ in range(rng.choice([0, 0, 1, 1, 2, 4])):
            body = mutated(body, rng)
        data = json.dumps(body).encode()
        if rng.random() < 0.03:
            data = data[: rng.randrange(len(data) + 1)] + rng.choice([b'', b'\xff', b'[' * 3000])
        return path, data

    def _hugging_face(self, task, rng):
        parameters = self._schema('/models/{name}')['properties']['parameters']['anyOf']
        titles = {
            'text-generation': 'Writing',
            'text-classification': rng.choice(['text-classification', 'zero-shot-classification']),
        }
        own = [each for each in parameters if each['title'] == titles.get(task, task)]
        inputs = rng.choice(TASKS[task][2])
        if rng.random() < 0.4:
            inputs = [inputs, *rng.choices([*TASKS[task][2], *TEXTS], k=rng.randrange(3))]
        body = {'inputs': inputs, 'parameters': right(rng.choice([*own * 9, *parameters]), rng)}
        if rng.random() < 0.1:
            body['stream'] = rng.random() < 0.8
        return f'/models/{rng.choice([task] * 20 + ["no", f"{task}/pipeline/rerank"])}', body

    def _openai(self, task, rng):
        path, model = rng.choice(
            [('/v1/embeddings', 'feature-extraction'), ('/v1/completions', 'text-generation')]
        )
        return path, {**right(self._schema(path), rng), 'model': rng.choice([model] * 9 + [task])}

    def _page(self, task, rng):
        if rng.random() < 0.5:
            return '/page/map', {'model': 'feature-extraction', 'texts': rng.choices(TEXTS, k=3)}
        return '/page/attentions', {'model': task, 'text': rng.choice(TEXTS), 'text_pair': 'a'}

    def ask_json(self, path, body):
        """Status and body of the answer to an object."""
        return self.ask(path, json.dumps(body).encode())

    def ask(self, path, data):
        """Status and body of the answer."""
        return self._loop.run_until_complete(self._ask(path, data))

    async def _ask(self, path, data):
        scope = {
            'type': 'http',
            'asgi': {'version': '3.0'},
            'http_version': '1.1',
            'method': 'POST',
            'scheme': 'http',
            'path': path,
            'raw_path': path.encode(),
            'query_string': b'',
            'root_path': '',
            'client': ('127.0.0.1', 1),
            'server': ('127.0.0.1', 80),
            'headers': [(b'host', b'127.0.0.1'), (b'content-type', b'application/json')],
        }
        parts, unread = [], [{'type': 'http.request', 'body': data, 'more_body': False}]

        async def receive():
            return unread.pop() if unread else await asyncio.Event().wait()

        async def send(message):
            parts.append(message)

        await self.app(scope, receive, send)
        return parts[0]['status'], b''.join(part.get('body', b'') for part in parts[1:])
