"""What a shell offers when Tab is pressed: commands, their flags, and the choices of a flag."""

import argparse
import shlex
from typing import Dict, NamedTuple, Sequence

from . import cli

__all__ = ['SHELLS', 'CommandHelp', 'completion', 'help_of']

#: shells that `completion` knows
SHELLS = ('bash', 'zsh', 'fish')


class CommandHelp(NamedTuple):
    """What there is to say of a command.

    Parameters
    ----------
    about : str
        A line.
    flags : dict of str to str
        Flag with its dashes -> help.
    choices : dict of str to sequence of str
        Flag -> its values, if these are known.
    """

    about: str
    flags: Dict[str, str]
    choices: Dict[str, Sequence[str]]


class _ParserFound(BaseException):
    """Raised in the place of parsing."""


def help_of(main, about):
    """The `CommandHelp` of a command.

    Parameters
    ----------
    main : callable
        ``main(argv)``, which begins with parsing.
    about : str

    Returns
    -------
    CommandHelp
    """
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
    """A script by which a shell completes a program's commands.

    Parameters
    ----------
    shell : str
        One of `SHELLS`.
    program : str
    commands : dict of str to CommandHelp

    Returns
    -------
    str
    """
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
