"""Serves a classifier and a writer with ``zoo serve --ray``, and kills a replica.

    python tests/ray_serve.py CLASSIFIER WRITER

Prints what came of it as JSON. See ray_alone.py for the network and the processes that it needs.
"""

import http.client
import json
import os
import signal
import subprocess
import sys

from ray_alone import ROOT, SECONDS, processes, wait_for

PORT = 8000


def ask(method, path, content=None):
    """Status and text of an answer; status 0 where nothing listens."""
    connection = http.client.HTTPConnection('127.0.0.1', PORT, timeout=SECONDS)
    try:
        connection.request(method, path, json.dumps(content))
        response = connection.getresponse()
        return response.status, response.read().decode()
    except OSError:
        return 0, ''
    finally:
        connection.close()


def classify():
    return ask('POST', '/models/sentiment', {'inputs': 'a good film .'})


def replicas():
    return processes(b'ray::ServeReplica')


def main():
    models = [f'{name}={folder}' for name, folder in zip(('sentiment', 'writer'), sys.argv[1:])]
    command = [sys.executable, str(ROOT / 'scripts' / 'zoo.py'), 'serve', *models]
    command += ['--port', str(PORT), '--ray', '--min_replicas', '2', '--replica_cpus', '0.5']
    server = subprocess.Popen(command, stdout=sys.stderr)
    try:
        wait_for(lambda: ask('GET', '/health')[0] == 200, 'answer', server)
        told = {'first': classify(), 'unknown': ask('POST', '/models/no', {'inputs': 'a'})[0]}
        stream = {'model': 'writer', 'prompt': 'the cat', 'max_tokens': 8, 'stream': True}
        told['stream'] = ask('POST', '/v1/completions', stream)
        before = replicas()
        os.kill(min(before), signal.SIGKILL)
        wait_for(lambda: replicas() - before, 'new replica', server)
        told['after_the_kill'] = wait_for(
            lambda: [each for each in [classify()] if each[0] == 200], 'answer', server
        )[0]
    finally:
        server.terminate()
        code = server.wait(SECONDS)
    wait_for(lambda: not processes(), 'end of the processes')
    print(json.dumps({**told, 'exit_code': code}))


if __name__ == '__main__':
    main()
