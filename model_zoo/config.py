"""The base of the families' configurations."""

import copy
import dataclasses
import json
import math

from .errors import InputError, ZooError
from .files import atomic_write

__all__ = ['Config']


@dataclasses.dataclass
class Config:
    """Hyper-parameters of a model, with the field names of the originals' JSON files.

    A subclass is a dataclass: it lists the fields with their defaults. Fields of a file that the
    subclass doesn't know (``"transformers_version"`` and the like) are kept in `extras` and
    written back, so that a file that passes through here loses nothing.
    """

    def __post_init__(self):
        self.extras = {}

    @classmethod
    def from_dict(cls, values):
        """Build a configuration from a dict; unknown fields go to `extras`.

        Parameters
        ----------
        values : dict

        Returns
        -------
        Config

        Raises
        ------
        InputError
            If a value has the wrong type or can't be right.
        """
        names = {field.name for field in dataclasses.fields(cls)}
        config = cls(**{name: value for name, value in values.items() if name in names})
        config.extras = {name: value for name, value in values.items() if name not in names}
        return config

    @classmethod
    def from_json_file(cls, path):
        """Read a configuration such as ``bert_config.json`` or ``config.json``.

        Raises
        ------
        InputError
            If the file is missing, isn't JSON, or holds bad values.
        """
        try:
            with open(path, encoding='utf-8') as file:
                values = json.load(file)
        except (OSError, ValueError) as error:
            raise InputError(f'cannot read the configuration {str(path)!r}: {error}') from error
        if not isinstance(values, dict):
            raise InputError(f'the configuration {str(path)!r} is not a JSON object')
        try:
            return cls.from_dict(values)
        except ZooError as error:
            raise InputError(f'the configuration {str(path)!r}: {error}') from error

    def copy(self):
        """A configuration of its own with the same values."""
        return type(self).from_dict(self.to_dict())

    def to_dict(self):
        """The fields, and what `from_dict` did not know, as a dict of their own."""
        return {**copy.deepcopy(self.extras), **dataclasses.asdict(self)}

    def to_json_string(self):
        """The configuration as indented JSON, with its keys sorted."""
        return json.dumps(self.to_dict(), indent=2, sort_keys=True) + '\n'

    def to_json_file(self, path):
        """Write the configuration to `path`, whole or not at all."""
        with atomic_write(path) as file:
            file.write(self.to_json_string())

    def _check_positive(self, *names):
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f'{name} must be a positive integer, but is {value!r}')

    def _check_rate(self, *names):
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not 0 <= value < 1:
                raise InputError(f'{name} must be a rate in [0, 1), but is {value!r}')

    def _check_not_negative(self, *names):
        for name in names:
            value = getattr(self, name)
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not 0 <= value < math.inf:
                raise InputError(f'{name} must be a number of at least 0, but is {value!r}')
