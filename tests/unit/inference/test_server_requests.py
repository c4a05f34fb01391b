"""What requests may ask, and what they may cost."""

import json

import pytest
from json_files import cases
from refusals import refuses

import bert
from model_zoo import pipeline
from model_zoo.inference.server import Settings, build_app

hypothesis = pytest.importorskip('hypothesis')
pydantic_core = pytest.importorskip('pydantic_core')
pytest.importorskip('fastapi')

from hostile import damaged_json, quick  # noqa: E402
from serving import Client  # noqa: E402

PAIR = {'text': 'the cat', 'text_pair': 'sleeps'}
QUESTION = {'question': 'where ?', 'context': 'in paris . ' * 20}
TWO = ['sleeps', 'a film']
#: task -> the head of its model, its labels, and right inputs
TASKS = {
    'text-classification': ('SequenceClassification', ['contradiction', 'entailment'], 'the cat'),
    'token-classification': ('TokenClassification', ['O', 'B-X', 'I-X'], 'cat ' * 40),
    'question-answering': ('QuestionAnswering', None, QUESTION),
    'fill-mask': ('MaskedLM', None, 'the [MASK] [MASK]'),
    'feature-extraction': ('', None, 'the cat'),
    'multiple-choice': ('MultipleChoice', None, {'text': 'the cat', 'choices': TWO}),
    'next-sentence': ('NextSentencePrediction', None, PAIR),
    'rerank': ('SequenceClassification', ['relevance'], {'query': 'the cat', 'documents': TWO}),
    'text-generation': (None, None, 'The model'),
}
LIMITS = {'max_rows': 300, 'max_tokens': 4000, 'max_answer': 2**18, 'max_sequences': 4}


@pytest.fixture(scope='module')
def requests(saved, writer_folder):
    models = {}
    for task, (head, labels, _) in TASKS.items():
        kind = f'BertFor{head}' if head else 'BertModel'
        folder = writer_folder if head is None else saved(getattr(bert, kind), labels)
        models[task] = pipeline(task, folder)
    made = Client(build_app(models, Settings(**LIMITS, max_new_tokens=60)))
    yield made
    made.models.close()


#: requests that are answered
RIGHT = [
    *((f'/models/{task}', {'inputs': inputs}) for task, (*_, inputs) in TASKS.items()),
    ('/models/text-classification', {'inputs': [PAIR], 'parameters': {'top_k': 2}}),
    ('/models/text-classification', {'inputs': 'a', 'parameters': {'candidate_labels': ['b']}}),
    ('/models/text-generation', {'inputs': ['a'], 'parameters': {'max_new_tokens': 2, 'top_k': 3}}),
    ('/models/text-generation', {'inputs': 'a', 'stream': True}),
    ('/v1/embeddings', {'model': 'feature-extraction', 'input': ['a', 'b']}),
    ('/v1/completions', {'model': 'text-generation', 'prompt': 'a', 'max_tokens': 2}),
    ('/page/map', {'model': 'feature-extraction', 'texts': ['a', 'b', 'the cat']}),
    ('/page/attentions', {'model': 'fill-mask', 'text': 'a', 'text_pair': 'b'}),
]


@quick(200)
@hypothesis.given(data=hypothesis.strategies.data())
def test_no_request_makes_the_server_fail(requests, data):
    path, body = data.draw(hypothesis.strategies.sampled_from(RIGHT))
    content = data.draw(damaged_json(json.dumps(body).encode()))
    status, answer = requests.ask(path, content)
    assert status in (200, 400, 404, 413), (status, path, content[:2000], answer[:500])
    if status != 200:
        assert b'"error"' in answer and len(answer) < 8000


CAT = {'question': 'where ?', 'context': 'cat ' * 400}


COSTLY = [
    ('text-classification', ['a'] * 31, {'candidate_labels': ['b'] * 10}, 'max_rows'),
    ('text-classification', 'a ' * 900, {'candidate_labels': ['b'] * 250}, 'max_tokens'),
    ('feature-extraction', ['cat ' * 99] * 40, {}, 'max_answer'),
    ('fill-mask', '[MASK]' * 20, {'top_k': 40}, None),
    ('fill-mask', ['[MASK]' * 20 + 'a ' * 300] * 2, {'top_k': 40}, 'max_answer'),
    ('question-answering', CAT, {'doc_stride': 17, 'max_seq_len': 24}, 'max_tokens'),
    ('question-answering', CAT, {'top_k': 1000}, 'max_answer'),
    ('token-classification', 'cat ' * 400, {'stride': 21}, 'max_rows'),
    ('rerank', {'query': 'a', 'documents': ['b'] * 301}, {}, 'max_rows'),
    ('multiple-choice', [{'text': 'a', 'choices': ['b'] * 9}] * 34, {}, 'max_rows'),
    ('text-classification', 'x' * 2000, {'candidate_labels': ['y ' * 16_500] * 250}, 'max_body'),
    ('text-generation', ['a'] * 5, {}, 'max_sequences'),
    ('text-generation', 'a ' * 900, {}, None),
    ('text-generation', 'a ' * 20_000, {}, 'max_tokens'),
]


