"""setup.py, requirements/ and the code agree."""

import ast
import pathlib
import re
import sys

import pytest
import setuptools
from json_files import cases

import model_zoo

ROOT = pathlib.Path(__file__).resolve().parents[2]

# the name that is imported -> the name that is installed
DISTRIBUTIONS = cases('environment')['DISTRIBUTIONS']


@pytest.fixture(scope='module')
def arguments():
    """What setup.py tells setuptools."""
    taken = {}
    original, setuptools.setup = setuptools.setup, taken.update
    try:
        code = compile((ROOT / 'setup.py').read_text(encoding='utf-8'), 'setup.py', 'exec')
        exec(code, {'__file__': str(ROOT / 'setup.py'), '__name__': '__main__'})
    finally:
        setuptools.setup = original
    return taken


def names_of(requirements):
    return {re.match(r'[\w-]+', requirement).group() for requirement in requirements}


def names_in(file):
    lines = (ROOT / 'requirements' / file).read_text(encoding='utf-8').splitlines()
    return names_of(line for line in lines if line and line[0] not in '#-')


def test_version(arguments):
    assert arguments['version'] == model_zoo.__version__


def test_packages(arguments):
    families = {path.parent.name for path in ROOT.glob('*/__init__.py')} - {'scripts'}
    others = {'zoo_scripts': 'scripts'}
    others['mxnet_pretrained_bert'] = 'scripts/originals/mxnet_pretrained_bert'
    others['mxnet_pytorchic_bert'] = 'scripts/originals/pytorchic_bert/mxnet_pytorchic_bert'
    names = set(arguments['packages']) - {*others}
    assert {name for name in names if '.' not in name} == families
    assert arguments['package_dir'] == others
    for name in names:
        assert name.split('.')[0] in families  # not the tests
        assert (ROOT / name.replace('.', '/') / '__init__.py').is_file()
    folders = {path.parent for family in families for path in (ROOT / family).rglob('*.py')}
    assert folders == {ROOT / name.replace('.', '/') for name in names}


def test_the_scripts_go_along(arguments):
    """All their files, also those in other folders, but for the benchmarks."""
    own = {path.relative_to(ROOT / 'scripts') for path in (ROOT / 'scripts').glob('*.py')}
    for pattern in arguments['package_data']['zoo_scripts']:
        own |= {path.relative_to(ROOT / 'scripts') for path in (ROOT / 'scripts').glob(pattern)}
    there = (path.relative_to(ROOT / 'scripts') for path in (ROOT / 'scripts').rglob('*'))
    files = {path for path in there if (ROOT / 'scripts' / path).is_file()}
    others = {'__pycache__', 'benchmark', 'recipes'}  # for a clone
    assert {path for path in files if not others & {*path.parts}} <= own


def test_pages_go_along(arguments):
    for path in (ROOT / 'model_zoo').rglob('*.html'):
        assert any(
            path.match('/'.join([*package.split('.'), pattern]))
            for package, patterns in arguments['package_data'].items()
            for pattern in patterns
        ), path


def test_command(arguments):
    for line in arguments['entry_points']['console_scripts']:
        module, function = line.split(' = ')[1].split(':')
        module = re.sub('^zoo_scripts', 'scripts', module)
        path = ROOT / (module.replace('.', '/') + '.py')
        tree = ast.parse(path.read_text(encoding='utf-8'))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def imported_by(path):
    """Top-level modules that a file imports, those in functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split('.')[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split('.')[0]


def test_imports_are_declared(arguments):
    ours = {name.split('.')[0] for name in arguments['packages']}
    declared = names_of(arguments['install_requires'])
    for extra, requirements in arguments['extras_require'].items():
        declared |= names_of(requirements) if extra != 'dev' else set()
    for name in ours:
        for path in (ROOT / name).rglob('*.py'):
            for module in set(imported_by(path)) - ours - sys.stdlib_module_names:
                assert DISTRIBUTIONS.get(module, module) in declared, (path, module)


def test_requirements(arguments):
    assert names_in('base.txt') | {'mxnet'} == names_of(arguments['install_requires'])
    assert names_in('test.txt') == names_of(arguments['extras_require']['dev'])
    lists = {path.name for path in (ROOT / 'requirements').glob('*.txt')}
    for name in lists - {'newest.txt', 'oldest.txt', 'overrides.txt'}:
        assert names_in(name) - {'torch'} <= names_in('newest.txt'), name
    assert names_in('base.txt') | names_in('test.txt') <= names_in('oldest.txt')


def test_each_dependency_has_its_reason(arguments):
    """The tables of docs/dependencies.rst have all names, with a reason for each."""
    page = (ROOT / 'docs' / 'dependencies.rst').read_text(encoding='utf-8')
    rows = re.findall(r'^``([\w-]+)``  +(.+)$', page, re.MULTILINE)
    names = [name for name, _ in rows]
    assert len(names) == len(set(names))
    assert all(len(reason.split()) > 1 for _, reason in rows)
    wanted = names_of(arguments['install_requires'])
    for requirements in arguments['extras_require'].values():
        wanted |= names_of(requirements)
    for path in (ROOT / 'requirements').glob('*.txt'):
        if path.name not in ('newest.txt', 'oldest.txt'):
            wanted |= names_in(path.name)
    assert set(names) == wanted
    extras = dict(re.findall(r'^``([\w-]+)``  +(\w+(?:, \w+)*)  ', page, re.MULTILINE))
    for extra, requirements in arguments['extras_require'].items():
        for name in names_of(requirements) if extra != 'dev' else ():
            assert extra in extras[name].split(', '), (extra, name)


def test_pins_are_one_for_each_python():
    markers = pytest.importorskip('packaging.markers')
    requirements = pytest.importorskip('packaging.requirements')
    pinned = (ROOT / 'requirements' / 'newest.txt').read_text(encoding='utf-8')
    locked = (ROOT / 'requirements' / 'newest.lock').read_text(encoding='utf-8')
    with_hashes = re.sub(r'( \\\n    --hash=sha256:[0-9a-f]{64})+$', ' has', locked, flags=re.M)
    assert with_hashes == re.sub('(==.+)', r'\1 has', pinned)
    lines = pinned.splitlines()
    pins = [requirements.Requirement(line) for line in lines if not line.startswith('#')]
    for version in ('3.10', '3.11', '3.12', '3.13'):
        environment = markers.default_environment()
        environment.update(python_version=version, python_full_version=f'{version}.0')
        names = [pin.name for pin in pins if not pin.marker or pin.marker.evaluate(environment)]
        assert len(names) == len(set(names)), version
        assert {'mxnet', 'numpy', 'tokenizers'} <= set(names)
