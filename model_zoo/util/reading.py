"""Read files of others: checksums, JSON of a declared shape, and lines of UTF-8."""

import codecs
import functools
import hashlib
import io
import json
import os
import re
import typing

from ..errors import InputError, reporting
from .remote import open_binary


def sha256_of(path, algorithm='sha256'):
    """Compute the hexadecimal sha256 of a file, or another algorithm of hashlib."""
    digest = hashlib.new(algorithm)
    with open(path, 'rb') as file:
        while piece := file.read(2**20):
            digest.update(piece)
    return digest.hexdigest()


def read_json(path, what='', shape=object, default=None, digest=None, encoding=None):
    """Read a JSON file, of the shape that the caller declares; see `parse_json`.

    `default`, if there is one, is returned for a missing file. `digest`, an object of hashlib, is
    updated with the content. The default encoding is UTF-8.
    """
    if default is not None and not os.path.isfile(path):
        return default
    if encoding is not None:
        check_encoding(encoding)
    problem = f'cannot read {what} {os.fspath(path)!r}'.replace('  ', ' ')
    with reporting(problem, errors=(OSError, ValueError)):
        with open_binary(path) as file:
            content = file.read()
        value = parse_json(content.decode(_with_mark(encoding) if encoding else 'utf-8-sig'), shape)
    if digest is not None:
        digest.update(content)
    return value


def parse_json(text, shape=object):
    """Parse a JSON text that must have the shape that the caller declares.

    Parameters
    ----------
    shape : type or dict
        The type of the value: a plain one, ``list[str]``, ``dict[str, int]``, ``int | None`` and
        the like; or a dict, such as ``{'weight_map': dict[str, str]}``, for an object that has
        these names among others. A dict's names that may be None may be missing.
        Nothing is converted: 1 is a float, and 1.0 and true are no int.
    """
    try:
        value = json.loads(text)
    except (RecursionError, ValueError) as error:
        raise ValueError(f'it is not JSON: {error}') from error
    if not (shape is object or (shape is dict and isinstance(value, dict))):
        check_json(value, shape)
    return value


def check_json(value, shape, where=''):
    """Raise ValueError, naming the place, unless a value is of the shape; see `parse_json`."""
    from pydantic import ValidationError

    from .fields import requirement

    try:
        _adapter(tuple(shape.items()) if isinstance(shape, dict) else shape).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = '.'.join(filter(None, [where, *map(str, first['loc'])])) or 'it'
        raise ValueError(
            f'{place:.80} is {first["input"]!r:.80}; {requirement(first["msg"])}'
        ) from None


@functools.cache
def _adapter(shape):
    """Return pydantic's checker of a shape; the shape of a dict is its items."""
    from pydantic import ConfigDict, TypeAdapter
    from typing_extensions import NotRequired, TypedDict

    config = ConfigDict(strict=True, allow_inf_nan=False, extra='allow')
    if not isinstance(shape, tuple):
        return TypeAdapter(shape, config=config)
    optional = {name for name, part in shape if type(None) in typing.get_args(part)}
    fields = {name: NotRequired[part] if name in optional else part for name, part in shape}
    result = TypedDict('Object', fields)
    result.__pydantic_config__ = config
    return TypeAdapter(result)


def read_lines(path, encoding=None):
    """Read the lines of a file one by one; a byte-order mark before the first is dropped.

    Lines end only at a newline: texts contain other separators, such as U+2028, at which
    `str.splitlines` breaks. Without any newline, they end at carriage returns, as on old Macs. The
    default encoding is UTF-8, or UTF-16 if the file begins with its byte-order mark.
    """
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
        raise InputError(f'{encoding!r} is unknown to Python', field='encoding') from None


def _with_mark(encoding):
    """Return the encoding whose byte-order mark, if there is one, is no part of the text."""
    return 'utf-8-sig' if codecs.lookup(encoding).name == 'utf-8' else encoding


def decode_at(path, position, line, encoding=None):
    """Decode a line that begins at byte `position` of a file."""
    try:
        if encoding is not None:
            return line.decode(encoding)
        return line.decode('utf-8' if position else 'utf-8-sig')
    except UnicodeDecodeError as error:
        raise _undecodable(f'{path}, from byte {position} on', error, encoding) from None


def read_text(path, encoding=None):
    """Read the text of a file, its line ends included; see `read_lines`."""
    text = ''.join(line for _, line in read_lines(path, encoding))
    if not text.strip():
        raise InputError(f'{str(path)!r} has no text')
    return text


def _undecodable(where, error, encoding):
    byte, name = error.object[error.start], encoding or 'UTF-8'
    return InputError(
        f'{where}: the byte 0x{byte:02x} is not {name}: save the file as UTF-8, or name its '
        '`encoding`, such as cp1252'
    )
