"""The command ``zoo``: every script of the project by its name.

    zoo finetune-classifier --task_name MRPC --epochs 3
    zoo convert_tf_checkpoint_to_pytorch bert_model.ckpt bert_config.json pytorch_model.bin
    zoo google run_classifier --task_name=MRPC --do_train=true ...

In a clone the same is ``python scripts/finetune_classifier.py`` and so on.
"""

import itertools
import pathlib
import re
import sys

import model_zoo
from model_zoo.app import cli
from model_zoo.app.originals import load_script
from model_zoo.errors import InputError, did_you_mean

HERE = pathlib.Path(__file__).resolve().parent
#: command -> the file that it runs; all others have the files' own names
SHORT = {
    'convert': 'convert_checkpoint.py',
    'export': '../export/export.py',
    'generate': 'generate_gpt2.py',
    'pretrain': 'run_pretraining.py',
}
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
    """Return each command's file; the originals' scripts come last."""
    originals, commands = HERE / 'originals', {name: HERE / file for name, file in SHORT.items()}
    for path in HERE.glob('*.py'):
        if path.stem not in ('__init__', 'zoo'):
            commands[path.stem.replace('_', '-')] = path
    converters = {path.stem: path for path in sorted(originals.glob('*/convert_*.py'))}
    scripts = {
        path.relative_to(originals).with_suffix('').as_posix(): path
        for path in sorted(originals.glob('*/*.py'))
        if path.stem not in converters and not (path.parent / '__init__.py').exists()
    }
    return {**dict(sorted(commands.items())), **converters, **scripts}


def describe(path):
    """Return the first line of a command's documentation."""
    with open(path, encoding='utf-8') as file:
        return file.readline().strip().strip('"')


def print_help(commands, everything=False):
    scripts = [name for name in commands if '/' in name]
    converters = [name for name in commands if name.startswith('convert_')]
    groups, usual = dict(USUAL), {name for group in USUAL.values() for name in group}
    if everything:
        others = [name for name in commands if name not in usual.union(scripts, converters)]
        groups['more commands'] = others
        groups['converters of pytorch-pretrained-bert'] = converters
        groups['scripts of others, with their flags and defaults (also in two words)'] = scripts
    print('usage: zoo COMMAND [flags]; zoo COMMAND --help; zoo --version')
    seen = {}
    for heading, group in groups.items():
        print(f'\n{heading}:')
        width = max(24, *map(len, group))
        for name in group:
            first = seen.setdefault(commands[name], name)
            text = describe(commands[name]) if first == name else f'The same as {first}.'
            print(f'  {name:{width}} {text.replace("`", "")}')
    if not everything:
        print("\nother projects' scripts, with their flags and defaults:")
        for folder, names in itertools.groupby(scripts, lambda name: name.partition('/')[0]):
            print(f'  {folder:24} zoo {next(names).replace("/", " ")}, for example')
        print('\nzoo --help-all lists all commands and their other names')


def main(argv=None):
    argv = sys.argv[1:] if argv is None else list(argv)
    commands = list_commands()
    if not argv or argv[0] in ('-h', '--help', 'help'):
        return print_help(commands)
    if argv[0] == '--help-all':
        return print_help(commands, everything=True)
    if argv[0] == '--version':
        return print(f'gluon-transformer-zoo {model_zoo.__version__}')
    if '/'.join(argv[:2]) in commands:
        argv[:2] = ['/'.join(argv[:2])]
    elif argv[0] == 'pytorch_pretrained_bert' and argv[1:]:
        del argv[0]  # its converters are known by one word
    name = find(argv[0], commands)
    sys.argv[0] = f'zoo {name.replace("/", " ")}'  # the name in its messages
    return load_script(commands[name]).main(argv[1:])


def find(name, commands):
    """Return the command of a name, which may have dashes or underscores."""
    spellings = [name, name.replace('_', '-'), name.replace('-', '_')]
    if name.startswith('convert'):  # the modules' names
        spellings.append(re.sub('_to_pytorch$', '', spellings[-1]))
    for spelling in spellings:
        if spelling in commands:
            return spelling
    begin = name.replace('-', '').replace('_', '')
    near = [
        command
        for heading, group in USUAL.items()
        for command in group
        if heading.startswith(f'{name} ') or command.replace('-', '').startswith(begin)
    ]
    hint = f'; did you mean {" or ".join(near)}?' if near else did_you_mean(name, commands) or ';'
    raise InputError(f'there is no command {name!r}{hint} zoo --help-all lists all')


def console():
    """Run the installed command."""
    return cli.run(main)


if __name__ == '__main__':
    sys.exit(console())
