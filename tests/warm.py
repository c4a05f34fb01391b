"""Processes that begin with MXNet imported, which costs a new interpreter 3 s of CPU time.

They are forks of a server, which has imported libraries and nothing of this project. Tests of what
imports do, or of variables that a library reads when it is imported, need a new interpreter.
"""

import array
import atexit
import contextlib
import functools
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LARGEST = 1 << 20  # bytes of a message
#: name, mode and how errors are handled of what is open under the numbers 0, 1 and 2
STREAMS = (('stdin', 'r', 'strict'), ('stdout', 'w', 'strict'), ('stderr', 'w', 'backslashreplace'))


# -- in the server ------------------------------------------------------------------------------


def _serve(channel):
    """Begin processes until the channel is closed; tell their numbers and how they have ended."""
    importlib.import_module('numpy')  # whose own OpenBLAS is to choose by itself, as elsewhere
    os.environ['OPENBLAS_CORETYPE'] = sys.argv[2]
    # not by `import model_zoo`, which each process does by itself
    names = runpy.run_path(os.path.join(ROOT, 'model_zoo', 'mxnet_import.py'))
    with names['importing_mxnet']():
        importlib.import_module('mxnet')
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    ended, wake = os.pipe()
    for end in (ended, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    with selectors.DefaultSelector() as selector:
        selector.register(channel, selectors.EVENT_READ)
        selector.register(ended, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj == ended:
                    os.read(ended, LARGEST)
                    _tell_of_ends(channel)
                    continue
                message, sent, *_ = channel.recvmsg(LARGEST, socket.CMSG_LEN(12))
                if not message:
                    return
                files = array.array('i', sent[0][2])
                child = os.fork()
                if not child:
                    signal.set_wakeup_fd(-1)
                    channel.close()
                    os._exit(_do(files, **json.loads(message)))
                channel.send(json.dumps([child, None]).encode())
                for file in files:
                    os.close(file)


def _tell_of_ends(channel):
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not child:
            return
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        channel.send(json.dumps([child, code]).encode())


def _do(files, program, argv, env, cwd):
    """What ``python program argv`` does; returns its exit status."""
    encoding = env.get('PYTHONIOENCODING', 'utf-8')
    for number, (name, mode, errors) in enumerate(STREAMS):
        os.dup2(files[number], number)
        os.close(files[number])
        stream = open(number, mode, encoding=encoding, errors=errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    code = 0
    try:
        _run_program(program, argv)
    except SystemExit as error:
        if error.code and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
        code = error.code if isinstance(error.code, int) else bool(error.code)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    return code


def _run_program(program, argv):
    paths = filter(None, os.environ.get('PYTHONPATH', '').split(os.pathsep))
    own = '' if program == '-c' else os.path.dirname(os.path.abspath(program))
    sys.path[:] = [own, *paths, *sys.path[1:]]  # the server's file's folder was the first
    if program == '-c':
        sys.argv, code = ['-c', *argv[1:]], argv[0]
        exec(compile(code, '<string>', 'exec'), {'__name__': '__main__'})
    else:
        sys.argv = [program, *argv]
        runpy.run_path(program, run_name='__main__')


# -- in the tests -------------------------------------------------------------------------------


class _Server:
    """The server of this process."""

    def __init__(self):
        from model_zoo.environment import cpu_flags, is_intel

        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'}
        # as model_zoo has set it for this process, while it loaded MXNet
        kernels = environment.get('OPENBLAS_CORETYPE', '')
        if not kernels and {'avx2', 'fma'} <= cpu_flags():
            kernels = 'Haswell' if is_intel() else 'Zen'
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, '-W', 'ignore', __file__, str(theirs.fileno()), kernels],
                env=environment,
                pass_fds=[theirs.fileno()],
            )
        self._codes = {}

    def begin(self, files, **what):
        """Number of a new process."""
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', files))
        self._channel.sendmsg([json.dumps(what).encode()], [rights])
        while True:
            child, code = self._receive()
            if code is None:
                self._codes.pop(child, None)  # of an earlier process that had this number
                return child

    def code_of(self, child, timeout):
        """The exit status of a process, or None if it hasn't ended after so many seconds."""
        while child not in self._codes:
            with selectors.DefaultSelector() as selector:
                selector.register(self._channel, selectors.EVENT_READ)
                if not selector.select(timeout):
                    return None
            self._receive()
        return self._codes[child]

    def _receive(self):
        child, code = json.loads(self._channel.recv(LARGEST))
        if code is not None:
            self._codes[child] = code
        return child, code


_server = functools.lru_cache(None)(_Server)


class Process:
    """As `subprocess.Popen` of ``python *command``, with texts.

    Parameters
    ----------
    command : list
        A file, or '-c' and a program; then arguments.
    cwd : path-like, optional
    env : dict, optional
    stdin, stdout, stderr : int or file, optional
        As of `subprocess.Popen`.
    """

    def __init__(self, command, cwd=None, env=None, stdin=None, stdout=None, stderr=None):
        program, *argv = map(str, command)
        files = []
        for number, stream in enumerate((stdin, stdout, stderr)):
            file = None
            if stream == subprocess.PIPE:
                read, write = os.pipe()
                ours, stream = (read, write) if number else (write, read)
                file = os.fdopen(ours, 'r' if number else 'w', encoding='utf-8')
            elif stream == subprocess.STDOUT:
                stream = os.dup(files[1])
            elif stream == subprocess.DEVNULL:
                stream = os.open(os.devnull, os.O_RDWR)
            else:
                stream = os.dup(number if stream is None else stream.fileno())
            files.append(stream)
            setattr(self, STREAMS[number][0], file)
        env = dict(os.environ if env is None else env)
        cwd = os.path.abspath(os.getcwd() if cwd is None else cwd)
        self.args = command
        self.pid = _server().begin(files, program=program, argv=argv, env=env, cwd=cwd)
        self.returncode = None
        for file in files:
            os.close(file)

    def poll(self):
        self.returncode = _server().code_of(self.pid, 0)
        return self.returncode

    def wait(self, timeout=None):
        self.returncode = _server().code_of(self.pid, timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream:
                stream.close()
        self.wait()


def run(command, cwd=None, env=None, input='', timeout=900):
    """As `subprocess.run` of ``python *command``, with its output captured."""
    with contextlib.ExitStack() as stack:
        given, *written = (
            stack.enter_context(tempfile.TemporaryFile('w+', encoding='utf-8')) for _ in STREAMS
        )
        given.write(input)
        given.seek(0)
        process = Process(command, cwd, env, given, *written)
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        for file in written:
            file.seek(0)
        texts = [file.read() for file in written]
    return subprocess.CompletedProcess(command, process.returncode, *texts)


if __name__ == '__main__':
    _serve(socket.socket(fileno=int(sys.argv[1])))
