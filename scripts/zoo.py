"""The command ``zoo``: every script of the project by its name.

    zoo finetune-classifier --task_name MRPC --epochs 3
    zoo convert_tf_checkpoint_to_pytorch bert_model.ckpt bert_config.json pytorch_model.bin
    zoo google run_classifier --task_name=MRPC --do_train=true ...

``zoo --completion bash`` (or zsh, fish) prints what a shell needs to complete commands and flags.
In a clone the same is ``python scripts/finetune_classifier.py`` and so on.
"""

import argparse
import ast
import pathlib
import re
import shlex
import sys
from typing import Dict, NamedTuple, Sequence

import bert_embedding.cli
import export.export
import model_zoo
from model_zoo.app import cli, load_script
from model_zoo.errors import InputError, did_you_mean

HERE = pathlib.Path(__file__).resolve().parent
#: command -> the function that it runs
FUNCTIONS = {'embed': bert_embedding.cli.embed, 'export': export.export.main}
#: command -> the file that it runs; all others have the files' own names
SHORT = {
    'compare': 'compare_checkpoints.py',
    'convert': 'convert_checkpoint.py',
    'generate': 'generate_gpt2.py',
    'pretrain': 'run_pretraining.py',
}
OWN = {'__init__', 'zoo'}
#: what --help shows: heading -> commands
USUAL = {
    'use a model': ('predict', 'ask', 'tag', 'fill', 'generate', 'embed', 'search', 'info'),
    'train a model': (
        'finetune-classifier', 'finetune-tagging', 'finetune-squad', 'finetune-embedding'),
    'deploy a model': ('serve', 'export', 'convert', 'doctor'),
    'prepare data': ('create-pretraining-data', 'learn-vocab'),
}  # fmt: skip
#: how --help-all groups the commands that have files in this folder: heading -> beginnings of names
GROUPS = {
    'use a model': (
        'ask', 'embed', 'encode', 'extract', 'fill', 'generate', 'predict', 'search', 'serve',
        'tag'),
    'train a model': (
        'create-pretraining', 'finetune', 'learn-vocab', 'pretrain', 'run-pretraining', 'train'),
}  # fmt: skip
REST = 'models, files and the installation'


def list_commands():
    """Command -> the file or function that it runs; the originals' scripts come last."""
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
    """The first line of a command's documentation."""
    if callable(command):
        text = sys.modules[command.__module__].__doc__
    else:
        text = ast.get_docstring(ast.parse(command.read_text(encoding='utf-8')))
    return text.split('\n')[0]


def print_help(commands):
    print('usage: zoo COMMAND [flags]; zoo COMMAND --help; zoo --version; zoo --completion SHELL')
    for heading, group in USUAL.items():
        print(f'\n{heading}:')
        for name in group:
            print(f'  {name:24} {describe(commands[name])}')
    print("\noriginals' scripts, with their flags and defaults:")
    for folder in sorted({name.partition('/')[0] for name in commands if '/' in name}):
        first = next(name for name in commands if name.startswith(f'{folder}/'))
        print(f'  {folder:24} zoo {first.replace("/", " ")}, for example')
    print('\nzoo --help-all lists all commands, with their other names')


def print_all(commands):
    print('usage: zoo COMMAND [flags]; zoo COMMAND --help; zoo --version; zoo --completion SHELL')
    for heading, group in grouped(commands).items():
        print(f'\n{heading}:')
        width, seen = max(map(len, group)), {}
        for name in group:
            first = seen.setdefault(commands[name], name)
            text = describe(commands[name]) if first == name else f'The same as {first}.'
            print(f'  {name:{width}}  {text.replace("`", "")}')


def grouped(commands):
    """Heading -> names of commands."""
    groups = {heading: [] for heading in (*GROUPS, REST)}
    for name in commands:
        if '/' in name:
            heading = 'scripts of others, with their flags and defaults (also in two words)'
        elif name.startswith('convert_'):
            heading = 'converters of pytorch-pretrained-bert'
        else:
            heading = next((h for h, starts in GROUPS.items() if name.startswith(starts)), REST)
        groups.setdefault(heading, []).append(name)
    return groups


#: shells that `completion` knows
SHELLS = ('bash', 'zsh', 'fish')


class CommandHelp(NamedTuple):
    """What there is to say of a command."""

    about: str
    flags: Dict[str, str]
    choices: Dict[str, Sequence[str]]


class _ParserFound(BaseException):
    """Raised in the place of parsing."""


def help_of(main, about):
    """The `CommandHelp` of a command."""
    found = []

    def take(parser, *args, **options):
        found.append(parser)
        raise _ParserFound

    method, cli.Parser.parse_known_args = cli.Parser.parse_known_args, take
    try:
        main([])
    except _ParserFound:
        pass
    finally:
        cli.Parser.parse_known_args = method
    flags, choices = {}, {}
    for action in found[0]._actions if found else ():
        if action.help == argparse.SUPPRESS:
            continue
        for flag in action.option_strings:
            text = (action.help or '').split('; ')[0].split('\n')[0]
            flags[flag] = text % {'default': action.default} if '%(default)' in text else text
            if action.choices:
                choices[flag] = [str(each) for each in action.choices]
    return CommandHelp(about, flags, choices)


