"""Values that users give, declared once as fields of pydantic models."""

from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, InstanceOf, ValidationError, model_validator

from ..errors import InputError, UnknownNameError

Text = Annotated[str, Field(strict=True)]
#: a text for a tokenizer, which replaces lone surrogates
AnyText = InstanceOf[str]
Flag = Annotated[bool, Field(strict=True)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Whole = Annotated[int, Field(strict=True)]
#: a number of things, at least 0
Size = Annotated[Whole, Field(ge=0, le=2**31 - 1)]
#: a number of things, at least 1
Count = Annotated[Whole, Field(ge=1, le=2**31 - 1)]


class Fields(BaseModel):
    """Values by name. `read` checks them."""

    model_config = ConfigDict(extra='forbid')

    @classmethod
    def read(cls, values, noun='field'):
        """Make the model of a dict; errors are InputError, or UnknownNameError for a name."""
        if not isinstance(values, dict):
            names = ', '.join(cls.model_fields)
            raise InputError(f'a dict of {names:.300} is expected, not a {type(values).__name__}')
        if cls.model_config['extra'] == 'forbid':  # pydantic would keep an error for each name
            for name in values:
                UnknownNameError.check(noun, name, cls.model_fields)
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise refusal(error) from None


class CallOptions(Fields):
    """Options of a call in Python, which may be numbers and arrays of NumPy."""

    @model_validator(mode='before')
    @classmethod
    def _plain(cls, values):
        return _without_numpy(values)


def _without_numpy(value):
    if isinstance(value, dict):
        return {name: _without_numpy(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return list(map(_without_numpy, value))
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def requirement(message):
    """Return a message of pydantic in this project's words, such as 'it must be at least 1'."""
    message = message.replace('Input should', 'it must')
    message = message.replace('greater than or equal to', 'at least')
    return message.replace('less than or equal to', 'at most')


def refusal(error):
    """Return an error about the first problem; about all of a field that may have several types."""
    errors = error.errors(include_url=False)
    first, name = errors[0], errors[0]['loc'][0]
    if first['type'] == 'missing':
        return InputError(f'{".".join(map(str, first["loc"]))} is missing')
    alike = [error for error in errors if error['loc'][0] == name]
    if len(alike) == 1:
        name = '.'.join(map(str, first['loc']))
    problems = [str(error.get('ctx', {}).get('error') or error['msg']) for error in alike[:4]]
    problems = requirement(', or '.join(dict.fromkeys(problems)))
    return InputError(f'`{name}` is {_shown(first["input"])}; {problems}')


def _shown(value):
    try:
        return f'{value!r:.80}'
    except ValueError:  # a number of thousands of digits
        return f'a long {type(value).__name__}'
