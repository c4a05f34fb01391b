"""The server on Ray: a replica that is killed loses no request."""

import asyncio
import contextlib
import json
import sys
from types import SimpleNamespace

import pytest
from ray_alone import ROOT, run_alone
from script_runs import load_script, refusal

import model_zoo
from bert import BertForSequenceClassification
from model_zoo.errors import InputError, MissingExtraError
from model_zoo.inference.server import Settings, build_app, serve_on_ray
from model_zoo.inference.server.app import Gate, Metrics
from model_zoo.inference.server.cluster import ATTEMPTS, Ingress, Replica, _run

httpx = pytest.importorskip('httpx')
ray_exceptions = pytest.importorskip('ray.exceptions')
serve_exceptions = pytest.importorskip('ray.serve.exceptions')

STREAM = {'model': 'writer', 'prompt': 'the cat', 'max_tokens': 8, 'stream': True,
          'temperature': 0}  # fmt: skip


@pytest.fixture(scope='module')
def folders(saved, writer_folder):
    return {
        'sentiment': saved(BertForSequenceClassification, ['bad', 'good']),
        'writer': writer_folder,
    }


@pytest.fixture(scope='module')
def replica(folders):
    """A replica in this process."""
    models = {name: model_zoo.pipeline(folder) for name, folder in folders.items()}
    app = build_app(models)
    yield Replica(lambda: contextlib.nullcontext(app))
    app.state.service.models.close()


class Parts:
    """What a handle of Ray gives for a call; raises the error after some parts."""

    def __init__(self, parts, error, after):
        self._parts, self._error, self._left = parts, error, after

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self._error is not None and self._left == 0:
            raise self._error
        self._left -= 1
        return await self._parts.__anext__()

    def cancel(self):
        pass


class Handle:
    """Stands for Ray's handle of a deployment: its first calls fail."""

    def __init__(self, replica, errors=(), after=0):
        self.replica, self.errors, self.after = replica, list(errors), after
        self.respond, self.asked = self, 0

    def options(self, stream):
        assert stream
        return self

    def remote(self, scope, body):
        self.asked += 1
        error = self.errors.pop(0) if self.errors else None
        return Parts(self.replica.respond(scope, body), error, self.after)


def ask(handle, method, path, settings=None, **options):
    """The answer of the ingress before a handle, and its counters."""
    settings, metrics = settings or Settings(), Metrics()
    app = Gate(Ingress(handle, settings, metrics), settings, metrics)

    async def answer():
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url='http://test', timeout=300
        ) as client:
            return await client.request(method, path, **options)

    return asyncio.run(answer()), metrics.text()[0].decode()


def classify(handle, **options):
    return ask(handle, 'POST', '/models/sentiment', json={'inputs': 'a good film .'}, **options)


def deaths(count):
    return [ray_exceptions.ActorDiedError() for _ in range(count)]


def test_answers_are_those_of_the_application(replica):
    answer, counters = classify(Handle(replica))
    assert answer.status_code == 200
    assert {each['label'] for each in answer.json()[0]} == {'bad', 'good'}
    assert 'zoo_requests_total{route="/models/{name:path}",status="200"} 1.0' in counters
    for path, status in (('/models/other', 404), ('/nowhere', 404), ('/v1/models', 405)):
        answer, _ = ask(Handle(replica), 'POST', path, json={'inputs': 'a'})
        assert (answer.status_code, 'error' in answer.json()) == (status, True)
    page, _ = ask(Handle(replica), 'GET', '/')
    assert page.headers['content-type'].startswith('text/html') and '</html>' in page.text
    assert ask(Handle(replica), 'GET', '/health')[0].json()['models'] == ['sentiment', 'writer']
    assert 'zoo_requests' in ask(Handle(replica), 'GET', '/metrics')[0].text


def test_a_request_outlives_replicas_but_not_all_of_them(replica):
    handle = Handle(replica, deaths(ATTEMPTS - 1))
    answer, _ = classify(handle)
    assert (answer.status_code, handle.asked) == (200, ATTEMPTS)
    handle = Handle(replica, deaths(ATTEMPTS))
    answer, _ = classify(handle)
    assert (answer.status_code, handle.asked) == (503, ATTEMPTS)
    assert answer.json() == {
        'error': f'{ATTEMPTS} replicas died, one after the other, with this request'
    }


def test_a_stream_that_has_begun_ends_with_an_error(replica):
    whole, _ = ask(Handle(replica, deaths(1)), 'POST', '/v1/completions', json=STREAM)
    assert whole.text.endswith('data: [DONE]\n\n')  # it hadn't begun when the replica died
    broken, _ = ask(Handle(replica, deaths(1), after=3), 'POST', '/v1/completions', json=STREAM)
    events = broken.text.split('\n\n')
    texts = [json.loads(event[6:])['choices'][0]['text'] for event in events[:3]]
    first = whole.text.split('\n\n')[:3]
    assert texts == [json.loads(event[6:])['choices'][0]['text'] for event in first]
    assert json.loads(events[3][6:])['error']['message'] == (
        'the replica that wrote this has died: ask again'
    )
    assert events[4:] == ['']


