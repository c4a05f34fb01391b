"""A server of tiny models in this process, and requests to it."""

import asyncio
import json

from tiny_models import save_bert, save_gpt2

import bert
from model_zoo import pipeline
from model_zoo.inference.server import Settings, build_app

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
LIMITS = {
    'max_rows': 300,
    'max_tokens': 4000,
    'max_answer': 2**18,
    'max_new_tokens': 60,
    'max_sequences': 4,
}


def _tiny(folder):
    models = {}
    for task, (block_class, labels, _) in TASKS.items():
        own = folder / task
        own.mkdir()
        saved = save_gpt2(own) if block_class is None else save_bert(own, block_class, labels)
        models[task] = pipeline(task, saved)
    return models


class Served:
    """A server's application in this process, and requests to it.

    Parameters
    ----------
    folder : pathlib.Path, optional
        For the models, tiny ones of all tasks.
    models : dict of str to Pipeline, optional
        Others instead of these.
    settings : Settings, optional
    """

    def __init__(self, folder=None, models=None, settings=None):
        models = _tiny(folder) if models is None else models
        self.app = build_app(models, settings or Settings(**LIMITS))
        self._loop = asyncio.new_event_loop()

    def close(self):
        """End its threads."""
        self.app.state.models.close()
        self._loop.close()

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
