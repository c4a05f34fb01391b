"""What others have written: checksums, JSON of a declared shape, and lines of UTF-8."""

import codecs
import dataclasses
import hashlib
import io
import json
import numbers
import os
import re
import sys
import types
import typing

from ..errors import InputError, did_you_mean, reporting
from .remote import open_binary

__all__ = [
    'check_encoding',
    'check_json',
    'decode_at',
    'parse_json',
    'read_json',
    'read_lines',
    'read_span',
    'read_text',
    'sha256_of',
    'state_of',
]

_WORDS = {
    dict: 'an object',
    list: 'a list',
    str: 'a text',
    int: 'a whole number',
    bool: 'true or false',
    float: 'a finite number',
    numbers.Real: 'a number',
    type(None): 'null',
}


def sha256_of(path, algorithm='sha256'):
    """Compute the hexadecimal sha256 of a file, or another algorithm of hashlib."""
    digest = hashlib.new(algorithm)
    with open(path, 'rb') as file:
        while piece := file.read(2**20):
            digest.update(piece)
    return digest.hexdigest()


def state_of(path):
    """Return what differs when a folder or file here has changed: its files' sizes and times."""
    path, states = os.path.expanduser(os.fspath(path)), set()
    folder, name = os.path.split(path)
    for where, _, names in [(folder, (), [name])] if os.path.isfile(path) else os.walk(path):
        for name in names:
            try:
                status = os.stat(os.path.join(where, name))
            except OSError:  # it has gone meanwhile
                continue
            states.add((where, name, status.st_ino, status.st_size, status.st_mtime_ns))
    return frozenset(states)


def read_json(path, what='', shape=object, digest=None, encoding=None):
    """Read a JSON file, of the shape that the caller declares; see `parse_json`.

    `digest`, an object of hashlib, is updated with its content. The default encoding is UTF-8.
    """
    if encoding is not None:
        check_encoding(encoding)
    name = f'{what} {os.fspath(path)!r}'.lstrip()
    try:
        with open_binary(path) as file:
            content = file.read()
        value = json.loads(content.decode(_with_mark(encoding) if encoding else 'utf-8-sig'))
    except OSError as error:
        raise InputError(f'cannot read {name}: {error.strerror or error}') from error
    except RecursionError:
        raise InputError(f'cannot read {name}: it is nested too deeply') from None
    except ValueError as error:  # also of an encoding
        raise InputError(f'cannot read {name}: it is not JSON: {error}') from error
    if digest is not None:
        digest.update(content)
    if shape is not object and (shape is not dict or not isinstance(value, dict)):
        with reporting(name, errors=ValueError):
            check_json(value, shape)
    return value


