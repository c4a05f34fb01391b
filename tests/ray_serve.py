"""Serves a classifier on a Ray cluster that was started beside the server; kills and stops it.

    python tests/ray_serve.py FOLDER

Prints what came of it as JSON. See ray_alone.py for the network and the processes that it needs.
"""

import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from ray_alone import ADDRESS, ROOT, SECONDS, processes, start_cluster, wait_for

PORT = 8000
REPLICA = b'ray::ServeReplica'


def ask(method, path, content=None):
    """Status and answer; status 0 where nothing listens."""
    connection = http.client.HTTPConnection('127.0.0.1', PORT, timeout=SECONDS)
    try:
        connection.request(method, path, json.dumps(content))
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    except OSError:
        return 0, None
    finally:
        connection.close()


def classify():
    return ask('POST', '/models/sentiment', {'inputs': 'a good film .'})


def start(folder, address, **streams):
    command = ['serve', f'sentiment={folder}', '--port', str(PORT), '--ray', address]
    command += ['--min_replicas', '2', '--max_replicas', '2', '--timeout', str(SECONDS)]
    return subprocess.Popen([sys.executable, str(ROOT / 'scripts' / 'zoo.py'), *command], **streams)


def start_and_wait(folder, address):
    server = start(folder, address, stdout=sys.stderr)
    wait_for(lambda: ask('GET', '/health')[0] == 200, 'answer', server, pause=0.3)
    return server


def refusal(folder):
    """What is said of a model that no replica can open."""
    damaged = shutil.copytree(folder, f'{folder}-damaged')
    for path in pathlib.Path(damaged).glob('model.*'):
        path.write_bytes(path.read_bytes()[:1000])
    server = start(damaged, ADDRESS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = server.communicate(timeout=2 * SECONDS)[0]
    return server.returncode, said.splitlines()


def main():
    [folder] = sys.argv[1:]
    told = {}
    start_cluster()
    server = start_and_wait(folder, ADDRESS)
    told['first'] = classify()
    before = wait_for(lambda: len(processes(REPLICA)) == 2 and processes(REPLICA), 'replicas')
    os.kill(min(before), signal.SIGKILL)
    told['after_the_kill'] = [classify() for _ in range(8)]
    wait_for(lambda: processes(REPLICA) - before, 'new replica', server)
    server.kill()  # its replicas stay, and the next one replaces them
    server.wait()
    server = start_and_wait(folder, 'auto')
    told['second_server'] = classify()
    server.terminate()
    told['exit_code'] = server.wait(SECONDS)
    wait_for(lambda: not processes(REPLICA), 'end of the replicas')
    told['is_cluster_alive'] = len(processes(b'ray::RuntimeEnvAgent')) == 2
    told['refusal'] = refusal(folder)
    print(json.dumps(told))


if __name__ == '__main__':
    main()
