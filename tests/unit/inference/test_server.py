"""The server in this process: payloads, batches, limits, errors."""

import concurrent.futures
import json
import time

import numpy as np
import pytest
from arrays import assert_close, stored
from json_files import cases
from refusals import refuses
from script_runs import wait_until
from serving import Client

import model_zoo
from bert import BertForSequenceClassification, BertModel
from model_zoo.errors import MissingExtraError
from model_zoo.inference.server import Settings, bind, build_app, name_models, read_key

httpx = pytest.importorskip('httpx')
pytest.importorskip('fastapi')

TEXTS = ['the cat sleeps in paris .', 'a', 'good film .', 'the dog', 'bad ' * 15]


@pytest.fixture(scope='module')
def client(pipelines):
    client = Client(build_app(pipelines))
    yield client
    client.models.close()


@pytest.fixture
def small(pipelines):
    """A function that makes a client of one model with settings."""
    clients = []

    def make(name='sentiment', **settings):
        clients.append(Client(build_app({name: pipelines[name]}, Settings(**settings))))
        return clients[-1]

    yield make
    for each in clients:
        each.models.close()


def error_of(answer, status):
    """The line of an error."""
    assert answer.status_code == status, answer.text
    message = answer.json()['error']
    assert isinstance(message, str) and '\n' not in message
    return message


CASES = cases('inference')['CASES']


@pytest.mark.parametrize('name, inputs, options', CASES)
def test_every_task_gives_what_its_pipeline_gives(client, pipelines, name, inputs, options):
    wanted = pipelines[name](inputs, **options)
    if name == 'sentiment' and isinstance(inputs, dict):
        wanted = [wanted]  # as Hugging Face's services nest it
    found = client.infer(name, inputs, parameters=options)
    assert_close(found, json.loads(json.dumps(wanted)))


def test_what_a_model_does_besides(client, pipelines, saved):
    item = {'source_sentence': TEXTS[0], 'sentences': TEXTS[1:]}
    similarity = model_zoo.pipeline('sentence-similarity', saved(BertModel))
    assert_close(client.infer('owner/vectors', item), similarity(item))
    found = client.infer('nli', 'the cat', parameters={'candidate_labels': ['good', 'bad']})
    assert {each['label'] for each in found} == {'good', 'bad'}
    path = '/models/owner/vectors/pipeline/sentence-similarity'
    assert_close(client.post(path, {'inputs': item}).json(), similarity(item))
    answer = client.post('/models/owner/vectors/pipeline/fill-mask', {'inputs': 'a'})
    assert 'feature-extraction and sentence-similarity, not fill-mask' in error_of(answer, 400)


def test_options_of_hugging_faces_vectors_are_no_other_tasks(client):
    options = {'truncate': True, 'return_tensors': True}
    found = client.infer('owner/vectors', 'the cat', parameters=options)
    assert found == client.infer('owner/vectors', 'the cat')
    answer = client.post('/models/nli', {'inputs': 'the cat', 'parameters': {'truncate': True}})
    assert 'truncate' in error_of(answer, 400)


BLANK = [
    *(('sentiment', text) for text in ('', ' \n', ['the cat', ''], {'text': ''})),
    ('nli', {'text': ' ', 'text_pair': 'a dog'}),
    ('choice', {'text': '', 'choices': ['a', 'the']}),
    ('squad', {'question': 'where ?', 'context': ' '}),
]


@pytest.mark.parametrize('name, inputs', BLANK)
def test_a_blank_text_is_refused_or_has_no_answer(client, name, inputs):
    assert 'blank' in error_of(client.post(f'/models/{name}', {'inputs': inputs}), 400)
    assert client.infer('tagger', ' ') == []


