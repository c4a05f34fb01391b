"""Runs commands on a Ray cluster that was started beside them; prints their statuses as JSON.

    python tests/ray_outside.py COMMAND...

A command is a JSON list of words; ADDRESS in it becomes the cluster's. It must run in a network
namespace that has only lo: the port is fixed, and Ray takes other interfaces where there are any.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ADDRESS = '127.0.0.1', 6379
#: of the cluster and of those that use it: the token that it wants; and how long the parts of Ray
#: wait for one another, for a busy machine
ENVIRONMENT = {
    'RAY_AUTH_MODE': 'token', 'RAY_AUTH_TOKEN': 'a' * 64, 'RAY_raylet_start_wait_time_s': '240',
    'RAY_agent_register_timeout_ms': '240000',
}  # fmt: skip
PORTS = {'node-manager': 6380, 'dashboard-agent-listen': 6381, 'dashboard-agent-grpc': 6382,
         'runtime-env-agent': 6383, 'metrics-export': 6384}  # fmt: skip
SECONDS = 300
STARTED = 'import sys; from ray.scripts.scripts import main; sys.exit(main())'


@contextlib.contextmanager
def cluster(cpus=2):
    """``ray start --head``; its address."""
    # sockets' paths are short, and other clusters of this machine have folders of their own
    folder = tempfile.mkdtemp(prefix='ray')
    command = [sys.executable, '-c', STARTED, 'start', '--head', '--block', '--node-ip-address',
               ADDRESS[0], '--port', str(ADDRESS[1]), '--num-cpus', str(cpus), '--temp-dir', folder,
               '--include-dashboard', 'false', '--disable-usage-stats', '--object-store-memory',
               str(128 * 2**20)]  # fmt: skip
    for name, port in PORTS.items():
        command += [f'--{name}-port', str(port)]
    os.environ.update(ENVIRONMENT)
    with open(pathlib.Path(folder, 'log'), 'wb') as log:
        head = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: is_open(ADDRESS[0], PORTS['node-manager']), head)
        yield '{}:{}'.format(*ADDRESS)
    finally:
        head.send_signal(signal.SIGTERM)  # which ends the processes that it has started
        head.wait(SECONDS)
        shutil.rmtree(folder, ignore_errors=True)


def is_open(host, port):
    with contextlib.suppress(OSError), socket.create_connection((host, port), 5):
        return True
    return False


def wait_until(condition, process):
    end = time.monotonic() + SECONDS
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit(f'nothing within {SECONDS} seconds; status {process.returncode}')
        time.sleep(0.3)


def main():
    statuses = []
    with cluster() as address:
        for command in map(json.loads, sys.argv[1:]):
            words = [address if word == 'ADDRESS' else word for word in command]
            done = subprocess.run([sys.executable, *words], stdout=sys.stderr, timeout=SECONDS)
            statuses.append(done.returncode)
    print(json.dumps(statuses))


if __name__ == '__main__':
    main()
