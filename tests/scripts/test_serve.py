"""The command serve: a process on 127.0.0.1, from its start to its end."""

import json
import re
import signal
import subprocess
import threading

import pytest
from script_runs import SCRIPTS, load_script, refusal, start, wait_until
from tiny_models import save_bert, save_gpt2

from bert import BertForSequenceClassification

httpx = pytest.importorskip('httpx')
pytest.importorskip('uvicorn')
pytest.importorskip('fastapi')


@pytest.fixture(scope='module')
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp('models')
    labels = ['bad', 'good']
    classifier = save_bert(root / 'sentiment' / 'best_model', BertForSequenceClassification, labels)
    return classifier, save_gpt2(root / 'writer')


class Served:
    """A running ``serve``, its address and its log."""

    def __init__(self, *argv):
        streams = {'stderr': subprocess.PIPE, 'stdout': subprocess.DEVNULL}
        self.process = start(SCRIPTS / 'serve.py', *argv, '--port', 0, **streams)
        self.log = ''
        for line in self.process.stderr:
            self.log += line
            found = re.search(r'serving on (http://127\.0\.0\.1:\d+)', line)
            if found:
                break
        else:
            raise AssertionError(self.log)
        self.url = found.group(1)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.log += line

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        self._reader.join()


def test_from_start_to_end(folders, tmp_path):
    """It serves; told to end, it answers what it has accepted, a stream too."""
    (tmp_path / 'key').write_text('secret')
    headers = {'Authorization': 'Bearer secret'}
    with Served(*folders, '--api_key', tmp_path / 'key', '--timeout', 300) as served:
        assert 'secret' not in served.log
        assert httpx.post(f'{served.url}/models/sentiment', json={}).status_code == 401
        with httpx.Client(base_url=served.url, headers=headers, timeout=300) as client:
            answer = client.post('/models/sentiment', json={'inputs': 'good film .'})
            assert {each['label'] for each in answer.json()[0]} == {'bad', 'good'}
            is_open = {'inputs': 'The', 'parameters': {'max_new_tokens': 1}}
            wait_until(lambda: client.post('/models/writer', json=is_open).status_code == 200)
            parameters, whole = {'max_new_tokens': 80, 'stop_at_end': False}, []
            content = {'inputs': 'The', 'parameters': parameters}

            def write():
                url = f'{served.url}/models/writer'
                whole.append(httpx.post(url, json=content, headers=headers, timeout=300))

            thread = threading.Thread(target=write)
            with client.stream('POST', '/models/writer', json={**content, 'stream': True}) as reply:
                lines = reply.iter_lines()
                next(lines)
                thread.start()
                wait_until(lambda: 'zoo_queue{model="writer"} 2.0' in client.get('/metrics').text)
                served.process.send_signal(signal.SIGTERM)
                events = [json.loads(line[5:]) for line in lines if line]
            assert events[-1]['details']['generated_tokens'] == 80
            thread.join()
            text = whole[0].json()[0]['generated_text']
            assert text == 'The' + events[-1]['generated_text']
        assert served.process.wait(300) == 0
        with pytest.raises(httpx.ConnectError):
            httpx.get(f'{served.url}/health')
    assert 'Traceback' not in served.log


def test_what_must_be_installed_is_said(folders, capsys, without):
    without('uvicorn')
    assert '[serve]' in refusal(capsys, load_script('serve'), folders[0], '--port', 0)
