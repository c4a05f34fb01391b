"""Settings: dataclasses whose fields are keywords in Python, and flags on the command line.

A field has a type, a default, a line of help and bounds, and checks its value. The command's parser
is made from the fields, and a run's results.json has their values.
"""

import copy
import dataclasses
import itertools
import math
import operator
import os
import types
import typing

from ..errors import InputError, UnknownNameError

#: type of a number of things, at least 1
Count = typing.NewType('Count', int)

_NAMES = {int: 'a whole number', float: 'a number', str: 'a text', bool: 'true or false'}
_BOUNDS = {'at_least': operator.ge, 'above': operator.gt, 'below': operator.lt}
_BOUNDS['at_most'] = operator.le


def setting(
    default=None,
    help=None,
    marks='',
    *,
    choices=None,
    needs='',
    excludes='',
    aliases='',
    flag=types.MappingProxyType({}),
    **bounds,
):
    """Declare a field of a `Settings` class. Several names are in one text, with spaces.

    Parameters
    ----------
    default : object
    help : str, optional
        The line that ``--help`` shows.
    marks : str
        'usual': ``--help`` of a command with many flags shows it. The others say what another value
        means when a run is resumed; without one the run is refused. 'mutable': nothing. 'run':
        nothing, and a file of settings leaves it out, since it is of one run. 'total': another
        number of updates. 'size', 'number': the size of a worker's batch, and how many batches an
        update has, whose product must be the same.
    choices : sequence, optional
        All allowed values.
    needs, excludes : str
        Other fields that must, or can't, be given with this one.
    aliases : str
        Other names, of earlier versions and other projects, that the command line, files of
        settings, Python and saved jobs accept.
    flag : dict, optional
        Further arguments of argparse's ``add_argument``, if the command line accepts other forms.
    **bounds
        Of a number, which then must be finite: `at_least`, `above`, `below`, `at_most`.
    """
    metadata = {'help': help, 'choices': choices, 'flag': flag, 'bounds': bounds}
    names = {'marks': marks, 'needs': needs, 'excludes': excludes, 'aliases': aliases}
    metadata.update((name, words.split()) for name, words in names.items())
    return dataclasses.field(default=default, metadata=metadata)


def value_type(field):
    """Return the type of a field's value, or of its items, and whether it is a list of them."""
    kind, is_list = field.type, False
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        (kind,) = (item for item in typing.get_args(kind) if item is not type(None))
    if typing.get_origin(kind) is list:
        (kind,), is_list = typing.get_args(kind), True
    return kind, is_list


def _checked(field, value):
    """Return a field's value, converted; InputError if it can't be used."""
    kind, is_list = value_type(field)
    if value is None or not is_list:
        return value if value is None else _converted(field, kind, value)
    if isinstance(value, str) and kind is str:
        value = [part.strip() for part in value.split(',')]
    if isinstance(value, dict) and kind is str:
        value = [f'{name}={item}' for name, item in value.items()]
    if not isinstance(value, (list, tuple)):
        raise InputError(f'must be a list, not {value!r}', field=field.name)
    return [_converted(field, kind, item) for item in value]


def _converted(field, kind, value):
    choices, bounds = field.metadata['choices'], field.metadata['bounds']
    if kind is Count:
        kind, bounds = int, {'at_least': 1, **bounds}
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is str and isinstance(value, os.PathLike):
        value = os.fspath(value)
    elif kind is str and type(value) is int:
        value = str(value)
    elif type(value) is float and value.is_integer() and int in (kind, type(field.default)):
        value = int(value)  # epochs, too, whose number is usually whole
    fits = is_number if kind is float else isinstance(value, kind)
    if not fits or (kind is int and isinstance(value, bool)):
        raise InputError(f'must be {_NAMES[kind]}, not {value!r}', field=field.name)
    if choices is not None:
        UnknownNameError.check('value', value, choices, field.name)
    fits = [_BOUNDS[name](value, bound) for name, bound in bounds.items()]
    if bounds and not (all(fits) and math.isfinite(value)):
        shown = [f'{name.replace("_", " ")} {bound:g}' for name, bound in bounds.items()]
        raise InputError(f'must be {" and ".join(shown)}, not {value}', field=field.name)
    return value