@pytest.mark.parametrize('name, inputs, parameters, message', COSTLY)
def test_what_would_cost_too_much_is_refused_before_it_runs(
    requests, monkeypatch, name, inputs, parameters, message
):
    """The answer says which of the server's limits it is."""
    body = {'inputs': inputs, 'parameters': parameters}
    served = requests.app.state.models.get(name)
    if message is not None:
        monkeypatch.setattr(served.pipeline, 'run_batch', None)
    status, answer = requests.ask(f'/models/{name}', body)
    assert status == (200 if message is None else 413), answer
    assert message is None or f'`{message}`' in json.loads(answer)['error']


def test_a_template_is_no_format(requests):
    """It has the label where its braces are, and is otherwise a text like any other."""
    served = requests.app.state.models.get('text-classification')
    pipeline = served.pipelines['zero-shot-classification']
    options = {'candidate_labels': ['a{}b'], 'hypothesis_template': '{:300000000} {} {0} {}'}
    assert pipeline('the cat', **options)['labels'] == ['a{}b']
    with refuses(says='candidate_labels'):
        pipeline('the cat', candidate_labels='a', hypothesis_template='{:300000000}')


def test_openapi_tells_what_is_taken(requests):
    """Fields and options with their types and bounds."""

    def schema(path):
        content = requests.app.openapi()['paths'][path]['post']['requestBody']['content']
        return content['application/json']['schema']

    options = schema('/models/{name}')['properties']['parameters']['anyOf']
    options = {each['title']: each['properties'] for each in options}
    assert options['question-answering']['top_k']['anyOf'][0]['maximum'] == 1000
    poolings = options['feature-extraction']['pooling']['anyOf'][0]['enum']
    assert poolings == ['mean', 'cls', 'max', 'model', 'none']
    assert options['Writing']['temperature']['maximum'] == 1e6
    assert schema('/v1/completions')['required'] == ['model', 'prompt']


TEXT = {'model': 'text-generation', 'prompt': 'a'}
CLASSIFIER, WRITER = '/models/text-classification', '/models/text-generation'
DEEP = b'[' * 4000 + b']' * 4000
#: path, body (JSON, or bytes as they are), status
DOOR = [
    *cases('server_requests')['DOOR'],
    (CLASSIFIER, {'inputs': ['a'] * 301}, 413),
    (CLASSIFIER, {'inputs': 'a', 'parameters': {'top_k': 10**400}}, 400),
    (CLASSIFIER, {'inputs': ' a', 'parameters': {'\ud800': 1}}, 400),
    *((CLASSIFIER, body, 400) for body in (b'', b'{"inputs": ', b'\xff\xfe')),
    (CLASSIFIER, b'{"inputs": "\\ud800"}', 400),
    (CLASSIFIER, b'{"inputs": ' + DEEP + b'}', 400),
    (CLASSIFIER, b'{"inputs": "a", "parameters": {"top_k": NaN}}', 400),
    (WRITER, {'inputs': 'a', 'parameters': {'temperature': 10**400}}, 400),
    *(
        ('/page/map', {'model': 'feature-extraction', 'texts': ['a'] * count}, status)
        for count, status in ((200, 200), (201, 400))
    ),
]


@pytest.mark.parametrize('path, body, status', DOOR)
def test_at_the_door(requests, path, body, status):
    found, answer = requests.ask(path, body)
    assert found == status, answer
    if status != 200:
        error = json.loads(answer)['error']
        message = error['message'] if path.startswith('/v1/') else error
        assert isinstance(message, str) and message and '\n' not in message
        assert len(answer) < 4000


#: fields that this server doesn't use, and the values that it takes
UNUSED = {
    WRITER: {'best_of': 1, 'frequency_penalty': 0, 'top_n_tokens': 0, 'typical_p': 1},
    '/v1/completions': {'best_of': 1, 'frequency_penalty': 0, 'presence_penalty': 0},
}


@pytest.mark.parametrize('path', UNUSED)
def test_fields_without_an_effect(requests, path):
    body = {'inputs': 'a'} if path == WRITER else TEXT
    for name, value in UNUSED[path].items():
        statuses = [requests.ask(path, {**body, name: each})[0] for each in (value, value + 1)]
        assert statuses == [200, 400], name


def test_completions_are_drawn_unless_a_request_says_otherwise(requests):
    """As OpenAI's: from all tokens, and 16 of them."""
    status, answer = requests.ask('/v1/completions', {**TEXT, 'seed': 3})
    options = {'do_sample': True, 'top_k': 0, 'max_new_tokens': 16, 'return_full_text': False}
    (wanted,) = requests.models.get('text-generation').pipeline('a', seed=3, **options)
    assert json.loads(answer)['choices'][0]['text'] == wanted['generated_text'] and status == 200


@pytest.mark.parametrize('body', [b'{"text": "x"}', b'text=x'])
def test_the_answer_to_a_wrong_body_shows_a_right_one(requests, body):
    _, answer = requests.ask(CLASSIFIER, body)
    assert '{"inputs": "' in json.loads(answer)['error']
