"""Loads ``zoo serve --ray`` while one of its replicas is killed; prints what came of it as JSON.

    python tests/ray_load.py CLASSIFIER WRITER

See ray_alone.py for the network and the processes that it needs.
"""

import collections
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

from ray_alone import ROOT, processes, wait_for

PORT, CLIENTS, STREAMS, SECONDS = 8000, 32, 6, 600


def post(path, content):
    """The open response of a request, and its connection."""
    connection = http.client.HTTPConnection('127.0.0.1', PORT, timeout=SECONDS)
    connection.request('POST', path, json.dumps(content))
    return connection.getresponse(), connection


def replicas():
    return processes(b'ray::ServeReplica')


def is_up():
    try:
        connection = http.client.HTTPConnection('127.0.0.1', PORT, timeout=SECONDS)
        connection.request('GET', '/health')
        return connection.getresponse().status == 200
    except OSError:
        return False


def addresses():
    """How often processes of this network listen at each address, which is in hexadecimal."""
    found = collections.Counter()
    for name in ('tcp', 'tcp6'):
        for line in pathlib.Path('/proc/net', name).read_text().splitlines()[1:]:
            _, address, _, state = line.split()[:4]
            if state == '0A':
                found[address.split(':')[0]] += 1
    return found


def main():
    models = [f'{name}={folder}' for name, folder in zip(('classifier', 'writer'), sys.argv[1:])]
    command = [sys.executable, str(ROOT / 'scripts' / 'serve.py'), *models, '--port', str(PORT)]
    command += ['--ray', '--min_replicas', '1', '--max_replicas', '2', '--replica_cpus', '0.5']
    command += ['--max_new_tokens', '1000000', '--timeout', str(SECONDS)]
    server = subprocess.Popen(command, stdout=sys.stderr)
    statuses, ends, is_ending = collections.Counter(), [None] * STREAMS, threading.Event()

    def ask(client):
        number = 0
        while not is_ending.is_set():
            number += 1
            text = f'the cat {client} ' + 'sleeps in paris ' * (number % 4)
            response, connection = post('/models/classifier', {'inputs': text})
            content = json.loads(response.read())
            is_right = response.status == 200 and {each['label'] for each in content[0]} == {
                'bad', 'good'
            }
            statuses[str(response.status) if is_right else f'{response.status} {content}'] += 1
            connection.close()

    def stream(number):
        # four texts: one of them may come to its end before the kill
        asked = {'model': 'writer', 'prompt': 'the cat', 'max_tokens': 1000000, 'stream': True,
                 'n': 4}  # fmt: skip
        response, connection = post('/v1/completions', asked)
        for line in response:
            if line.startswith(b'data: '):
                ends[number] = line[6:].decode()
            if is_ending.is_set():  # its replica lives: the client goes
                break
        connection.close()

    try:
        wait_for(is_up, 'answer', server)
        threads = [threading.Thread(target=ask, args=(n,)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(replicas()) == 2, 'second replica', server)
        time.sleep(5)  # the second one has its share of the requests by now
        threads += [threading.Thread(target=stream, args=(n,)) for n in range(STREAMS)]
        for thread in threads[-STREAMS:]:
            thread.start()
        wait_for(lambda: all(ends), 'begin of all streams', server)
        before, answered = replicas(), sum(statuses.values())
        for killed in sorted(before):  # the second one if no stream was at the first one
            seen = replicas()
            os.kill(killed, signal.SIGKILL)
            wait_for(lambda seen=seen: replicas() - seen, 'replacement', server)
            time.sleep(3)
            if any('has died' in end for end in ends):
                break
        is_ending.set()
        for thread in threads:
            thread.join()
        listening = addresses()
    finally:
        server.terminate()
        code = server.wait(SECONDS)
    wait_for(lambda: not processes(), 'end of the processes')
    print(json.dumps({
        'statuses': statuses, 'before_the_kill': answered, 'ends': ends, 'exit_code': code,
        'listening': listening,
    }))  # fmt: skip


if __name__ == '__main__':
    main()
