"""The index of a TensorFlow checkpoint: a sorted table of protocol buffers.

Format (``tensorflow/core/lib/io/table_format.txt``, as LevelDB's): blocks, each followed by a byte
that says how it is compressed and a u32 checksum of both; at the end of the file 48 bytes with the
places of two blocks, of which the second is an index of blocks, and a magic number. A block has
entries (varints: bytes shared with the key before, further bytes of the key, bytes of the value;
then these bytes), then u32 places of some of them, and a u32 count of these places.
"""

import struct

from ..errors import CheckpointError
from .crc32c import crc32c

__all__ = ['TABLE_MAGIC', 'read_message', 'read_table']

#: the end of a table's file
TABLE_MAGIC = b'\x57\xfb\x80\x8b\x24\x75\x47\xdb'
_FOOTER = 48
_KEYS_LIMIT = 64  # bytes of keys that a byte of the file may stand for


def read_table(path):
    """Read a table.

    Parameters
    ----------
    path : str

    Returns
    -------
    dict of bytes to bytes
    """
    with open(path, 'rb') as file:
        content = file.read()
    footer = content[-_FOOTER:]
    if len(footer) < _FOOTER or not footer.endswith(TABLE_MAGIC):
        raise ValueError('its end is missing')
    place = 0
    for _ in range(3):  # the first block's place and size, then the second one's place
        index, place = _varint(footer, place)
    size, _ = _varint(footer, place)
    result, left = {}, [len(content), _KEYS_LIMIT * len(content)]
    for handle in _entries(content, index, size, left).values():
        start, place = _varint(handle, 0)
        size, _ = _varint(handle, place)
        result.update(_entries(content, start, size, left))
    return result


def _entries(content, start, size, left):
    """A block's keys and values; `left` counts down the bytes of blocks and of keys."""
    end = start + size
    if end + 5 > len(content):
        raise ValueError('it is cut off')
    left[0] -= size
    block, (checksum,) = content[start : end + 1], struct.unpack_from('<I', content, end + 1)
    if left[0] < 0 or size < 4 or crc32c(block, masked=True) != checksum:
        raise ValueError('the checksum of a block is wrong')
    if block[-1]:
        raise CheckpointError('its index is compressed, which TensorFlow does not do')
    (count,) = struct.unpack_from('<I', block, size - 4)
    stop, place, key, result = size - 4 - 4 * count, 0, b'', {}
    while place < stop:
        shared, place = _varint(block, place)
        length, place = _varint(block, place)
        value_length, place = _varint(block, place)
        value = place + length
        key = key[:shared] + block[place:value]
        left[1] -= len(key)
        if value + value_length > stop or left[1] < 0:
            raise ValueError('a block ends within an entry')
        place = value + value_length
        result[key] = block[value:place]
    return result


def read_message(content):
    """The fields of a protocol buffer.

    Parameters
    ----------
    content : bytes

    Returns
    -------
    dict of int to list
        Number -> values: int, or bytes of what has a length.
    """
    place, fields = 0, {}
    while place < len(content):
        tag, place = _varint(content, place)
        kind = tag & 7
        if kind == 0:
            value, place = _varint(content, place)
        elif kind == 2:
            length, place = _varint(content, place)
            value, place = content[place : place + length], place + length
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
            value, place = int.from_bytes(content[place : place + length], 'little'), place + length
        else:
            raise ValueError(f'a field of kind {kind}')
        if place > len(content):
            raise ValueError('a field ends too late')
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _varint(content, place):
    """The number at `place`, and the place behind it."""
    number = shift = 0
    while True:
        byte = content[place]
        number |= (byte & 127) << shift
        place += 1
        if byte < 128:
            return number, place
        shift += 7
        if shift > 63:
            raise ValueError('a number of more than 64 bits')
