"""The flags of each command, taken from its parser without running it."""

import argparse
import importlib
import importlib.util
import re
import sys
from unittest import mock

#: the installed command; the others go by their files
COMMAND = 'bert-embedding'
FOLDERS = ('scripts', 'export')


class _ParserFound(Exception):
    """Raised in place of parsing."""


def command_names(root):
    """Names of all commands: the installed one, and paths of files in the checkout `root`."""
    files = [path for folder in FOLDERS for path in sorted((root / folder).glob('*.py'))]
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding='utf-8') for path in files}
    texts.pop('scripts/zoo.py', None)  # it has no flags: it hands its words over to the others
    programs = re.compile(r"__name__ == '__main__'|^main = \w+_main\(", re.MULTILINE)
    return [COMMAND, *(name for name, text in texts.items() if programs.search(text))]


def main_of(name, root):
    """The function that a command runs with a list of arguments."""
    if name == COMMAND:
        return importlib.import_module('bert_embedding.cli').main
    path = root / name
    spec = importlib.util.spec_from_file_location(name.replace('/', '_')[:-3], path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))  # as Python does for a file that it runs
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module.main


def parser_of(main):
    """The argument parser that ``main(argv)`` has made when it begins to parse."""
    found = []

    def take(self, *args, **kwargs):
        found.append(self)
        raise _ParserFound

    with (
        mock.patch.object(argparse.ArgumentParser, 'parse_args', take),
        mock.patch.object(argparse.ArgumentParser, 'parse_known_args', take),
    ):
        try:
            main([])
        except _ParserFound:
            return found[0]
    raise AssertionError(f'{main.__module__}.main parses no arguments')


def flags_of(parser):
    """What a parser takes, as plain JSON: a list with a record for each flag or argument."""
    return [_flag(parser, action) for action in parser._actions if action.dest != 'help']


def _flag(parser, action):
    record = {
        'flags': [flag for flag, each in parser._option_string_actions.items() if each is action],
        'dest': action.dest,
        'default': _plain(action.default),
        'const': _plain(action.const),
        'nargs': action.nargs,
        'choices': None if action.choices is None else _plain(list(action.choices)),
        'required': action.required,
        'metavar': action.metavar,
    }
    return {name: value for name, value in record.items() if value is not None}


def _plain(value):
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)
