"""The flags that commands have in common, and their checks; MXNet isn't loaded for them."""

import dataclasses

from ..errors import InputError, rename_fields
from ..training.settings import Count, DeviceSettings
from ..training.settings_base import value_type
from ..util.choices import ENGINES, FORMATS, LONG_TEXTS
from . import cli


def add_settings(parser, cls):
    """Add a flag to a parser for each field of a `Settings` class, grouped by its bases."""
    if issubclass(cls, DeviceSettings):
        parser.add_config()
    titles, groups = {}, {}
    for base in reversed(cls.__mro__):
        for name in base.__dict__.get('__annotations__', ()):
            titles.setdefault(name, base.title)
    for field in dataclasses.fields(cls):
        title = titles[field.name]
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        _add(groups[title], field, field.name in cls.by_rows)
    parser.usual.update(cls.marked('usual'))
    for alias, name in cls.aliases().items():
        parser.add_aliases(name, alias)


def add_fields(parser, cls, *names):
    """Add the flags of some fields of a `Settings` class."""
    for name in names:
        _add(parser, cls.__dataclass_fields__[name])


def _add(group, field, by_rows=False):
    (kind, is_list), help, default = value_type(field), field.metadata['help'], field.default
    options = {'nargs': '+' if is_list else None, 'type': int if kind is Count else kind}
    if kind is bool:
        options = {'nargs': '?', 'type': cli.boolean, 'const': True, 'metavar': 'true|false'}
    help = help and rename_fields(help, '--{}'.format)
    if by_rows:
        help = f'{help}; default: %(default)s, or by the number of rows'.removeprefix('None; ')
    group.add_argument(
        f'--{field.name}',
        default=list(default) if is_list and default else default,
        help=help,
        choices=field.metadata['choices'],
        **{**options, **field.metadata['flag']},
    )


def check_at_least_one(args, *names):
    """Raise InputError, naming the flag, if one of these was given as less than 1."""
    for name in names:
        value = vars(args)[name]
        if value is not None and value < 1:
            raise InputError(f'must be at least 1, not {value}', field=name)


# -- commands that use a model ---------------------------------------------------------------------


def use_parser(doc, one='text', help='the texts, each in quotes', pairs=True):
    """Return the parser of a command ``zoo VERB MODEL [TEXT ...]``."""
    parser = cli.parser(doc.split('\n')[0])
    add = parser.add_argument
    add('model', help='folder or name of the model')
    add('texts', nargs='*', default=None, metavar=one, help=help)
    add('--file', help='with a text per line, or .csv, .tsv, .jsonl or .parquet; -: standard input')
    add_encoding(parser)
    add('--text_column', metavar='COLUMN', help='of --file: its name or number, from 0')
    parser.set_defaults(text_pair_column=None, one=one)
    if pairs:
        add('--text_pair_column', metavar='COLUMN', help='of --file: the second text of a pair')
    add_use_arguments(parser)
    form = 'default: as --output ends; else a table on a terminal, and jsonl elsewhere'
    add('--format', choices=FORMATS, help=form)
    add('--output', metavar='FILE', help='default: standard output')
    return parser


def add_encoding(parser):
    """Add the flag ``--encoding``."""
    help = 'of the text files, such as cp1252 or utf-16; default: UTF-8'
    parser.add_argument('--encoding', help=help)


def add_long_texts(parser):
    """Add the flag ``--long_texts``."""
    help = 'cut texts that are too long for the model, or read them in windows'
    parser.add_argument('--long_texts', choices=LONG_TEXTS, default=LONG_TEXTS[0], help=help)


def take_model(args, flag, words):
    """Take the first of the words for the model, unless a flag has named that."""
    if words and flag not in args.given:
        vars(args)[flag] = words[0]
        words = words[1:]
    return words


def add_use_arguments(parser):
    """Add ``--engine`` and ``--precision`` to a command that only uses a model."""
    add = parser.add_argument_group('engine').add_argument
    text = 'what runs the model; auto: the fastest one for files, MXNet for a few texts'
    add('--engine', default='auto', choices=ENGINES, help=text)
    add('--precision', default='float32', choices=['float32', 'bfloat16', 'int8'])


def engine_of(engine, precision, has_file):
    """Return the engine of a command; for few texts, without a file, MXNet needs no export."""
    return 'mxnet' if engine == 'auto' and precision != 'int8' and not has_file else engine
