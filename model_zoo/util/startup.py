"""What can go wrong while a program is still importing: Ctrl-C, other files, another NumPy."""

import os
import signal
import sys
import threading
import warnings

from ..families import HOME, PACKAGES, file_in_the_way, message_of_file

__all__ = ['check_imports', 'end_quietly_until_run', 'has_begun']

#: folders beside this package whose files are commands
COMMAND_FOLDERS = ('scripts', 'zoo_scripts', 'export', 'bert_embedding')
#: names of the installed commands
INSTALLED_COMMANDS = ('bert-embedding', 'zoo')


def check_imports():
    """Tell of what would end in a puzzling error later.

    One of our commands ends with a line about it. For another program, a NumPy that MXNet can't use
    is an ImportError, and a file in the way of a package is a warning: it may not be needed.
    """
    problem = numpy_problem()
    if problem:
        if is_command():
            end_with(problem)
        raise ImportError(problem)
    for name in PACKAGES:
        path = file_in_the_way(name)
        if path is None:
            continue
        problem = message_of_file(name, path)
        if is_command():
            end_with(problem)
        warnings.warn(problem, stacklevel=3)


def numpy_problem():
    """What is wrong with the installed NumPy; None if nothing is."""
    import numpy  # which MXNet loads anyhow

    numbers = [int(each) for each in numpy.__version__.split('.')[:2]]
    if numbers < [1, 24]:
        return None
    return (
        f"NumPy {numpy.__version__} is too new for MXNet 1.9.1, which needs one below 1.24: pip "
        "install 'numpy<1.24'"
    )


def end_with(problem):
    """End a command that can't begin."""
    sys.stderr.write(f'error: {problem}\n')
    sys.exit(1)


def is_command():
    """Whether this process runs one of our commands."""
    main = getattr(sys.modules.get('__main__'), '__file__', None)
    if main is None:
        return False
    folders = [os.path.join(HOME, folder) for folder in COMMAND_FOLDERS]
    return (
        os.path.dirname(os.path.abspath(main)) in folders
        or os.path.basename(main) in INSTALLED_COMMANDS
    )


def end_quietly_until_run():
    """Let Ctrl-C during the imports of one of our commands end it as `model_zoo.app.cli.run` would.

    Loading MXNet takes a second, before the command's own code can handle Ctrl-C, and a traceback
    would appear. Other programs that import us keep their own behaviour.
    """
    if threading.current_thread() is not threading.main_thread() or not is_command():
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def _end(number, frame):
    os.write(2, b'interrupted\n')
    os._exit(130)  # nothing has begun yet that would have to be put in order


def has_begun():
    """Give Ctrl-C its usual meaning again: the command's own code runs from here on."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
