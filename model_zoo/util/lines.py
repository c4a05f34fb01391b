"""Lines of text files in UTF-8, and errors for files that aren't."""

import functools

from ..errors import InputError, reporting
from .files import LIMITS, parse_json, raised
from .remote import open_binary

__all__ = ['decode_at', 'read_json_lines', 'read_lines', 'read_span', 'read_text']

_LONGEST = 2**28  # bytes of a line; `raised` raises it


def read_lines(path):
    """Read the lines of a file one by one; a byte-order mark before the first is dropped.

    Lines end only at a newline: texts contain other separators, such as U+2028, at which
    `str.splitlines` breaks. InputError for one of over 256 MB; the environment variable
    ``MODEL_ZOO_LIMITS`` multiplies this.
    """
    most = int(raised(_LONGEST))
    with reporting(f'cannot read {str(path)!r}'), open_binary(path) as file:
        lines = iter(functools.partial(file.readline, most + 1), b'')
        for number, line in enumerate(lines, 1):
            if len(line) > most:
                raise InputError(
                    f'{path}, line {number} has more than {most} bytes; break it, or set '
                    f'{LIMITS}=10'
                )
            try:
                text = line.decode('utf-8-sig' if number == 1 else 'utf-8')
            except UnicodeDecodeError as error:
                raise _not_utf8(f'{path}, line {number}', line, error, number == 1) from None
            yield number, text


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
    """The text of a line that begins at byte `position` of a file."""
    try:
        return line.decode('utf-8' if position else 'utf-8-sig')
    except UnicodeDecodeError as error:
        raise _not_utf8(path, line, error, not position, position) from None


def read_json_lines(path):
    """Read a file with one JSON object per line; empty lines are left out."""
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            fields = parse_json(line)
        except ValueError as error:
            raise InputError(f'{path}, line {number}: not JSON: {error}') from None
        if not isinstance(fields, dict):
            raise InputError(f'{path}, line {number}: one JSON object per line is expected')
        yield number, fields


def read_text(path):
    """The text of a file, its line ends included."""
    text = ''.join(line for _, line in read_lines(path))
    if not text.strip():
        raise InputError(f'{str(path)!r} has no text')
    return text


def _not_utf8(where, line, error, is_first, position=0):
    problem = f'byte 0x{line[error.start]:02x} at position {position + error.start} is not UTF-8'
    if is_first and line[:2] in (b'\xff\xfe', b'\xfe\xff'):
        problem = 'the file seems to be UTF-16'
    return InputError(f'{where}: {problem}; save the file as UTF-8')
