"""The names that version 0.1's README and documentation show can still be imported from there."""

import importlib
import inspect
import json
import pathlib
import warnings

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDED = json.loads(
    (ROOT / 'tests' / 'fixtures' / 'v0_1' / 'public_names.json').read_text(encoding='utf-8')
)
MODULES, SHOWN = RECORDED['modules'], RECORDED['shown']
#: shown in README, a guide or a notebook; the others only in the reference, which lists everything
IN_TEXT = [name for name, pages in SHOWN.items() if not all('docs/api/' in p for p in pages)]
IN_REFERENCE = [name for name in SHOWN if name not in IN_TEXT]


def moved():
    """Old path -> new path, 'module' or 'module:name', where this version has such a table."""
    try:
        return importlib.import_module('model_zoo.moved').MOVED
    except (ImportError, AttributeError):
        return {}


def load(path):
    """What 'module' or 'module:name' stands for, or what took its place; LookupError if nothing."""
    module, _, name = path.partition(':')
    table = moved()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # that the path is an old one
        for place in (path, table.get(path), table.get(path.replace(':', '.')), table.get(module)):
            if not isinstance(place, str):
                continue
            try:
                value = importlib.import_module(place.partition(':')[0])
                for attribute in filter(None, (place.partition(':')[2] or name).split('.')):
                    value = getattr(value, attribute)
            except (ImportError, AttributeError):
                continue
            return value
    raise LookupError(path)


@pytest.mark.parametrize('path', IN_TEXT)
def test_shown_name_is_there(path):
    load(path)


def test_reference_names_are_there_or_in_the_changelog():
    changelog = ROOT / 'CHANGELOG.rst'
    text = changelog.read_text(encoding='utf-8') if changelog.is_file() else ''
    missing = []
    for path in IN_REFERENCE:
        try:
            load(path)
        except LookupError:
            module, _, name = path.partition(':')
            places = (f'{module}.{name}', name or module, module)
            if not any(f'``{place}``' in text for place in places):
                missing.append(path)
    assert not missing


@pytest.mark.parametrize('path', [path for path in IN_TEXT if ':' in path])
def test_shown_name_takes_the_same_arguments(path):
    module, _, name = path.partition(':')
    wanted = MODULES.get(module, {}).get(name)
    if isinstance(wanted, str):  # it is described where its path is shorter
        module, _, name = wanted.partition(':')
        wanted = MODULES[module][name]
    if wanted is None or not wanted.get('signature'):
        return  # data, an attribute's name, or an exception without a signature of its own
    value = load(path)
    found = inspect.signature(value).parameters.values()
    names = [each.name for each in found if each.kind is not inspect.Parameter.VAR_KEYWORD]
    takes_any = len(names) < len(found)
    missing = [each for each in wanted['parameters'] if each.lstrip('*') not in names]
    assert takes_any or not [each for each in missing if not each.startswith('**')]
    for method, signature in wanted.get('members', {}).items():
        assert hasattr(value, method), f'{path}.{method}{signature}'


def test_names_are_recorded():
    assert len(MODULES) == 169 and len(IN_TEXT) > 90 and len(SHOWN) > 600
