"""What README and docs of version 0.2 show is there, or the changelog says where it went."""

import argparse
import functools
import importlib
import json
import pathlib
import sys

import pytest
from command_flags import flags_of, main_of, parser_of
from json_files import cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTRACT = json.loads((ROOT / 'tests' / 'fixtures' / 'contract.json').read_text('utf-8'))
CHANGELOG = (ROOT / 'CHANGELOG.rst').read_text('utf-8')
NAMES = [
    name
    for name in CONTRACT['names']
    if not any(f'``{part}``' in CHANGELOG for part in (name.replace(':', '.'), name.split(':')[0]))
]
#: defaults that the changelog says are others, or that say the same in another way
OTHER_DEFAULTS = cases('environment')['OTHER_DEFAULTS']


def test_shown_names_are_there(monkeypatch):
    monkeypatch.setattr(sys, 'path', [str(ROOT / 'scripts' / 'originals'), *sys.path])
    for name in NAMES:
        module, _, attribute = name.partition(':')
        names = filter(None, attribute.split('.'))
        functools.reduce(getattr, names, importlib.import_module(module))


@pytest.mark.parametrize('command', CONTRACT['flags'])
def test_flags_are_taken_as_before(command):
    now = {
        flag: record
        for record in flags_of(parser_of(main_of(command, ROOT)))
        for flag in record['flags'] or [record['dest']]
    }
    for before in CONTRACT['flags'][command]:
        for flag in before['flags'] or [before['dest']]:
            if f'``{flag}`` of ``{command}``' in CHANGELOG:
                continue
            if flag not in now:  # dashes are as good as underscores
                flag = f'--{flag[2:].replace("-", "_")}'
            assert flag in now, f'{command} {flag} is gone'
            if now[flag]['dest'] == argparse.SUPPRESS:  # it has no effect
                continue
            defaults = before.get('default'), OTHER_DEFAULTS.get(flag, before.get('default'))
            assert now[flag].get('default') in defaults, flag
            for part in ('const', 'nargs'):
                same = (before.get(part), '?') if part == 'nargs' else (before.get(part),)
                assert now[flag].get(part) in same, (flag, part)
            assert before['required'] or not now[flag]['required'], f'{flag} was not required'
            assert set(before.get('choices', ())) <= set(now[flag].get('choices', ())), flag
