"""Whatever version 0.1 took, computed and wrote, this version takes, computes and reads."""

import json
import pathlib

import pytest
from command_flags import flags_of, main_of, parser_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDED = ROOT / 'tests' / 'fixtures' / 'v0_1'
COMMANDS = json.loads((RECORDED / 'commands.json').read_text(encoding='utf-8'))


@pytest.mark.parametrize('name', COMMANDS)
def test_flags(name):
    """Each flag is there with the same destination, default and values; its help may differ."""
    flags = flags_of(parser_of(main_of(name, ROOT)))
    ours = {flag: record for record in flags for flag in record['flags'] or [record['dest']]}
    for wanted in COMMANDS[name]['flags']:
        for flag in wanted['flags'] or [wanted['dest']]:
            assert flag in ours, f'{name} {flag} is gone'
            found = ours[flag]
            for part in ('dest', 'default', 'const', 'nargs', 'values'):
                assert found.get(part) == wanted.get(part), (flag, part)
            assert wanted['required'] or not found['required'], f'{flag} was not required'
            if 'choices' in found:
                assert set(wanted['choices']) <= set(found['choices']), flag


def test_commands_are_recorded():
    assert len(COMMANDS) == 30
    assert sum(len(command['flags']) for command in COMMANDS.values()) > 600
