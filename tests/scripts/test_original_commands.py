"""The originals' command lines and flags: what is recorded of them fits together and our parsers.

``original_commands.json`` has their published commands, ``original_flags.json`` the flags of their
scripts; a command marked as accepted is parsed by our script as it stands.
"""

import contextlib
import functools
import pathlib
import shlex
import string
from unittest import mock

import pytest
from command_flags import flags_of, main_of, parser_of
from json_files import cases
from script_runs import read_json

from model_zoo.app import cli

FOLDER = pathlib.Path(__file__).parent
ROOT = FOLDER.parents[1]
RECORD = read_json(FOLDER, 'original_commands.json')
VARIABLES, COMMANDS = RECORD['variables'], RECORD['commands']
SCRIPTS = read_json(FOLDER, 'original_flags.json')
OURS = [command for command in COMMANDS if command['runs_here']]


class Parsed(Exception):
    """Raised when a command line has been parsed."""


cached_main = functools.lru_cache(maxsize=None)(lambda name: main_of(name, ROOT))


@functools.cache
def our_flags(name):
    """All flags, and names of arguments, of one of our commands."""
    records = flags_of(parser_of(cached_main(name)))
    arguments = [record for record in records if not record['flags']]
    shown = {word for record in arguments for word in record.get('metavar', '').split()}
    return shown.union(*(record['flags'] or [record['dest']] for record in records))


def expand(words, values):
    """What the shell makes of the variables in some words."""
    values = {**VARIABLES, **values}
    return [string.Template(word).safe_substitute(values) for word in words]


@contextlib.contextmanager
def parsing_only(found):
    """Commands end when they have parsed; parser and result are added to `found`."""

    def ends(method):
        parse = getattr(cli.Parser, method)

        def parse_and_stop(self, *args, **kwargs):
            found.extend([self, parse(self, *args, **kwargs)])
            raise Parsed

        return mock.patch.object(cli.Parser, method, parse_and_stop)

    with ends('parse_args'), ends('parse_intermixed_args'):
        yield


def accepts(name, argv):
    """Whether one of our commands parses a list of arguments."""
    with parsing_only([]):
        try:
            cached_main(name)(argv)
        except Parsed:
            return True
        except SystemExit as stop:
            assert stop.code == 2
            return False
    raise AssertionError(f'{name} parses no arguments')


def identity(command):
    return command['id']


@pytest.mark.parametrize('name', SCRIPTS)
def test_flags_name_flags_of_ours(name):
    record = SCRIPTS[name]
    names = [each for flag in record['flags'] for each in flag['names']]
    assert len(set(names)) == len(names)
    for flag in record['flags']:
        assert 0 < len(flag['meaning'].split()) <= 5, flag['names']
        assert flag['note'] or flag['ours'], flag['names']  # a reason for what has no counterpart
        if flag['ours'] is not None:
            assert flag['ours'] in our_flags(record['runs_here']), flag['names']


@pytest.mark.parametrize('command', OURS, ids=identity)
def test_mark_of_acceptance_is_true(command, capsys):
    argv = expand(command['argv'], command['exports'])
    accepted = accepts(command['runs_here'], argv)
    assert accepted is command['accepted'], capsys.readouterr().err


@pytest.mark.parametrize(
    'command', [command for command in COMMANDS if command['equivalent']], ids=identity
)
def test_equivalent_is_accepted(command, capsys):
    words = expand(shlex.split(command['equivalent']), command['exports'])
    place = next((n for n, word in enumerate(words) if word.endswith('.py')), 0)
    if words[place].endswith('.py') or words[0] == 'bert-embedding':
        assert accepts(words[place], words[place + 1 :]), capsys.readouterr().err


def parsed(name, argv):
    """The parser of one of our commands, and what it makes of arguments, before conversions."""
    found = []
    with parsing_only(found), pytest.raises(Parsed):
        cached_main(name)(argv)
    return found


# what None means, where it stands for the original's default
SAME_AS_NONE = cases('original_runs')['SAME_AS_NONE']
# an original's default in our words
SAID = {'--fp16': 'float32', '--layers': '[-1, -2, -3, -4]'}
DECIDED_BY_THE_VOCABULARY = {'--do_lower_case', '--do_lower'}
THIN = {
    name: record['runs_here']
    for name, record in SCRIPTS.items()
    if 'originals' in record['runs_here'] and not name.startswith('pytorchic')
}


@pytest.mark.parametrize('name', [name for name in THIN if name.endswith('.py')])
def test_omitted_flags_mean_what_they_mean_in_the_original(name):
    record = SCRIPTS[name]
    needed = [flag for flag in record['flags'] if flag['required'] or 'required_in' in flag]
    words = [word for flag in needed for word in (flag['names'][0], 'a')]
    parser, args = parsed(record['runs_here'], words)
    ours, checked = {}, 0
    for own in flags_of(parser):
        ours.update(dict.fromkeys(own['flags'], own['dest']))
    for flag in record['flags']:
        own = flag['names'][0]
        is_without_effect = 'logged' in (flag['note'] or '')
        if flag['required'] or is_without_effect or own in words or flag.get('prose_only'):
            continue
        if own in DECIDED_BY_THE_VOCABULARY:
            continue
        option = own if own in ours else flag['ours']
        value = getattr(args, ours[option])
        checked += 1
        if value is None:
            assert flag['default'] in (None, '', False, SAME_AS_NONE.get(own)), own
        elif isinstance(flag['default'], float) or isinstance(value, (float, bool)):
            assert value == flag['default'], own
        else:
            assert str(value) == SAID.get(own, str(flag['default'])), own
    if 'num_train_epochs' in args:
        assert args.epochs == 3
    assert checked or len(record['flags']) < 10


def test_every_original_script_has_its_file():
    folders = (ROOT / 'scripts/originals' / name for name in ('google', 'pytorch_pretrained_bert'))
    files = [path for folder in folders for path in folder.glob('*.py')]
    assert sorted(files) == sorted(ROOT / name for name in THIN.values())


WORDS = cases('original_runs')['WORDS']


@pytest.mark.parametrize('word, flag, value', WORDS)
def test_flags_may_be_written_as_the_originals_parsers_take_them(word, flag, value):
    _, args = parsed('scripts/finetune_classifier.py', ['--task_name', 'MRPC', word])
    assert getattr(args, flag) == value