@dataclasses.dataclass(init=False)
class Settings:
    """Base of all settings, whose values don't change: `copy` makes settings with other values.

    A subclass declares its fields, and may change defaults of inherited ones:
    ``class MySettings(FinetuneSettings, lr=2e-4)``.

    Attributes
    ----------
    given : frozenset of str
        The fields that the caller has given: the keywords, or what the positional argument names.
    """

    __slots__ = ('__dict__', 'given')  # `vars` has the fields alone

    #: title of the fields' group in a command's help
    title = 'training'
    #: fields whose defaults are for many rows; few rows have others, by their number
    by_rows = ()
    # what a run does whose settings lack these fields
    allreduce_dtype = batch_tokens = best_by = clip_each = comm_backend = data_dir = deploy = None
    dev_split = do_lower_case = early_stop = eval_interval = example = freeze = None
    max_eval_steps = max_length = only_calibration = phase2 = profile = round_to = None
    start_step = verbose = None
    engine, lr_schedule, max_grad_norm = 'mxnet', 'linear', 1.0

    def __init_subclass__(cls, **defaults):
        dataclasses.dataclass(init=False)(cls)
        fields = cls.__dataclass_fields__
        for name, default in defaults.items():
            fields[name] = copy.copy(fields[name])
            fields[name].default = default

    def __init__(self, given=None, /, **fields):
        fields = self.by_names(fields)
        self.given = frozenset(fields if given is None else given)
        for field in dataclasses.fields(self):
            vars(self)[field.name] = _checked(field, fields.get(field.name, field.default))
        for field in filter(lambda field: self.is_given(field.name), dataclasses.fields(self)):
            for other in itertools.filterfalse(self.is_given, field.metadata['needs']):
                raise InputError(f'needs `{other}`', field=field.name)
            for other in filter(self.is_given, field.metadata['excludes']):
                raise InputError(f'and `{other}` exclude each other', field=field.name)
        vars(self).update(self.derived())
        self.check()

    def __setattr__(self, name, value):
        if name != 'given':
            raise dataclasses.FrozenInstanceError(f'use copy({name}=...) instead')
        super().__setattr__(name, value)

    def derived(self):
        """Return values that follow from other fields, by name; a subclass adds to its base's."""
        return {}

    def check(self):
        """Raise InputError if fields contradict each other; a subclass calls its base's method."""

    @classmethod
    def defaults(cls):
        """Return the default of each field, by name."""
        return {field.name: field.default for field in dataclasses.fields(cls)}

    @classmethod
    def aliases(cls):
        """Return the names of the fields, by their other names."""
        fields = dataclasses.fields(cls)
        return {alias: field.name for field in fields for alias in field.metadata['aliases']}

    @classmethod
    def by_names(cls, values):
        """Return values by the names of their fields instead of other names of these.

        UnknownNameError for a name that no field has.
        """
        aliases, named = cls.aliases(), {}
        for name, value in values.items():
            field = name if name in cls.__dataclass_fields__ else aliases.get(name, name)
            UnknownNameError.check('setting', field, cls.__dataclass_fields__)
            if field in named:
                raise InputError(f'and `{name}` are the same setting: use one', field=field)
            named[field] = value
        return named

    @classmethod
    def marked(cls, *marks):
        """Return the names of the fields with one of these marks; see `setting`."""
        fields = dataclasses.fields(cls)
        return tuple(f.name for f in fields if not set(marks).isdisjoint(f.metadata['marks']))

    @classmethod
    def rivals(cls, name):
        """Return the names of the fields that exclude a field, or that it excludes."""
        excludes = {field.name: field.metadata['excludes'] for field in dataclasses.fields(cls)}
        return {*excludes[name], *(other for other in excludes if name in excludes[other])}

    def is_given(self, name):
        """Return whether the caller has given a field a value; None and False switch nothing on."""
        value = vars(self)[name]
        return name in self.given and value is not None and value is not False

    def copy(self, **changes):
        """Return settings with other values of some fields, which are checked, and given."""
        changes = self.by_names(changes)
        return type(self)(self.given.union(changes), **{**vars(self), **changes})

    def with_defaults(self, **values):
        """Return settings with other values of some fields, which don't count as given."""
        return type(self)(self.given, **{**vars(self), **values})

    def to_repeat(self):
        """Return the values that repeat a run: those given, and others that its result depends on.

        A value that wasn't given is left out where it can't stand beside one that was.
        """
        left_out = {n for n in vars(self) if any(map(self.is_given, self.rivals(n)))}
        left_out = (left_out.union(self.marked('mutable')) - self.given).union(self.marked('run'))
        return {name: value for name, value in vars(self).items() if name not in left_out}

    def fit_length(self, name, longest):
        """Return settings with a default number of tokens that a model takes.

        InputError for a given number that is larger.
        """
        length = vars(self)[name]
        if length > longest and self.is_given(name):
            raise InputError(f'{length}: the model takes {longest} tokens at most', field=name)
        return self.with_defaults(**{name: min(length, longest)})
