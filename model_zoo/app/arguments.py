"""The flags that the training scripts have in common, their checks, and the devices they name."""

import dataclasses
import re

from ..errors import InputError
from ..training.settings import DeviceSettings, TrainingSettings, value_type
from . import cli

#: types of the command line by the names that fields have for them
_TYPES = {'boolean': cli.boolean, 'whole_number': cli.whole_number}


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


def add_fields(parser, cls, *names):
    """Add the flags of some fields of a `Settings` class."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for name in names:
        _add(parser, fields[name], cls.defaults(), parser)


def _add(parser, field, defaults, group):
    value_class, is_list = value_type(field)
    options = {'default': defaults[field.name]}
    if field.metadata['help']:
        options['help'] = re.sub(r'`(\w+)`', r'--\1', field.metadata['help'])
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
    group.add_argument(f'--{field.name}', **options)


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
            raise InputError(f'--{name} {value}: give 1 or more')


def find_contexts(gpus, workers, gpu=None):
    """The devices of this process: several GPUs, one, or the CPU."""
    if gpus and gpu is not None:
        raise InputError(f'--gpu {gpu} and --gpus {gpus} both name the GPUs: give one')
    import mxnet as mx

    from ..util.arrays import check_gpu

    if not (gpus or '').strip():
        if workers.size > 1 and gpu is not None:
            gpu = workers.local_rank
        return [cli.get_ctx(gpu)]
    try:
        numbers = [int(number) for number in gpus.split(',')]
    except ValueError:
        raise InputError(f'--gpus {gpus!r}: give numbers, such as 0 or 0,2,5') from None
    if len(set(numbers)) < len(numbers):
        raise InputError(f'--gpus {gpus}: give each number once')
    if workers.size > 1:
        if workers.local_rank >= len(numbers):
            raise InputError(
                f'--gpus {gpus}: there are more workers on this machine than these GPUs'
            )
        numbers = [numbers[workers.local_rank]]
    for number in numbers:
        check_gpu(number, f'--gpus {gpus}')
    return [mx.gpu(number) for number in numbers]