def test_vectors_of_a_model_of_sentence_transformers(fixtures):
    folder = fixtures / 'sentence_transformers'
    texts = json.loads((folder / 'sentences.json').read_text())
    vectors = stored(folder / 'expected.npz')
    expected = vectors['joined']
    client = Client(build_app({'joined': model_zoo.pipeline(str(folder / 'joined'))}))
    units = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    item = {'source_sentence': texts[0], 'sentences': texts[1:]}
    np.testing.assert_allclose(client.infer('joined', item), units[1:] @ units[0], atol=1e-5)
    # as text-embeddings-inference answers, and as the hub's client asks
    np.testing.assert_allclose(client.infer('joined', texts[0]), expected[:1], atol=1e-5)
    found = client.infer('joined', texts, dimensions=2, normalize=True, encoding_format='float')
    cut = expected[:, :2] / np.linalg.norm(expected[:, :2], axis=1, keepdims=True)
    np.testing.assert_allclose(found, cut, atol=1e-5)
    body = {'model': 'joined', 'input': texts, 'dimensions': 2}
    found = client.post('/v1/embeddings', body).json()['data']
    np.testing.assert_allclose([each['embedding'] for each in found], cut, atol=1e-5)
    found = client.infer('joined', texts, prompt_name='query')
    np.testing.assert_allclose(found, vectors['joined query'], atol=1e-5)
    assert np.ndim(client.infer('joined', 'the dog', parameters={'pooling': 'none'})) == 3


def test_texts_that_are_too_long_and_token_ids(small, pipelines):
    client = small('owner/vectors')
    pipeline, text = pipelines['owner/vectors'], 'the dog ' + 'a cat ' * 11  # 24 pieces, and 2
    options = {'pooling': 'mean', 'truncation_direction': 'left'}
    wanted = pipeline('a cat ' * 11, pooling='mean')
    assert client.infer('owner/vectors', text, **options) == pytest.approx(wanted, abs=1e-6)
    answer = client.post('/models/owner/vectors', {'inputs': text, 'truncate': False})
    assert 'truncate' in error_of(answer, 400)
    ids = pipeline.tokenizer.encode('the dog').input_ids.tolist()
    for given in ('the dog', ids, ids[1:-1], [ids]):
        found = client.post('/v1/embeddings', {'model': 'owner/vectors', 'input': given}).json()
        wanted = pipeline('the dog', pooling='mean', normalize=True)
        assert found['data'][0]['embedding'] == pytest.approx(wanted, abs=1e-6)
        assert found['usage']['prompt_tokens'] == len(ids)
    count = len(pipeline.tokenizer)
    bodies = ({'model': 'owner/vectors', 'input': [number]} for number in (count - 1, count))
    assert [client.post('/v1/embeddings', body).status_code for body in bodies] == [200, 400]
    client.models.close()


def test_a_classifier_whose_labels_are_no_entailment_is_not_offered_for_zero_shot(client, saved):
    tasks = {each['id']: each['tasks'] for each in client.get('/v1/models').json()['data']}
    assert tasks['sentiment'] == ['text-classification']
    assert 'zero-shot-classification' in tasks['nli']
    folder = saved(BertForSequenceClassification, ['bad', 'good'])
    with refuses(says='entailment'):
        model_zoo.pipeline('zero-shot-classification', folder)


def test_models_and_health(client, pipelines):
    assert client.get('/health').json() == {'status': 'ok', 'models': list(pipelines)}
    data = client.get('/v1/models').json()['data']
    assert [each['id'] for each in data] == list(pipelines)
    assert data[0]['task'] == 'text-classification' and data[0]['labels'] == ['bad', 'good']
    assert client.get('/v1/models/squad').json()['task'] == 'question-answering'
    assert client.get('/v1/models/no').json()['error']['type'] == 'not_found_error'
    paths = client.get('/openapi.json').json()['paths']
    assert '/models/{name}' in paths and '/health' in paths


def test_requests_share_batches(small, pipelines, monkeypatch):
    """What waits while the model runs is one batch, and each gets its own results."""
    client, pipeline = small(), pipelines['sentiment']
    shapes, run = [], pipeline.engine.run

    def watched(words, *others):
        shapes.append(words.shape)
        return run(words, *others)

    monkeypatch.setattr(pipeline.engine, 'run', watched)
    texts = [' '.join(['cat'] * (n % 5 + 1)) for n in range(40)]
    requests = [('POST', '/models/sentiment', {'json': {'inputs': text}}) for text in texts]
    with pipeline.engine.lock:
        waiting = in_background(lambda: client.gather(*requests))
        wait_until(lambda: client.models.get('sentiment').worker.count == len(texts))
    answers = waiting.result()
    assert len(shapes) < 10 and max(rows for rows, _ in shapes) > 4
    monkeypatch.undo()
    for text, answer in zip(texts, answers):
        assert_close(answer.json()[0], pipeline(text, top_k=None))
    text = client.get('/metrics').text
    assert 'zoo_requests_total{route="/models/{name:path}",status="200"} 40.0' in text
    assert f'zoo_batch_rows_count{{model="sentiment"}} {len(shapes)}.0' in text
    assert 'zoo_queue{model="sentiment"} 0.0' in text
    assert 'zoo_wait_seconds_count{model="sentiment"} 40.0' in text


