"""The API reference has all public names, each with a docstring or comment."""

import functools
import importlib
import inspect
import pathlib
import pkgutil
import re

from model_zoo.families import FAMILIES

API = pathlib.Path(__file__).resolve().parents[2] / 'docs' / 'api'
_ENTRY = re.compile(r'^\.\. public-names:: (\S+)$(\n   :recursive:)?', re.MULTILINE)
PACKAGES = (*FAMILIES, 'model_zoo', 'bert_embedding', 'export', 'mxnet_pretrained_bert')


#: names of all modules
ALL = sorted(
    name
    for package in PACKAGES
    for path in [importlib.import_module(package).__path__]
    for name in (package, *(each.name for each in pkgutil.walk_packages(path, f'{package}.')))
)
#: those with an ``__all__``
MODULES = [name for name in ALL if hasattr(importlib.import_module(name), '__all__')]


def pages():
    return {page.stem: page.read_text(encoding='utf-8') for page in API.glob('*.rst')}


@functools.cache
def entries():
    """Return the modules that the pages show, in order."""
    text = '\n'.join(pages().values())
    shown = []
    for name, recursive in _ENTRY.findall(text):
        shown.append(name)
        if recursive:
            within = (module for module in MODULES if module.startswith(f'{name}.'))
            shown += [module for module in within if names_left(module)]
    return shown


def names_left(module):
    """Return the public names of a module that no package above it shows."""
    names, package = importlib.import_module(module).__all__, module
    while package := package.rpartition('.')[0]:
        above = importlib.import_module(package)
        shown = [name for name in getattr(above, '__all__', ()) if is_same(name, module, package)]
        names = [name for name in names if name not in shown]
    return names


def is_same(name, *modules):
    """Return whether modules have the same object of a name."""
    values = [getattr(importlib.import_module(module), name, None) for module in modules]
    return values[0] is values[1]


def has_comment(module, name):
    """Return whether a constant has a comment ``#:`` before its definition."""
    pattern = re.compile(rf'^#: .*\n(?:#: .*\n)*{name}\b.* = ', re.MULTILINE)
    value = getattr(importlib.import_module(module), name)
    places = [o for o in ALL if getattr(importlib.import_module(o), name, None) is value]
    modules = map(importlib.import_module, places)
    return any(pattern.search(inspect.getsource(module)) for module in modules)


#: modules of the originals' names, besides their whole package
OF_ORIGINALS = ('mxnet_pretrained_bert', 'bert.tokenization', 'bert_embedding.bert')


def test_a_public_name_is_in_one_list_and_in_the_reference():
    """In the list of the package, if users import it from there, else in its module's.

    A package's list may also take in the whole lists of its modules, as `bert` does.
    """
    for module in MODULES:
        left, names = names_left(module), importlib.import_module(module).__all__
        assert entries().count(module) in ((1,) if left else (0, 1)), module
        is_package = hasattr(importlib.import_module(module), '__path__')
        assert is_package or module.startswith(OF_ORIGINALS) or left in (names, []), module


def test_entries_are_modules():
    packages = {module.rpartition('.')[0] for module in MODULES}
    assert {*entries()} <= {*MODULES} | packages


def test_pages_are_listed():
    listed = re.findall(r'^   (\w+)$', pages()['index'], re.MULTILINE)
    assert sorted([*listed, 'index']) == sorted(pages())


def test_public_names_are_explained():
    names = [
        (module, name) for module in MODULES for name in importlib.import_module(module).__all__
    ]
    for module, name in names:
        value = getattr(importlib.import_module(module), name)
        if inspect.isclass(value) or inspect.isroutine(value):
            # a class's own: a dataclass without one gets its signature from Python
            doc = value.__doc__ or ''
            assert doc.strip() and not doc.startswith(f'{name}('), f'{module}.{name}'
        else:
            assert has_comment(module, name), f'{module}.{name} lacks a comment "#: ..." before it'
