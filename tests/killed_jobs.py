"""Jobs in forks of this process that end before a chosen change of a file."""

import os
import sys

__all__ = ['KILLED', 'in_fork']

#: audit events of operations that change files -> the position of the path
CHANGES = {'os.rename': 1, 'os.remove': 0, 'os.mkdir': 0, 'os.rmdir': 0, 'os.truncate': 0}
KILLED = 137


def watch(folder, number=None):
    """End this process before its `number`-th change in a folder; returns the changes so far."""
    changes = []

    def hook(event, args):
        if event == 'open':
            path, writes = args[0], args[2] & (os.O_WRONLY | os.O_RDWR)
        else:
            path, writes = args[CHANGES[event]] if event in CHANGES else None, True
        if isinstance(path, (str, os.PathLike)) and writes and os.fspath(path).startswith(folder):
            changes.append((event, os.fspath(path)))
            if len(changes) == number:
                os._exit(KILLED)

    sys.addaudithook(hook)
    return changes


def in_fork(job, folder, number=None):
    """Run a job in a fork of this process; returns its exit status and its number of changes."""
    count_file = f'{folder}.count'
    process = os.fork()
    if process == 0:
        status = 1
        try:
            changes = watch(str(folder), number)
            status = job()
            with open(count_file, 'w') as file:
                file.write(str(len(changes)))
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return status, None if number else int(open(count_file).read())
