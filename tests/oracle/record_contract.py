"""Write tests/fixtures/contract.json: the names and flags that README and docs show.

    python tests/oracle/record_contract.py

Recorded with version 0.2; later versions are held against it by tests/unit/test_shown_names.py. The
reference in docs/api isn't read: it lists whatever is there.
"""

import ast
import importlib
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / 'tests'), str(ROOT / 'scripts' / 'originals')]

from command_flags import command_names, flags_of, main_of, parser_of, write_records  # noqa: E402

PACKAGES = (
    'model_zoo|bert_embedding|bert|gpt2|gpt|transfo_xl|export|mxnet_pretrained_bert'
)
#: `model_zoo.get_model` in a text
DOTTED = re.compile(rf'(?<![\w./-])(?:{PACKAGES})(?:\.[A-Za-z_]\w*)+(?![\w/-])')
#: `from bert import BertModel`, also over several lines in parentheses
IMPORT = re.compile(rf'\bfrom (?:{PACKAGES})(?:\.\w+)* import (?:\([^)]*\)|.+)')
#: what a record of a flag is compared by
PARTS = ('flags', 'dest', 'default', 'const', 'nargs', 'choices', 'required')


def texts():
    """Path below the project -> text, of all documents but the reference."""
    paths = [ROOT / 'README.rst', *ROOT.glob('docs/*.rst'), *ROOT.glob('docs/[!a]*/*.rst')]
    found = {path.relative_to(ROOT).as_posix(): path.read_text('utf-8') for path in paths}
    for path in ROOT.glob('docs/notebooks/*.ipynb'):
        cells = json.loads(path.read_text('utf-8'))['cells']
        text = '\n'.join(''.join(cell['source']) for cell in cells)
        found[path.relative_to(ROOT).as_posix()] = text
    return found


def names_in(text):
    """The 'module:name' that a text shows, those alone that can be imported."""
    names = {tuple(dotted.split('.')) for dotted in DOTTED.findall(text)}
    for line in IMPORT.findall(text):
        try:
            (node,) = ast.parse(line.strip()).body
        except SyntaxError:
            continue
        module = tuple(node.module.split('.'))
        names |= {(*module, alias.name) for alias in node.names}
    return {name for name in map(resolve, names) if name}


def resolve(parts):
    """'module:name' of a dotted path, its longest part that is a module before the colon."""
    for length in range(len(parts), 0, -1):
        module, name = '.'.join(parts[:length]), '.'.join(parts[length:])
        try:
            value = importlib.import_module(module)
            return ':'.join((module, name)) if name and has(value, name) else module
        except ImportError:
            continue
        except AttributeError:
            return None
    return None


def has(value, name):
    """Whether there is what a dotted name says; AttributeError if not."""
    for part in name.split('.'):
        value = getattr(value, part)
    return True


def main():
    documents = texts().values()
    commands = {
        name: flags_of(parser_of(main_of(name, ROOT))) for name in command_names(ROOT)
    }
    contract = {
        'names': sorted(set().union(*map(names_in, documents))),
        'flags': {
            name: [{part: flag[part] for part in PARTS if part in flag} for flag in flags]
            for name, flags in commands.items()
        },
    }
    write_records(ROOT / 'tests' / 'fixtures' / 'contract.json', contract, 3)


if __name__ == '__main__':
    main()