def in_background(function):
    """The future of a function that is called in a thread."""
    return concurrent.futures.ThreadPoolExecutor(1).submit(function)


def test_a_full_queue(small, pipelines):
    client = small(queue_size=3)
    request = ('POST', '/models/sentiment', {'json': {'inputs': 'a'}})
    with pipelines['sentiment'].engine.lock:
        waiting = in_background(lambda: client.gather(*[request] * 3))
        wait_until(lambda: client.models.get('sentiment').worker.count == 3)
        answer = client.post('/models/sentiment', {'inputs': 'a'})
        assert 'is full' in error_of(answer, 429) and int(answer.headers['retry-after']) >= 1
    assert [each.status_code for each in waiting.result()] == [200] * 3
    assert client.infer('sentiment', 'a')


def test_a_request_that_takes_too_long(small, pipelines):
    client = small(timeout=0.2)
    with pipelines['sentiment'].engine.lock:
        assert '0.2 seconds' in error_of(client.post('/models/sentiment', {'inputs': 'a'}), 504)
    wait_until(lambda: client.models.get('sentiment').worker.count == 0)
    # on a busy machine an answer may take longer than that, too
    wait_until(lambda: client.post('/models/sentiment', {'inputs': 'a'}).status_code == 200)


def test_the_api_key(small):
    client = small(api_key='secret')
    assert client.get('/health').status_code == 200
    for headers in ({}, {'Authorization': 'Bearer wrong'}, {'X-API-Key': ''}):
        answer = client.post('/models/sentiment', {'inputs': 'a'}, headers=headers)
        assert 'API key' in error_of(answer, 401)
    for key in ('secret', 'geh\u00e9im'):
        client = small(api_key=key)
        for headers in ({'Authorization': f'Bearer {key}'}, {'X-API-Key': key}):
            headers = {name: value.encode() for name, value in headers.items()}
            answer = client.post('/models/sentiment', {'inputs': 'a'}, headers=headers)
            assert answer.status_code == 200


def test_requests_have_an_id_in_the_log_and_the_answer(small, caplog):
    client = small()
    with caplog.at_level('INFO', 'model_zoo.access'):
        for given in ('from-a-proxy.7', 'two words', None):
            headers = {'X-Request-Id': given} if given else {}
            answer = client.get('/v1/models', headers=headers)
            number = answer.headers['x-request-id']
            assert (number == given) == (given == 'from-a-proxy.7')
            [line] = [r.getMessage() for r in caplog.records if r.name == 'model_zoo.access']
            assert number in line and "'/v1/models' 200" in line
            caplog.clear()


def test_a_model_that_fails(small, pipelines, monkeypatch, caplog):
    """It is logged once."""
    client = small()
    with monkeypatch.context() as patched:
        patched.setattr(pipelines['sentiment'].engine, 'run', lambda *_: 1 / 0)
        answer = client.post('/models/sentiment', {'inputs': 'a'})
        assert error_of(answer, 500) == 'the server failed: ZeroDivisionError'
    assert caplog.text.count('Traceback') == 1 and len(caplog.text) < 4000
    assert client.infer('sentiment', 'a')


def test_further_models_are_opened_while_the_first_answers(pipelines):
    def fail():
        raise OSError('no space left')

    later = {'other': lambda: pipelines['sentiment'], 'broken': fail}
    client = Client(build_app({'sentiment': pipelines['sentiment']}, later=later))
    request = {'inputs': 'a'}
    assert 'being opened' in error_of(client.post('/models/other', request), 503)
    assert client.get('/health').json()['status'] == 'ok'
    states = {'sentiment': 'ready', 'other': 'loading', 'broken': 'loading'}
    assert client.get('/ready').json() == {'status': 'loading', 'models': states}
    client.models.open_later()
    assert client.infer('other', 'a') == client.infer('sentiment', 'a')
    assert 'no space left' not in error_of(client.post('/models/broken', request), 503)
    answer, states = client.get('/ready'), {**states, 'other': 'ready', 'broken': 'failed'}
    assert (answer.status_code, answer.json()['models']) == (503, states)
    client.models.close()


