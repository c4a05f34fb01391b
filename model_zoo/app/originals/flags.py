"""How a command takes the flags of the originals' scripts besides its own."""

from .. import cli
from .table import TABLE

__all__ = ['add_originals', 'convert_originals']


def add_originals(parser, command):
    """Let a command take the flags that `TABLE` has for it; its own are to be there already."""
    groups = {}
    for flag, original in TABLE[command].items():
        if isinstance(original, str):
            parser.add_alias(flag, original)
            continue
        title = "the originals'" if original.has_effect else 'accepted, without effect'
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        groups[title].add_argument(f'--{flag}', help=original.help, **original.options)
        parser.rank_last(flag)


def convert_originals(args, command):
    """Convert the originals' flags to ours, and remove the originals' from `args`.

    The log will say of those that have no effect why.
    """
    rows = {
        flag: original
        for flag, original in TABLE[command].items()
        if not isinstance(original, str) and original.ours is None
    }
    for original in rows.values():
        if original.convert is not None:
            original.convert(args)
    for flag, original in rows.items():
        if not original.has_effect and getattr(args, flag) not in (None, False):
            cli.note(f'--{flag} has no effect: {original.help}')
        delattr(args, flag)