def parse_json(text, shape=object):
    """Parse a JSON text, of the shape that the caller declares.

    Whoever reads JSON that others may have written uses this or `read_json`, and declares what it
    relies on.

    Parameters
    ----------
    shape : type or dict
        What the value must be. ``str``, ``int`` (no bool), ``float`` (a finite number, also an
        integer), `numbers.Real` (also NaN), ``bool``, ``list``, ``dict``, or `object` for anything;
        ``list[str]``, ``tuple[float, float]`` (a list of two), ``dict[str, int]``, ``int | str``
        and ``int | None``; a dataclass for an object that has its fields and no others; or a dict,
        such as ``{'weight_map': dict[str, str]}``, for an object that has these names among others.
        Of a dict's names, those that may be None may be missing.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError('its lists or objects are nested too deeply') from None
    check_json(value, shape)
    return value


def check_json(value, shape, where='it'):
    """Raise ValueError, naming the place, unless a value is of the shape; see `parse_json`."""
    origin, parts = typing.get_origin(shape), typing.get_args(shape)
    if origin in (typing.Union, types.UnionType):
        if not any(_has_shape(value, part) for part in parts):
            for part in parts:  # the one that it resembles tells more
                if _is_object(part) and isinstance(value, dict):
                    check_json(value, part, where)
            _refuse(value, ' or '.join(map(_words_for, parts)), where)
    elif _is_object(shape):
        _check_fields(value, shape, where)
    elif origin is tuple:
        check_json(value, list, where)
        if len(value) != len(parts):
            raise ValueError(f'{where} must have {len(parts)} values, but has {len(value)}')
        for key, (item, part) in enumerate(zip(value, parts)):
            check_json(item, part, _within(where, key))
    elif origin in (list, dict):
        check_json(value, origin, where)
        values, part = value if origin is list else value.values(), parts[-1]
        if part in (int, str) and all(type(item) is part for item in values):
            return
        for key, item in enumerate(value) if origin is list else value.items():
            check_json(item, part, _within(where, key))
    elif not _has_type(value, shape):
        _refuse(value, _words_for(shape), where)


def _check_fields(value, shape, where):
    check_json(value, dict, where)
    if isinstance(shape, dict):
        fields = shape
        required = [name for name in shape if type(None) not in typing.get_args(shape[name])]
    else:
        fields = typing.get_type_hints(shape)
        required = [
            field.name
            for field in dataclasses.fields(shape)
            if field.default is field.default_factory is dataclasses.MISSING
        ]
        unknown = next((name for name in value if name not in fields), None)
        if unknown is not None:
            hint = did_you_mean(unknown, fields)
            raise ValueError(f'{where} has unknown {unknown:.80}{hint}')
    missing = [name for name in required if name not in value]
    if missing:
        raise ValueError(f'{where} lacks {", ".join(missing)}')
    for name, field_shape in fields.items():
        if name in value:
            check_json(value[name], field_shape, _within(where, name))


def _within(where, name):
    name = f'item {name}' if isinstance(name, int) else f'{name:.80}'
    return name if where == 'it' else f'{where}: {name}'


def _is_object(shape):
    return isinstance(shape, dict) or dataclasses.is_dataclass(shape)


def _has_shape(value, shape):
    try:
        check_json(value, shape)
    except ValueError:
        return False
    return True


def _has_type(value, shape):
    if shape is float:
        return type(value) in (int, float) and abs(value) <= sys.float_info.max
    return type(value) is int if shape is int else isinstance(value, shape)


def _words_for(shape):
    shape = dict if _is_object(shape) else typing.get_origin(shape) or shape
    return _WORDS.get(shape, getattr(shape, '__name__', str(shape)))


def _refuse(value, wanted, where):
    raise ValueError(f"{where} can't be {value!r:.80}: {wanted} is expected")


def read_lines(path, encoding=None):
    """Read the lines of a file one by one; a byte-order mark before the first is dropped.

    Lines end only at a newline: texts contain other separators, such as U+2028, at which
    `str.splitlines` breaks. Without any newline, they end at carriage returns, as on old Macs. The
    default encoding is UTF-8, or UTF-16 if the file begins with its byte-order mark.
    """
    if encoding is not None:
        check_encoding(encoding)
    with reporting(f'cannot read {str(path)!r}'), open_binary(path) as file:
        if encoding is None and file.peek(2)[:2] in _UTF_16_MARKS:
            encoding = 'utf-16'
        known = _with_mark(encoding) if encoding else 'utf-8-sig'
        text = io.TextIOWrapper(file, known, newline='\n')
        number = 0
        try:
            for number, line in enumerate(text, 1):
                if number == 1 and '\n' not in line and '\r' in line.rstrip('\r'):
                    yield from enumerate(re.findall('[^\r]*\r|[^\r]+$', line), 1)
                    return
                yield number, line
        except UnicodeDecodeError as error:
            # all whole lines before the bytes that it was given have been read
            number += 1 + error.object[: error.start].count(b'\n')
            raise _undecodable(f'{path}, line {number}', error, encoding) from None


_UTF_16_MARKS = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE


def check_encoding(encoding):
    """Raise InputError unless an encoding is one of Python's for texts, or None."""
    try:
        ''.encode(encoding or 'utf-8')
    except (LookupError, ValueError):
        raise InputError(
            f'{encoding!r} is no encoding that Python knows, such as latin-1 or utf-16',
            field='encoding',
        ) from None


def _with_mark(encoding):
    """Return the encoding whose byte-order mark, if there is one, is no part of the text."""
    return 'utf-8-sig' if codecs.lookup(encoding).name == 'utf-8' else encoding


def read_span(path, start, stop, encoding=None):
    """Read the lines that begin between two places of a file, counted in bytes."""
    with reporting(f'cannot read {str(path)!r}'), open_binary(path) as file:
        position = start
        if start:  # a line that has begun before isn't ours
            file.seek(start - 1)
            position = start - 1 + len(file.readline())
        while position < stop:
            line = file.readline()
            if not line:
                return
            yield decode_at(path, position, line, encoding)
            position += len(line)


def decode_at(path, position, line, encoding=None):
    """Decode a line that begins at byte `position` of a file."""
    try:
        if encoding is not None:
            return line.decode(encoding)
        return line.decode('utf-8' if position else 'utf-8-sig')
    except UnicodeDecodeError as error:
        raise _undecodable(f'{path}, from byte {position} on', error, encoding) from None


def read_text(path, encoding=None):
    """Read the text of a file, its line ends included."""
    text = ''.join(line for _, line in read_lines(path, encoding))
    if not text.strip():
        raise InputError(f'{str(path)!r} has no text')
    return text


def _undecodable(where, error, encoding):
    byte, name = error.object[error.start], encoding or 'UTF-8'
    return InputError(
        f'{where}: the byte 0x{byte:02x} is not {name}: save the file as UTF-8, or name its '
        '`encoding`, such as latin-1'
    )