def test_closing_answers_what_is_accepted(small, pipelines):
    client = small()
    request = ('POST', '/models/sentiment', {'json': {'inputs': 'a'}})
    worker = client.models.get('sentiment').worker
    with pipelines['sentiment'].engine.lock:
        waiting = in_background(lambda: client.gather(*[request] * 5))
        wait_until(lambda: worker.count == 5)
        closing = in_background(client.models.close)
        time.sleep(0.1)
        assert not closing.done()
    assert [each.status_code for each in waiting.result()] == [200] * 5
    closing.result()
    assert 'shutting down' in error_of(client.post('/models/sentiment', {'inputs': 'a'}), 503)


def events_of(answer):
    """The contents of server-sent events."""
    assert answer.headers['content-type'].startswith('text/event-stream')
    return [json.loads(part[5:]) for part in answer.text.split('\n\n') if part]


def test_text_that_streams(client, pipelines):
    wanted = pipelines['writer']('The model', max_new_tokens=12)[0]['generated_text']
    options = {'max_new_tokens': 12, 'return_full_text': True}
    content = {'inputs': 'The model', 'parameters': options, 'stream': True}
    events = events_of(client.post('/models/writer', content))
    assert len(events) == events[-1]['details']['generated_tokens'] <= 12
    assert 'The model' + ''.join(each['token']['text'] for each in events) == wanted
    assert events[-1]['generated_text'] == wanted
    answer = client.post('/models/writer', {**content, 'parameters': {'eos_token_id': 10**6}})
    assert 'vocabulary' in json.loads(answer.text[5:])['error']
    parameters = {'num_beams': 4, 'max_new_tokens': 6, 'return_full_text': True}
    events = events_of(client.post('/models/writer', {**content, 'parameters': parameters}))
    wanted = pipelines['writer']('The model', **parameters)[0]['generated_text']
    assert events[-1]['generated_text'] == wanted


def test_texts_of_several_requests_are_written_together(small, pipelines, monkeypatch):
    """In one batch, where they are chosen alike; each with its own length."""
    client, pipeline = small('writer', max_sequences=16), pipelines['writer']
    counts, step = [], type(pipeline.block).step

    def watched(block, tokens, state):
        counts.append(len(tokens))
        return step(block, tokens, state)

    monkeypatch.setattr(type(pipeline.block), 'step', watched)
    sizes = [3, 5, 8, 12, 4]  # some are taken at once, the rest together: 3 or more of one of these
    bodies = [{'inputs': f'The {n}', 'parameters': {'max_new_tokens': n}} for n in sizes]
    requests = [('POST', '/models/writer', {'json': body}) for body in bodies]
    with pipeline.engine.lock:
        waiting = in_background(lambda: client.gather(*requests))
        wait_until(lambda: client.models.get('writer').worker.count == len(sizes))
    answers = waiting.result()
    assert max(counts) >= 3 and len(counts) < sum(sizes)
    monkeypatch.undo()
    for size, answer in zip(sizes, answers):
        assert answer.json() == pipeline(f'The {size}', max_new_tokens=size)


def test_names_of_models(tmp_path):
    folder = tmp_path / 'sentiment' / 'best_model'
    folder.mkdir(parents=True)
    named = name_models([str(folder), f'second={folder}', 'gpt2'])
    assert named == {'sentiment': str(folder), 'second': str(folder), 'gpt2': 'gpt2'}
    with refuses(says='sentiment'):
        name_models([str(folder), str(folder)])


def test_where_the_key_is(tmp_path, monkeypatch):
    (tmp_path / 'key').write_text('secret\n')
    assert read_key(str(tmp_path / 'key')) == 'secret'
    monkeypatch.setenv('A_KEY', 'other')
    assert read_key('env:A_KEY') == 'other'
    for place in ('env:NO_KEY', str(tmp_path / 'none'), str(tmp_path)):
        with refuses(says=place):
            read_key(place)


def test_a_port_that_is_taken():
    taken = bind('127.0.0.1', 0)
    taken.listen()
    with taken, refuses(says='127.0.0.1'):
        bind('127.0.0.1', taken.getsockname()[1])


def test_the_extra_is_named(pipelines, without):
    without('fastapi')
    with pytest.raises(MissingExtraError):
        build_app(pipelines)