def completion(shell, program, commands):
    """A script by which a shell completes a program's commands."""
    write = {'bash': _bash, 'zsh': _zsh, 'fish': _fish}[shell]
    return '\n'.join(write(program, commands)) + '\n'


def _cases(commands, line):
    """Lines of a `case` with the command and the flag before the cursor."""
    for name, command in commands.items():
        for flag, values in command.choices.items():
            yield line(f'{name} {flag}', values)
        yield line(f'{name} *', command.flags, is_flags=True)


def _bash(program, commands):
    yield f'# {program} --completion bash > ~/.local/share/bash-completion/completions/{program}'
    yield f'_{program}() {{'
    yield '  local current=${COMP_WORDS[COMP_CWORD]} words='
    yield '  local command=${COMP_WORDS[1]} before=${COMP_WORDS[COMP_CWORD-1]}'
    yield '  if [ "$COMP_CWORD" = 1 ]; then'
    yield f'    words={shlex.quote(" ".join(commands))}'
    yield '  else case "$command $before" in'
    yield from _cases(commands, _shell_case)
    yield '  esac; fi'
    yield '  COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield '}'
    yield f'complete -o default -F _{program} {program}'


def _shell_case(pattern, words, is_flags=False):
    before, star, _ = pattern.partition('*')
    pattern = f'{shlex.quote(before)}{star}'
    guard = '[[ $current == -* ]] && ' if is_flags else ''
    return f'    {pattern}) {guard}words={shlex.quote(" ".join(words))} ;;'


def _zsh(program, commands):
    yield f'#compdef {program}'
    yield f'# {program} --completion zsh > a folder of $fpath, as _{program}'
    yield f'_{program}() {{'
    yield '  local current=$words[CURRENT] found='
    yield '  local command=$words[2] before=$words[CURRENT-1]'
    yield '  if (( CURRENT == 2 )); then'
    yield '    local -a commands=('
    for name, command in commands.items():
        yield f'      {shlex.quote(name + ":" + command.about.replace(":", " -"))}'
    yield '    )'
    yield '    _describe command commands; return'
    yield '  fi'
    yield '  case "$command $before" in'
    yield from _cases(commands, lambda *args, **options: _shell_case(*args, **options).replace(
        ' words=', ' found='))  # fmt: skip
    yield '  esac'
    yield '  if [[ -n $found ]]; then compadd -- ${=found}; else _files; fi'
    yield '}'
    yield f'if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _{program} "$@"; else compdef ' \
        f'_{program} {program}; fi'  # fmt: skip


def _fish(program, commands):
    yield f'# {program} --completion fish > ~/.config/fish/completions/{program}.fish'
    for name, command in commands.items():
        about = _fish_quoted(command.about)
        yield f'complete -c {program} -n __fish_use_subcommand -f -a {name} -d {about}'
        for flag, text in command.flags.items():
            kind = '-l' if flag.startswith('--') else '-s' if len(flag) == 2 else '-o'
            line = f"complete -c {program} -n '__fish_seen_subcommand_from {name}' "
            line += f'{kind} {flag.lstrip("-")} -d {_fish_quoted(text)}'
            if flag in command.choices:
                line += f' -x -a {_fish_quoted(" ".join(command.choices[flag]))}'
            yield line


def _fish_quoted(text):
    return "'" + text.replace('\\', '\\\\').replace("'", "\\'") + "'"


def main(argv=None):
    argv = sys.argv[1:] if argv is None else list(argv)
    commands = list_commands()
    if not argv or argv[0] in ('-h', '--help', 'help'):
        return print_help(commands)
    if argv[0] == '--help-all':
        return print_all(commands)
    if argv[0] == '--version':
        return print(f'gluon-transformer-zoo {model_zoo.__version__}')
    if argv[0] == '--completion':
        return print_completion(argv[1:], commands)
    if '/'.join(argv[:2]) in commands:
        argv[:2] = ['/'.join(argv[:2])]
    elif argv[0] == 'pytorch_pretrained_bert' and argv[1:] and argv[1].startswith('convert_'):
        del argv[0]  # the converters are known by one word
    name = find(argv[0], commands)
    command = commands[name]
    sys.argv[0] = f'zoo {name.replace("/", " ")}'  # which its messages call it
    return main_of(command)(argv[1:])


def main_of(command):
    """The function that a command runs with its arguments."""
    return command if callable(command) else load_script(command).main


def print_completion(shells, commands):
    if len(shells) != 1 or shells[0] not in SHELLS:
        raise InputError(f'--completion wants one of {", ".join(SHELLS)}')
    own = {name: each for name, each in commands.items() if '/' not in name}
    helps = {name: help_of(main_of(each), describe(each)) for name, each in own.items()}
    print(completion(shells[0], 'zoo', helps), end='')


def find(name, commands):
    """The command that is meant: names may have dashes or underscores."""
    spellings = [name, name.replace('_', '-'), name.replace('-', '_')]
    if name.startswith('convert'):  # the modules' names
        spellings.append(re.sub('_to_pytorch$', '', spellings[-1]))
    for spelling in spellings:
        if spelling in commands:
            return spelling
    hint = did_you_mean(name, commands) or ';'
    raise InputError(f'there is no command {name!r}{hint} zoo --help-all lists all')


def console():
    """For the installed command."""
    return cli.run(main)


if __name__ == '__main__':
    sys.exit(console())
