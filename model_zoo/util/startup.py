"""Ctrl-C while a command is still importing."""

import os
import signal
import sys
import threading

__all__ = ['end_quietly_until_run', 'has_begun']

#: folders beside this package whose files are commands, and the installed command
COMMAND_FOLDERS, INSTALLED_COMMAND = ('scripts', 'export', 'bert_embedding'), 'bert-embedding'


def end_quietly_until_run():
    """Let Ctrl-C during the imports of one of our commands end it as `model_zoo.app.cli.run` would.

    Loading MXNet takes a second, before the command's own code can handle Ctrl-C, and a traceback
    would appear. Other programs that import us keep their own behaviour.
    """
    main = getattr(sys.modules.get('__main__'), '__file__', None)
    if main is None or threading.current_thread() is not threading.main_thread():
        return
    ours = os.path.abspath(os.path.join(os.path.dirname(__file__), os.pardir, os.pardir))
    folders = [os.path.join(ours, folder) for folder in COMMAND_FOLDERS]
    is_command = (
        os.path.dirname(os.path.abspath(main)) in folders
        or os.path.basename(main) == INSTALLED_COMMAND
    )
    if is_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def _end(number, frame):
    os.write(2, b'interrupted\n')
    os._exit(130)  # nothing has begun yet that would have to be put in order


def has_begun():
    """Give Ctrl-C its usual meaning again: the command's own code runs from here on."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
