"""The command ``zoo``: every script of the project by its name.

    zoo finetune-classifier --task_name MRPC --epochs 3
    zoo convert_tf_checkpoint_to_pytorch bert_model.ckpt bert_config.json pytorch_model.bin
    zoo google run_classifier --task_name=MRPC --do_train=true ...

In a clone the same is ``python scripts/finetune_classifier.py`` and so on.
"""

import importlib
import pathlib
import re
import sys

import model_zoo
from model_zoo.app import cli
from model_zoo.app.originals import load_script
from model_zoo.errors import InputError, did_you_mean

HERE = pathlib.Path(__file__).resolve().parent
#: command -> module and function that it runs
FUNCTIONS = {'embed': ('bert_embedding.cli', 'embed')}
#: command -> the file that it runs; all others have the files' own names
SHORT = {
    'convert': 'convert_checkpoint.py',
    'export': '../export/export.py',
    'generate': 'generate_gpt2.py',
    'pretrain': 'run_pretraining.py',
}
OWN = {'__init__', 'zoo'}
#: what --help shows: heading -> commands
USUAL = {
    'use a model': ('predict', 'ask', 'tag', 'fill', 'generate', 'embed', 'search', 'info'),
    'train a model': (
        'finetune-classifier',
        'finetune-tagging',
        'finetune-squad',
        'finetune-embedding',
    ),
    'deploy a model': ('serve', 'export', 'convert', 'doctor', 'cache'),
    'prepare data': ('create-pretraining-data',),
}


def list_commands():
    """Return each command's file or function; the originals' scripts come last."""
    files = {
        path.stem.replace('_', '-'): path
        for path in sorted(HERE.glob('*.py'))
        if path.stem not in OWN
    }
    commands = {**files, **{name: HERE / file for name, file in SHORT.items()}, **FUNCTIONS}
    originals = HERE / 'originals'
    converters = {path.stem: path for path in sorted(originals.glob('*/convert_*.py'))}
    scripts = {
        path.relative_to(originals).with_suffix('').as_posix(): path
        for path in sorted(originals.glob('*/*.py'))
        if path.stem not in converters and not (path.parent / '__init__.py').exists()
    }
    return {**dict(sorted(commands.items())), **converters, **scripts}


def describe(command):
    """Return the first line of a command's documentation."""
    if isinstance(command, tuple):
        command = HERE.parent.joinpath(*command[0].split('.')).with_suffix('.py')
    with open(command, encoding='utf-8') as file:
        return file.readline().strip().strip('"')


def print_help(commands):
    print_groups(USUAL, commands)
    print("\nother projects' scripts, with their flags and defaults:")
    for folder in sorted({name.partition('/')[0] for name in commands if '/' in name}):
        first = next(name for name in commands if name.startswith(f'{folder}/'))
        print(f'  {folder:24} zoo {first.replace("/", " ")}, for example')
    print('\nzoo --help-all lists all commands and their other names')


def print_groups(groups, commands):
    print('usage: zoo COMMAND [flags]; zoo COMMAND --help; zoo --version')
    seen = {}
    for heading, group in groups.items():
        print(f'\n{heading}:')
        width = max(24, *map(len, group))
        for name in group:
            first = seen.setdefault(commands[name], name)
            text = describe(commands[name]) if first == name else f'The same as {first}.'
            print(f'  {name:{width}} {text.replace("`", "")}')


def all_groups(commands):
    """Return `USUAL`, and the other commands."""
    others = commands.keys() - {name for group in USUAL.values() for name in group}
    scripts = [name for name in commands if '/' in name]
    converters = [name for name in commands if name.startswith('convert_')]
    return {
        **USUAL,
        'more commands': [n for n in commands if n in others - {*scripts, *converters}],
        'converters of pytorch-pretrained-bert': converters,
        'scripts of others, with their flags and defaults (also in two words)': scripts,
    }


def main(argv=None):
    argv = sys.argv[1:] if argv is None else list(argv)
    commands = list_commands()
    if not argv or argv[0] in ('-h', '--help', 'help'):
        return print_help(commands)
    if argv[0] == '--help-all':
        return print_groups(all_groups(commands), commands)
    if argv[0] == '--version':
        return print(f'gluon-transformer-zoo {model_zoo.__version__}')
    if '/'.join(argv[:2]) in commands:
        argv[:2] = ['/'.join(argv[:2])]
    elif argv[0] == 'pytorch_pretrained_bert' and argv[1:] and argv[1].startswith('convert_'):
        del argv[0]  # the converters are known by one word
    name = find(argv[0], commands)
    command = commands[name]
    sys.argv[0] = f'zoo {name.replace("/", " ")}'  # the name in its messages
    if isinstance(command, tuple):
        module, function = command
        return getattr(importlib.import_module(module), function)(argv[1:])
    return load_script(command).main(argv[1:])


def find(name, commands):
    """Return the command of a name, which may have dashes or underscores."""
    spellings = [name, name.replace('_', '-'), name.replace('-', '_')]
    if name.startswith('convert'):  # the modules' names
        spellings.append(re.sub('_to_pytorch$', '', spellings[-1]))
    for spelling in spellings:
        if spelling in commands:
            return spelling
    usual = {command: heading for heading, group in USUAL.items() for command in group}
    begin = name.replace('-', '').replace('_', '')
    near = [
        command
        for command, heading in usual.items()
        if heading.startswith(f'{name} ') or command.replace('-', '').startswith(begin)
    ]
    hint = f'; did you mean {" or ".join(near)}?' if near else did_you_mean(name, commands) or ';'
    raise InputError(f'there is no command {name!r}{hint} zoo --help-all lists all')


def console():
    """Run the installed command."""
    return cli.run(main)


if __name__ == '__main__':
    sys.exit(console())
