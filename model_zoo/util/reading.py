"""What others have written: checksums, JSON of a declared shape, and lines of UTF-8."""

import codecs
import dataclasses
import hashlib
import io
import itertools
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
    'check_json',
    'decode_at',
    'parse_json',
    'read_json',
    'read_json_objects',
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


def read_json(path, what='', shape=object, digest=None):
    """Read a JSON file, of the shape that the caller declares; see `parse_json`.

    `digest`, an object of hashlib, is updated with its content.
    """
    name = f'{what} {os.fspath(path)!r}'.lstrip()
    try:
        with open_binary(path) as file:
            content = file.read()
        value = parse_json(content.decode('utf-8-sig'))
    except OSError as error:
        raise InputError(f'cannot read {name}: {error.strerror or error}') from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f'cannot read {name}: it is not JSON: {error}') from error
    except ValueError as error:
        raise InputError(f'cannot read {name}: {error}') from error
    if digest is not None:
        digest.update(content)
    try:
        check_json(value, shape, name)
    except ValueError as error:
        raise InputError(str(error)) from error
    return value


def parse_json(text, shape=object):
    """Parse a JSON text, of the shape that the caller declares.

    Whoever reads JSON that others may have written uses this, `read_json` or `read_json_objects`,
    and declares what it relies on.

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


def read_lines(path):
    """Read the lines of a file one by one; a byte-order mark before the first is dropped.

    Lines end only at a newline: texts contain other separators, such as U+2028, at which
    `str.splitlines` breaks. Without any newline, they end at carriage returns, as on old Macs. The
    encoding is UTF-8, or UTF-16 with a byte-order mark.
    """
    with reporting(f'cannot read {str(path)!r}'), open_binary(path) as file:
        first = file.readline()
        if first.startswith(_UTF_16_MARKS):
            yield from _lines_of_utf_16(path, first)
            return
        for number, line in enumerate(itertools.chain([first] * bool(first), file), 1):
            try:
                text = line.decode('utf-8-sig' if number == 1 else 'utf-8')
            except UnicodeDecodeError as error:
                raise _not_utf8(f'{path}, line {number}', line, error) from None
            if number == 1 and '\n' not in text and '\r' in text.rstrip('\r'):
                yield from enumerate(re.findall('[^\r]*\r|[^\r]+$', text), 1)
                return
            yield number, text


_UTF_16_MARKS = codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE


def _lines_of_utf_16(path, first):
    encoding = 'utf-16-le' if first.startswith(codecs.BOM_UTF16_LE) else 'utf-16-be'
    with open_binary(path) as file:
        text = io.TextIOWrapper(file, encoding, newline='\n')
        text.read(1)  # the mark
        try:
            yield from enumerate(text, 1)
        except UnicodeDecodeError as error:
            raise InputError(f'{path}: its first bytes say UTF-16, but {error}') from None


def read_span(path, start, stop):
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
            yield decode_at(path, position, line)
            position += len(line)


def decode_at(path, position, line):
    """Decode a line that begins at byte `position` of a file."""
    try:
        return line.decode('utf-8' if position else 'utf-8-sig')
    except UnicodeDecodeError as error:
        raise _not_utf8(path, line, error, position) from None


def read_json_objects(path):
    """Read a file with one JSON object per line, or with an array of objects.

    Yields the place of each, 'line 3' or 'row 2', and the object; empty lines are left out.
    """
    is_first = True
    for number, line in read_lines(path):
        if not line.strip():
            continue
        if is_first and line.lstrip().startswith('['):
            rows = read_json(path, shape=list)
            for row, fields in enumerate(rows):
                yield f'row {row}', _object(fields, f'{path}, row {row}')
            return
        is_first = False
        try:
            fields = parse_json(line)
        except ValueError as error:
            raise InputError(f'{path}, line {number}: not JSON: {error}') from None
        yield f'line {number}', _object(fields, f'{path}, line {number}')


def _object(fields, where):
    if not isinstance(fields, dict):
        raise InputError(
            f'{where}: {str(fields)!r:.80} is no object; one JSON object per line is expected, or '
            'an array of objects'
        )
    return fields


def read_text(path):
    """Read the text of a file, its line ends included."""
    text = ''.join(line for _, line in read_lines(path))
    if not text.strip():
        raise InputError(f'{str(path)!r} has no text')
    return text


def _not_utf8(where, line, error, position=0):
    problem = f'byte 0x{line[error.start]:02x} at position {position + error.start} is not UTF-8'
    if not position and line.startswith(_UTF_16_MARKS):
        problem = 'the file seems to be UTF-16'
    return InputError(
        f'{where}: {problem}; save the file as UTF-8, or convert it with "iconv -f ENCODING -t '
        'UTF-8", where ENCODING is WINDOWS-1252 of most older Western files'
    )
