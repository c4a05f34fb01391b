"""Ray in a network and among processes of its own.

Ray binds to 127.0.0.1 only where there is no other address, its ports are fixed, and it leaves
processes behind when it is killed. Here all of them end with the program.

    unshare --net --pid --fork --kill-child --mount-proc python tests/ray_alone.py COMMAND...
"""

import contextlib
import fcntl
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALONE = ['unshare', '--net', '--pid', '--fork', '--kill-child', '--mount-proc']
SECONDS = 400
#: the parts of Ray wait for one another on a busy machine
SETTINGS = {
    'RAY_raylet_start_wait_time_s': '240',
    'RAY_agent_register_timeout_ms': '240000',
    'RAY_USAGE_STATS_ENABLED': '0',
    'PYTHONPATH': str(ROOT),
    'OMP_NUM_THREADS': '1',
}


def run_alone(*words, seconds=900):
    """Run Python where there is no network but lo; returns the JSON of the last line it prints."""
    import pytest

    if os.environ.get('CI') != 'true':
        pytest.importorskip('ray')
    alone = ALONE if os.geteuid() == 0 else [*ALONE, '--map-root-user']
    try:
        subprocess.run([*alone, 'true'], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip('no network of its own for Ray: that needs unshare and the right to it')
    # Ray's files: it has sockets there, whose paths are short, and `auto` finds a cluster by them
    with tempfile.TemporaryDirectory(prefix='ray', dir='/tmp') as folder:
        done = subprocess.run(
            [*alone, sys.executable, __file__, sys.executable, *map(str, words)],
            capture_output=True,
            text=True,
            timeout=seconds,
            env={**os.environ, **SETTINGS, 'RAY_TMPDIR': folder},
        )
        logs = pathlib.Path(folder).glob('ray/session_latest/logs/ray_client_server*')
        said = [f'{log.name}:\n{log.read_text()[-2000:]}' for log in logs]
    assert done.returncode == 0, '\n'.join([done.stdout[-3000:], done.stderr[-6000:], *said])
    return json.loads(done.stdout.splitlines()[-1])


def command_of(process):
    """Its command line, which Ray replaces by a title; empty if it has ended."""
    with contextlib.suppress(OSError):
        return pathlib.Path('/proc', str(process), 'cmdline').read_bytes()
    return b''


def processes(title=b'ray::'):
    """Ids of the processes whose title begins with this."""
    found = (int(each.name) for each in pathlib.Path('/proc').glob('[0-9]*'))
    return {each for each in found if command_of(each).startswith(title)}


def wait_for(condition, what, process=None, pause=0.1, seconds=SECONDS):
    """What a condition returns, once that is true; ends the program if the process ends before."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if process is not None and process.poll() is not None:
            raise SystemExit(f'no {what}: the process has ended with {process.returncode}')
        if time.monotonic() > end:
            raise SystemExit(f'no {what} within {seconds} seconds')
        time.sleep(pause)


def main():
    """Run a command as the first of the processes: with it all others end."""
    set_flags, is_up = 0x8914, 0x41
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack('16sh14x', b'lo', is_up))
    child = subprocess.Popen(sys.argv[1:])
    while True:  # processes whose parent has ended are this one's
        ended, status = os.wait()
        if ended == child.pid:
            sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == '__main__':
    main()
