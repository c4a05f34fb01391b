"""Write commands.json: the flags of each command, and its help.

    python record_commands.py CHECKOUT OUTPUT
"""

import pathlib
import sys

from command_flags import command_names, flags_of, main_of, parser_of, write_records


def record(root):
    commands = {}
    for name in command_names(root):
        parser = parser_of(main_of(name, root))
        parser.prog = name.rpartition('/')[2]
        groups = [
            [action.dest for action in group._group_actions]
            for group in parser._mutually_exclusive_groups
        ]
        commands[name] = {
            'flags': flags_of(parser),  # first: to format the help changes the flags' own
            'exclusive': groups,
            'help': parser.format_help().splitlines(),
        }
    return commands


if __name__ == '__main__':
    root, output = map(pathlib.Path, sys.argv[1:])
    write_records(output / 'commands.json', record(root), depth=3)