@pytest.mark.parametrize(
    'error, status, told',
    [
        (serve_exceptions.BackPressureError(1, 1), 429, 'all replicas are busy: try again later'),
        (serve_exceptions.DeploymentUnavailableError(None), 503, 'no replica runs'),
        (ZeroDivisionError(), 500, 'the server failed: ZeroDivisionError'),
    ],
)
def test_errors_of_the_cluster_have_their_status(replica, error, status, told):
    answer, _ = classify(Handle(replica, [error]))
    assert (answer.status_code, answer.json()) == (status, {'error': told})
    assert ('Retry-After' in answer.headers) == (status == 429)


def test_the_ingress_has_the_limits(replica):
    answer, counters = classify(Handle(replica), settings=Settings(api_key='secret'))
    assert answer.status_code == 401
    long = {'inputs': 'a ' * 100}

    async def parts():  # a body that doesn't tell its length
        yield json.dumps(long).encode()

    for options in ({'json': long}, {'content': parts()}):
        answer, _ = ask(
            Handle(replica), 'POST', '/models/sentiment', Settings(max_body=100), **options
        )
        assert answer.status_code == 413

    class Slow:
        async def respond(self, scope, body):
            await asyncio.sleep(1000)
            yield

    answer, _ = classify(Handle(Slow()), settings=Settings(timeout=0.1))
    assert (answer.status_code, answer.json()) == (504, {'error': 'no answer within 0.1 seconds'})


def test_a_replica_whose_model_has_died_is_ill(replica, folders):
    assert replica.check_health() is None
    app = build_app({'sentiment': model_zoo.pipeline(folders['sentiment'])})
    app.state.service.models.close()
    with pytest.raises(model_zoo.errors.ZooError, match='models have died: sentiment'):
        Replica(lambda: contextlib.nullcontext(app)).check_health()


def test_flags_of_replicas(capsys, folders, monkeypatch):
    serve = load_script('serve')
    assert refusal(capsys, serve, folders['sentiment'], '--min_replicas', 2) == (
        'error: --min_replicas needs --ray'
    )
    with pytest.raises(InputError, match='3 to 2 replicas are wanted'):
        serve_on_ray(None, None, Settings(), (3, 2))
    with pytest.raises(InputError, match='a server runs on a machine of the cluster'):
        serve_on_ray(None, None, Settings(), address='ray://127.0.0.1:10001')
    monkeypatch.setitem(sys.modules, 'ray', None)
    with pytest.raises(MissingExtraError, match='ray'):
        serve_on_ray(None, None, Settings())


def test_what_keeps_replicas_from_starting():
    """One line: the last one of what Ray has noted of them."""
    noted = 'failed 3 times. Error:\nTraceback\nmodel_zoo.errors.CheckpointError: no weights'
    status = SimpleNamespace(deployments={'Replica': SimpleNamespace(message=noted + '\n')})

    def run(application, name, route_prefix):
        raise RuntimeError('Deploying failed')

    for known, said in (({'zoo': status}, 'no weights'), ({}, 'Deploying failed')):
        found = SimpleNamespace(applications=known)
        with pytest.raises(InputError, match=f'^no replica can be started: {said}$'):
            _run(SimpleNamespace(run=run, status=lambda found=found: found), None, 'zoo')


@pytest.mark.slow
def test_no_request_is_lost_when_a_replica_is_killed(folders):
    told = run_alone(ROOT / 'tests' / 'ray_load.py', *folders.values(), seconds=1200)
    assert list(told['statuses']) == ['200']  # of all requests, with the right labels
    assert told['statuses']['200'] > told['before_the_kill'] > 100
    # of the streams, those of the killed replica end with an error, the others go on
    errors = [end for end in told['ends'] if 'the replica that wrote this has died' in end]
    assert errors, told['ends']
    others = [end.strip() for end in told['ends'] if end not in errors]
    assert all('"choices"' in end or end == '[DONE]' for end in others), told['ends']
    assert told['exit_code'] == 0
    # all of Ray listens on 127.0.0.1, but for a port of each replica that asks for a token
    anywhere = [told['listening'].pop(each, 0) for each in ('0' * 32, '0' * 8)]
    assert sum(anywhere) <= 2
    assert set(told['listening']) == {'0100007F', '0' * 16 + 'FFFF00000100007F'}


@pytest.mark.slow
def test_a_cluster_that_was_started_outside(folders):
    """A replica is killed, then the server; another server takes its place, and leaves nothing."""
    told = run_alone(ROOT / 'tests' / 'ray_serve.py', folders['sentiment'], seconds=1800)
    for status, answer in [told['first'], *told['after_the_kill'], told['second_server']]:
        assert status == 200 and {each['label'] for each in answer[0]} == {'bad', 'good'}
    assert told['exit_code'] == 0 and told['is_cluster_alive']
    status, lines = told['refusal']
    errors = [line for line in lines if line.startswith('error: ')]
    assert status == 1 and len(errors) == 1 and not any('cli.run' in line for line in lines)
    assert errors[0].startswith('error: no replica can be started: ')
