"""Requests' JSON, checked."""

from ...errors import InputError
from ...util.files import parse_json
from .errors import TooLargeError

__all__ = ['check_texts', 'read_object', 'take']

NUMBER = (int, float)


def read_object(body):
    """The JSON object of a request's body.

    Parameters
    ----------
    body : bytes

    Returns
    -------
    dict
    """
    try:
        content = parse_json(body)
    except ValueError as error:
        raise InputError(f'the body of the request is no JSON: {error}') from None
    if not isinstance(content, dict):
        raise InputError(f'the body must be a JSON object, not {_kind(content)}')
    return content


def take(content, name, kinds, default=...):
    """A field of a request.

    Parameters
    ----------
    content : dict
    name : str
    kinds : type or tuple of type
        What it may be. A bool is no number.
    default : object
        If the field is missing or null; without it the field must be there.
    """
    value = content.get(name)
    if value is None:
        if default is ...:
            raise InputError(f'{name} is missing')
        return default
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = ' or '.join(each.__name__ for each in kinds)
        raise InputError(f'{name} must be {wanted}, not {_kind(value)}')
    return value


def check_texts(inputs, settings):
    """Raise TooLargeError if there are too many texts, or too long ones.

    Parameters
    ----------
    inputs : str, list or dict
        Texts, nested in any way.
    settings : Settings

    Returns
    -------
    int
        Characters of all texts.
    """
    total, count, left = 0, 0, [inputs]
    while left:
        each = left.pop()
        if isinstance(each, str):
            count, total = count + 1, total + len(each)
            if len(each) > settings.max_text:
                raise TooLargeError(
                    f'a text has {len(each)} characters; this server takes {settings.max_text} at '
                    'most'
                )
            if count > settings.max_texts:
                raise TooLargeError(
                    f'the request has more than {settings.max_texts} texts: send several requests'
                )
        elif isinstance(each, dict):
            left += each.values()
        elif isinstance(each, list):
            left += each
    return total


def _kind(value):
    names = {dict: 'object', list: 'list', str: 'str', type(None): 'null'}
    return names.get(type(value), type(value).__name__)
