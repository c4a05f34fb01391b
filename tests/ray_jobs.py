"""Runs commands on a Ray cluster that was started beside them, and kills what works meanwhile.

    python tests/ray_jobs.py FILE

FILE is JSON: ``{name: [folder of the parts, command of zoo, argument...]}``. Each command runs
twice. First a worker is killed in the middle of a task, in the last command a machine. The second
run lacks one of the parts. Prints what came of each command, and what is said where the
environment sends no token, as JSON.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import warm
from ray_alone import (
    ADDRESS,
    CLIENT_ADDRESS,
    ROOT,
    SECOND_HOST,
    SECONDS,
    command_of,
    processes,
    start_cluster,
    wait_for,
)

AT_WORK = b'ray::_call'


def kill_worker():
    """Kill one process that is at a task, if any is."""
    for each in processes(AT_WORK):
        os.kill(each, signal.SIGSTOP)
        if command_of(each).startswith(AT_WORK):
            os.kill(each, signal.SIGKILL)
            return True
        os.kill(each, signal.SIGCONT)
    return False


def kill_second_machine():
    """Kill all of the second machine's processes, if one of them is at a task."""
    address = f'--node_ip_address={SECOND_HOST}'.encode()
    [raylet] = [each for each in processes(b'') if b'raylet --' in command_of(each).replace(
        b'\0', b' ') and address in command_of(each)]  # fmt: skip
    own = {each for each in processes() if parent(each) == raylet}
    if not own & processes(AT_WORK):
        return False
    for each in [raylet, *own]:
        os.kill(each, signal.SIGKILL)
    return True


def parent(process):
    try:
        status = pathlib.Path('/proc', str(process), 'status').read_text()
    except OSError:  # it has ended
        return None
    return int(re.search(r'^PPid:\s+(\d+)', status, re.MULTILINE).group(1))


def finished(folder):
    """Name -> (i-node, time) of the parts that are finished and have a file."""
    notes = pathlib.Path(folder, '.done').glob('*.json')
    paths = [pathlib.Path(folder, note.stem) for note in notes]
    stats = {path.name: path.stat() for path in paths if path.exists()}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in stats.items()}


def start(command, address):
    return warm.Process(
        [ROOT / 'scripts' / 'zoo.py', *command, '--ray', address], stdout=sys.stderr
    )


def begin(folder, command, address):
    """The command's process, once it has finished a part.

    Ray's client server fails or hangs in one of 25 connections, with programs that only connect,
    too. So a client has several attempts.
    """
    attempts, seconds = (4, 150) if address == CLIENT_ADDRESS else (1, SECONDS)
    while True:
        job = start(command, address)
        attempts -= 1
        try:
            wait_for(lambda: finished(folder), 'finished part', job, pause=0.01, seconds=seconds)
            return job
        except SystemExit as error:
            job.kill()
            job.wait()
            if not attempts:
                raise
            print('another attempt, since', error, file=sys.stderr)


def run_twice(folder, command, address, kill):
    job = begin(folder, command, address)
    before = finished(folder)
    wait_for(kill, 'process to kill', job, pause=0.01)
    statuses = [job.wait(SECONDS)]
    first = finished(folder)
    missing = sorted(first)[1]
    pathlib.Path(folder, missing).unlink()
    statuses.append(start(command, 'auto').wait(SECONDS))
    second = finished(folder)
    return {
        'statuses': statuses, 'parts': len(first), 'before_the_kill': len(before),
        'made_again': [name for name in before if before[name] != first[name]],
        'missing': [missing],
        'made_by_the_second_run': [name for name in second if second[name] != first[name]],
    }  # fmt: skip


def refusal_without_token():
    """What is said of a cluster that wants a token, in an environment that sends none."""
    program = (
        'import sys\nfrom model_zoo.errors import InputError\n'
        'from model_zoo.util.executor import join_cluster\n'
        'try:\n    join_cluster(sys.argv[1])\nexcept InputError as error:\n    print(error)\n'
    )
    environment = {k: v for k, v in os.environ.items() if k != 'RAY_AUTH_MODE'}
    with warm.Process(['-c', program, ADDRESS], env=environment, stdout=subprocess.PIPE) as job:
        return job.stdout.read()


def main():
    jobs, told = json.loads(pathlib.Path(sys.argv[1]).read_text()), {}
    addresses = [CLIENT_ADDRESS, *[ADDRESS] * (len(jobs) - 1)]
    kills = [*[kill_worker] * (len(jobs) - 1), kill_second_machine]
    start_cluster()
    for (name, (folder, *command)), *how in zip(jobs.items(), addresses, kills):
        told[name] = run_twice(folder, command, *how)
        print(name, told[name], file=sys.stderr)
    told['refusal_without_token'] = refusal_without_token()
    print(json.dumps(told))


if __name__ == '__main__':
    main()
