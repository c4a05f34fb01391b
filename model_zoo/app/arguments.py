"""The flags that the training scripts have in common, and their checks."""

import dataclasses

from ..errors import InputError, rename_fields
from ..training.settings import DeviceSettings, TrainingSettings, value_type
from . import cli

#: types of the command line by the names that fields have for them
_TYPES = {'boolean': cli.boolean, 'number': cli.number}


def add_settings(parser, cls):
    """Add a flag to a parser for each field of a `Settings` class, grouped by its bases."""
    if issubclass(cls, DeviceSettings):
        parser.add_config()
    titles, groups = {}, {}
    for base in reversed(cls.__mro__):
        for name in base.__dict__.get('__annotations__', ()):
            titles.setdefault(name, getattr(base, 'title', None))
    defaults = cls.defaults()
    for field in dataclasses.fields(cls):
        title = titles[field.name]
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        _add(parser, field, defaults, groups[title])
    for field in dataclasses.fields(cls):
        parser.add_aliases(field.name, *field.metadata['aliases'])


def add_fields(parser, cls, *names):
    """Add the flags of some fields of a `Settings` class."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for name in names:
        _add(parser, fields[name], cls.defaults(), parser)


def _add(parser, field, defaults, group):
    value_class, is_list = value_type(field)
    options = {'default': defaults[field.name]}
    if field.metadata['help']:
        options['help'] = rename_fields(field.metadata['help'], '--{}'.format)
    known = field.metadata['choices']
    if known is not None:
        options['choices'] = list(known)
    if is_list:
        options['nargs'] = '+'
    if value_class is not bool and value_class is not str:
        options['type'] = value_class
    elif value_class is bool and 'type' not in field.metadata['flag']:
        options['action'] = 'store_true'
    options.update(field.metadata['flag'])
    if 'type' in options:
        options['type'] = _TYPES.get(options['type'], options['type'])
    if options.pop('rank_last', False):  # an abbreviation is another flag's
        parser.rank_last(field.name)
    action = group.add_argument(f'--{field.name}', **options)
    action.is_usual = field.metadata['usual']


def check_training_arguments(args):
    """Raise InputError, naming the flag, if a value of `TrainingSettings` can't be used."""
    names = [field.name for field in dataclasses.fields(TrainingSettings)]
    checked = TrainingSettings(**{name: getattr(args, name) for name in names})
    vars(args).update(vars(checked))


def check_at_least_one(args, *names):
    """Raise InputError, naming the flag, if one of these was given as less than 1."""
    for name in names:
        value = getattr(args, name)
        if value is not None and value < 1:
            raise InputError(f'must be at least 1, not {value}', field=name)
