"""What requests may ask, and what they may cost."""

import json
import os
import threading

import pytest

from model_zoo.errors import InputError

hypothesis = pytest.importorskip('hypothesis')
pytest.importorskip('fastapi')

from odd_requests import OddRequests  # noqa: E402

from model_zoo.inference.server import bodies, huggingface  # noqa: E402


@pytest.fixture(scope='module')
def requests(tmp_path_factory):
    made = OddRequests(tmp_path_factory.mktemp('served'))
    yield made
    made.close()


@hypothesis.settings(
    max_examples=int(os.environ.get('ZOO_REQUESTS', 300)), deadline=None, database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)  # fmt: skip
@hypothesis.given(rng=hypothesis.strategies.randoms(use_true_random=False))
def test_no_request_makes_the_server_fail(requests, rng):
    """Neither what the OpenAPI document allows nor what is beside it."""
    path, data = requests.draw(rng)
    status, answer = requests.ask(path, data)
    assert status in (200, 400, 404, 413), (status, path, data[:2000], answer[:500])
    if status != 200:
        assert b'"error"' in answer and len(answer) < 8000


CAT = {'question': 'where ?', 'context': 'cat ' * 400}


@pytest.mark.parametrize(
    'name, inputs, parameters, message',
    [
        ('text-classification', ['a'] * 31, {'candidate_labels': ['b'] * 10}, 'max_rows'),
        ('text-classification', 'a ' * 900, {'candidate_labels': ['b'] * 250}, 'max_tokens'),
        ('feature-extraction', ['cat ' * 99] * 40, {}, 'max_answer'),
        ('fill-mask', '[MASK]' * 20, {'top_k': 40}, None),
        ('fill-mask', ['[MASK]' * 20 + 'a ' * 300] * 2, {'top_k': 40}, 'max_answer'),
        ('question-answering', CAT, {'doc_stride': 17, 'max_seq_len': 24}, 'max_tokens'),
        ('question-answering', CAT, {'top_k': 1000}, 'max_answer'),
        ('token-classification', 'cat ' * 400, {'stride': 21}, 'max_rows'),
        ('rerank', {'query': 'a', 'documents': ['b'] * 301}, {}, 'max_texts'),
        ('multiple-choice', [{'text': 'a', 'choices': ['b'] * 9}] * 5, {}, 'max_texts'),
        ('text-generation', ['a'] * 5, {}, 'max_sequences'),
        ('text-generation', 'a ' * 900, {}, None),
    ],
)
def test_what_would_cost_too_much_is_refused_before_it_runs(
    requests, monkeypatch, name, inputs, parameters, message
):
    """The answer says which of the server's limits it is."""
    body = {'inputs': inputs, 'parameters': parameters}
    served = requests.app.state.service.models.get(name)
    if message is not None:
        monkeypatch.setattr(served.pipeline, 'run_batch', None)
    status, answer = requests.ask_json(f'/models/{name}', body)
    assert status == (200 if message is None else 413), answer
    assert message is None or f'`{message}`' in json.loads(answer)['error']


def test_characters_of_texts_with_each_label_are_bounded(requests):
    body = {'inputs': 'x' * 2000, 'parameters': {'candidate_labels': ['y' * 33_000] * 250}}
    status, answer = requests.ask_json('/models/text-classification', body)
    assert status == 413 and b'`max_body`' in answer


def test_a_template_is_no_format(requests):
    """It has the label where its braces are, and is otherwise a text like any other."""
    pipeline = requests.app.state.service.models.get('text-classification').pipelines[
        'zero-shot-classification'
    ]
    options = pipeline._options(['a{}b'], '{:300000000} {} {0} {}')
    pairs = pipeline._pairs('the cat', options)
    assert list(pairs) == [('the cat', '{:300000000} a{}b {0} a{}b')]
    with pytest.raises(InputError, match='hypothesis_template'):
        pipeline('the cat', candidate_labels='a', hypothesis_template='{:300000000}')


def test_the_event_loop_only_waits(requests, monkeypatch):
    """Texts are read, prepared and written as JSON in other threads, small ones too."""
    seen = {}

    def watch(thing, name):
        function = getattr(thing, name)

        def watched(*args, **options):
            seen[name] = threading.current_thread().name
            return function(*args, **options)

        monkeypatch.setattr(thing, name, watched)

    served = requests.app.state.service.models.get('feature-extraction')
    watch(served.pipeline, 'prepare')
    watch(served.pipeline, 'finish')
    watch(huggingface, 'to_json')
    watch(bodies.pydantic_core, 'from_json')
    status, _ = requests.ask('/models/feature-extraction', b'{"inputs": "the cat"}')
    assert status == 200
    assert set(seen) == {'prepare', 'finish', 'to_json', 'from_json'}
    assert all(name.startswith('request') for name in seen.values())


def test_openapi_tells_what_is_taken(requests):
    """Fields and options with their types and bounds."""
    def schema(path):
        content = requests.app.openapi()['paths'][path]['post']['requestBody']['content']
        return content['application/json']['schema']

    options = schema('/models/{name}')['properties']['parameters']['anyOf']
    options = {each['title']: each['properties'] for each in options}
    assert options['question-answering']['top_k']['maximum'] == 1000
    assert options['feature-extraction']['pooling']['enum'] == ['mean', 'cls', 'max', 'model']
    assert options['Writing']['temperature']['maximum'] == 1e6
    assert schema('/v1/completions')['required'] == ['model', 'prompt']


@pytest.mark.parametrize(
    'path, body, message',
    [
        ('/models/text-classification', {'inputs': 'a', 'topk': 1}, 'did you mean top_k?'),
        ('/models/text-generation', {'inputs': 'a', 'temprature': 1}, 'did you mean temperature?'),
        ('/models/text-generation', {'inputs': 'a', 'temperature': 10**400}, 'temperature'),
        ('/v1/completions', {'model': 'x', 'prompt': 'a', 'max_token': 1}, 'mean max_tokens?'),
        ('/v1/completions', {'model': 'x', 'prompt': 'a', 'temperature': 10**400}, 'temperature'),
    ],
)
def test_names_and_numbers_that_are_not_known(requests, path, body, message):
    status, answer = requests.ask_json(path, body)
    answer = json.loads(answer)['error']
    assert status == 400 and message in (answer if isinstance(answer, str) else answer['message'])
