"""From the command line to settings: the fields of a dataclass are the flags."""

from . import cli
from .arguments import add_settings
from .originals import add_originals, convert_originals

__all__ = ['parse_settings']


def parse_settings(cls, doc, argv=None, originals=None):
    """The settings of a command line.

    Parameters
    ----------
    cls : type
        A `Settings` class.
    doc : str
        Of the command; its first line is the description.
    argv : list of str, optional
    originals : str, optional
        The command whose originals' flags are taken, too.
    """
    parser = cli.parser(doc.split('\n')[0])
    add_settings(parser, cls)
    if originals is not None:
        add_originals(parser, originals)
    args = parser.parse_args(argv)
    if originals is not None:
        convert_originals(args, originals)
    return cls(**vars(args))
