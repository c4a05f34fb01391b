"""Folders of models that are replaced while clients ask, read streams, and leave."""

import concurrent.futures
import json
import os
import pathlib
import shutil
import threading

import pytest
from script_runs import wait_until
from tiny_models import save_bert, save_gpt2

import model_zoo
from bert import BertForSequenceClassification
from model_zoo.inference.server import Reloader, build_app, worker

httpx = pytest.importorskip('httpx')
pytest.importorskip('fastapi')

LABELS = [['bad', 'good'], ['no', 'yes', 'both'], ['one'], ['a', 'b', 'c', 'd']]
CLIENTS = 4
WRITING = {'max_new_tokens': 12, 'return_full_text': False}


@pytest.fixture(scope='module')
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp('models')
    return {
        'sentiment': save_bert(root / 'sentiment', BertForSequenceClassification, LABELS[0]),
        'writer': save_gpt2(root / 'writer'),
    }


@pytest.fixture(scope='module')
def app(folders):
    made = build_app({name: model_zoo.pipeline(folder) for name, folder in folders.items()})
    models = made.state.service.models
    with Reloader(models, folders, model_zoo.pipeline, interval=0.05):
        yield made
    models.close()


@pytest.fixture
def client(served_at):
    with httpx.Client(base_url=f'http://{served_at}', timeout=300) as made:
        yield made


def labels_of(client):
    answer = client.post('/models/sentiment', json={'inputs': 'a', 'parameters': {'top_k': None}})
    assert answer.status_code == 200, answer.text
    return [each['label'] for each in answer.json()[0]]


def test_a_folder_that_is_replaced_under_load(client, folders, caplog):
    """Every answer is of a whole model; a folder that is gone, or half written, changes nothing."""
    done, seen = threading.Event(), []

    def ask():
        while not done.is_set():
            seen.append(tuple(sorted(labels_of(client))))

    pool = concurrent.futures.ThreadPoolExecutor(CLIENTS)
    asking = [pool.submit(ask) for _ in range(CLIENTS)]
    try:
        for labels in [*LABELS[1:], LABELS[0]]:
            save_bert(folders['sentiment'], BertForSequenceClassification, labels)
            wait_until(lambda labels=labels: sorted(labels_of(client)) == sorted(labels))
            pathlib.Path(folders['sentiment'], 'config.json').write_text('{')
            wait_until(lambda: 'the old model stays' in caplog.text)
            caplog.clear()
            shutil.rmtree(folders['sentiment'])
            answered = len(seen)
            wait_until(lambda answered=answered: len(seen) > answered + 2 * CLIENTS)
            assert not any(each.done() for each in asking)  # by an error
    finally:
        done.set()
        pool.shutdown()
    assert {*seen} == {tuple(sorted(labels)) for labels in LABELS}


def test_streams_of_a_folder_that_is_replaced(client, app, folders, monkeypatch):
    """One is read to its end, and one is left: then the old model ends, and the new one writes."""
    models, go, stream = app.state.service.models, threading.Event(), worker.stream
    old = models.get('writer')
    wanted = old.pipeline('The model', **WRITING)[0]['generated_text']

    def held(*args, **options):
        for number, new in enumerate(stream(*args, **options)):
            assert number < 2 or go.wait(300)
            yield new

    monkeypatch.setattr(worker, 'stream', held)
    body = {'inputs': 'The model', 'parameters': WRITING, 'stream': True}
    with client.stream('POST', '/models/writer', json=body) as read:
        events = (json.loads(line[5:]) for line in read.iter_lines() if line)
        text = next(events)['token']['text']
        left = client.stream('POST', '/models/writer', json=body)
        thread = threading.Thread(target=leave, args=(left,))
        thread.start()
        wait_until(lambda: old.worker.count == 2)
        os.utime(os.path.join(folders['writer'], 'config.json'))
        wait_until(lambda: models.get('writer') is not old)
        assert old.worker.is_alive
        go.set()
        text += ''.join(event['token']['text'] for event in events)
    thread.join()
    assert text == wanted
    wait_until(lambda: not old.worker.is_alive)
    answer = client.post('/models/writer', json={'inputs': 'The model', 'parameters': WRITING})
    assert answer.json()[0]['generated_text'] == wanted


def leave(stream):
    """Leave a stream with its first token."""
    with stream as answer:
        next(answer.iter_lines())
