"""TensorFlow's checkpoints, read without TensorFlow and written by it.

A checkpoint is a group of files, ``NAME.index`` and ``NAME.data-00000-of-00001``; the first one
stands for it here. A file ``checkpoint`` next to them names the newest one in the folder.
"""

# The index is a sorted table of protocol buffers (tensorflow/core/lib/io/table_format.txt, as
# LevelDB's): blocks, each followed by a byte that says how it is compressed and a u32 checksum of
# both; at the end of the file 48 bytes with the places of two blocks, of which the second is an
# index of blocks, and a magic number. A block has entries (varints: bytes shared with the key
# before, further bytes of the key, bytes of the value; then these bytes), then u32 places of some
# of them, and a u32 count of these places.

import logging
import math
import os
import re
import struct

import google_crc32c
import numpy as np

from ..errors import MissingExtraError
from ..util.files import atomic_write, make_writable_dir
from .tensor_files import as_weights, from_bfloat16, reading


def masked_crc32c(data):
    """Compute a checksum as TensorFlow stores it: rotated, and with a constant added."""
    crc = google_crc32c.value(bytes(data))
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


_TABLE_END = b'\x57\xfb\x80\x8b\x24\x75\x47\xdb'
_FOOTER = 48


def read_table(path):
    """Read a table's keys and values, both bytes."""
    with open(path, 'rb') as file:
        content = file.read()
    footer = content[-_FOOTER:]
    if len(footer) < _FOOTER or not footer.endswith(_TABLE_END):
        raise ValueError('its end is missing')
    position = 0
    for _ in range(3):  # the first block's place and size, then the second one's place
        index, position = _varint(footer, position)
    size, _ = _varint(footer, position)
    result = {}
    for handle in _entries(content, index, size).values():
        start, position = _varint(handle, 0)
        size, _ = _varint(handle, position)
        result.update(_entries(content, start, size))
    return result


def _entries(content, start, size):
    """Return a block's keys and values."""
    end = start + size
    block, (checksum,) = content[start : end + 1], struct.unpack_from('<I', content, end + 1)
    if masked_crc32c(block) != checksum:
        raise ValueError('the checksum of a block is wrong')
    (count,) = struct.unpack_from('<I', block, size - 4)
    stop, position, key, result = size - 4 - 4 * count, 0, b'', {}
    while position < stop:
        shared, position = _varint(block, position)
        length, position = _varint(block, position)
        value_length, position = _varint(block, position)
        value = position + length
        key = key[:shared] + block[position:value]
        position = value + value_length
        result[key] = block[value:position]
    return result


def read_message(content):
    """Read a protocol buffer: number of a field -> its values, integers or bytes."""
    position, fields = 0, {}
    while position < len(content):
        tag, position = _varint(content, position)
        wire_type = tag & 7
        if wire_type == 0:
            value, position = _varint(content, position)
        elif wire_type == 2:
            length, position = _varint(content, position)
            value, position = content[position : position + length], position + length
        elif wire_type in (1, 5):
            length = 8 if wire_type == 1 else 4
            value = int.from_bytes(content[position : position + length], 'little')
            position += length
        else:
            raise ValueError(f'a field of kind {wire_type}')
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _varint(content, position):
    """Read the number at `position`; returns it and the position behind it."""
    number = shift = 0
    while True:
        byte = content[position]
        number |= (byte & 127) << shift
        position += 1
        if byte < 128:
            return number, position
        shift += 7


_log = logging.getLogger(__name__)
_INDEX = '.index'
_OF_A_PART = b'\0'  # begins the keys of parts of variables
_STRING, _BFLOAT16 = 7, 14
#: number of a type in ``types.proto`` -> NumPy's
_TYPES = {
    1: 'f4',
    2: 'f8',
    3: 'i4',
    4: 'u1',
    5: 'i2',
    6: 'i1',
    8: 'c8',
    9: 'i8',
    10: '?',
    _BFLOAT16: 'u2',
    17: 'u2',
    18: 'c16',
    19: 'f2',
    22: 'u4',
    23: 'u8',
}


def is_tensorflow(tail):
    """Return whether a file that ends with the bytes `tail` is the index of a checkpoint."""
    return tail.endswith(_TABLE_END)


def newest_checkpoint(folder):
    """Find the index of the newest checkpoint in `folder`, or None."""
    try:
        with open(os.path.join(folder, 'checkpoint'), encoding='utf-8') as file:
            named = re.search(r'^model_checkpoint_path: "(.+)"', file.read(4096), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        named = None
    if named:
        path = os.path.join(folder, os.path.basename(named.group(1)) + _INDEX)
        if os.path.isfile(path):
            return path
    try:
        names = [name for name in os.listdir(folder) if name.endswith(_INDEX)]
    except OSError:
        return None
    if len(names) > 1:  # of one training, with the number of its steps
        steps = [re.fullmatch(rf'(.+)-(\d+){re.escape(_INDEX)}', name) for name in names]
        if not all(steps) or len({match[1] for match in steps}) > 1:
            return None
        names = [max(steps, key=lambda match: int(match[2]))[0]]
        _log.info('the last of the checkpoints in %r is used: %s', folder, names[0])
    return os.path.join(folder, names[0]) if names else None


def _import_tensorflow():
    # else it logs the processor's instructions at every start
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
    try:
        import tensorflow
    except ImportError as error:
        raise MissingExtraError.of('tensorflow', 'tensorflow') from error
    logging.getLogger('tensorflow').setLevel(logging.ERROR)
    return tensorflow


def read_tensorflow(path):
    """Read the variables of a checkpoint, without strings."""
    prefix = path[: -len(_INDEX)] if path.endswith(_INDEX) else path
    with reading(prefix):
        return as_weights(_Bundle(prefix).read()), {}


class _Bundle:
    """The files of a checkpoint; see ``tensor_bundle.proto`` of TensorFlow."""

    def __init__(self, prefix):
        self.prefix, self.entries = prefix, read_table(prefix + _INDEX)
        header = read_message(self.entries.pop(b''))
        (self.files,) = header[1]

    def read(self):
        """Read all variables that are numbers, by name."""
        names = [key for key in self.entries if not key.startswith(_OF_A_PART)]
        tensors = {}
        for key in sorted(names):
            fields = read_message(self.entries[key])
            if _single(fields, 1) != _STRING:
                name = key.decode()
                tensors[name] = self.tensor(name, fields)
        return tensors

    def tensor(self, name, fields):
        if 7 not in fields:
            return self.values(name, fields)
        parts = [_extents(read_message(part)) for part in fields[7]]
        shape = _shape(fields)
        arrays = [
            self.values(name, read_message(self.entries[_part_key(name, part)])) for part in parts
        ]
        result = np.zeros(shape, arrays[0].dtype)
        for part, values in zip(parts, arrays):
            slices = tuple(
                slice(start, size if length < 0 else start + length)
                for (start, length), size in zip(part, shape)
            )
            result[slices] = values
        return result

    def values(self, name, fields):
        type_number, shape, size = _single(fields, 1), _shape(fields), _single(fields, 5)
        if type_number not in _TYPES:
            raise ValueError(f'{name} is of type number {type_number}, which NumPy does not have')
        dtype = np.dtype(_TYPES[type_number]).newbyteorder('<')
        if math.prod(shape) * dtype.itemsize != size:
            raise ValueError(f'{name} of shape {shape} has {size} bytes')
        path = f'{self.prefix}.data-{_single(fields, 3):05d}-of-{self.files:05d}'
        with reading(path), open(path, 'rb') as file:
            file.seek(_single(fields, 4))
            data = file.read(size)
        if len(data) != size or masked_crc32c(data) != _single(fields, 6):
            raise ValueError(f'the checksum of {name} is wrong')
        array = np.ndarray(shape, dtype, data)
        return np.asarray(from_bfloat16(array)) if type_number == _BFLOAT16 else array


def _single(fields, number):
    return fields.get(number, [0])[-1]


def _shape(fields):
    shape = read_message(_single(fields, 2) or b'')
    return tuple(_single(read_message(size), 1) for size in shape.get(2, ()))


def _extents(part):
    """Return (start, length) of a slice in each dimension; the length -1 means all."""
    extents = [read_message(extent) for extent in part.get(1, ())]
    return [(_single(extent, 1), extent[2][-1] if 2 in extent else -1) for extent in extents]


def _part_key(name, part):
    """Make the key of a part of a variable, which sorts like its numbers and texts."""
    key = [_OF_A_PART, name.encode(), b'\0\1', bytes([1, len(part)])]
    return b''.join(key + [_ordered(number) for extent in part for number in extent])


def _ordered(number):
    count = 1
    while not -(1 << 7 * count - 1) <= number < 1 << 7 * count - 1:
        count += 1
    header = (1 << count) - 1 << 7 * count
    return ((number % (1 << 8 * count)) ^ header).to_bytes(count, 'big')


def write_tensorflow(path, tensors):
    """Write a checkpoint, and the file ``checkpoint`` that names it."""
    tensorflow = _import_tensorflow()
    folder, name = os.path.split(path)
    make_writable_dir(folder or '.')
    name = name[: -len(_INDEX)]
    data = f'{name}.data-00000-of-00001'
    with (
        atomic_write(path, mode=None) as index,
        atomic_write(os.path.join(folder, data), mode=None) as values,
    ):
        temporary = index + '.new'  # the prefix of what TensorFlow writes
        parts = [temporary + _INDEX, temporary + data[len(name) :]]
        try:
            tensorflow.raw_ops.SaveV2(
                prefix=temporary,
                tensor_names=list(tensors),
                shape_and_slices=[''] * len(tensors),
                tensors=list(tensors.values()),
            )
            for part, target in zip(parts, (index, values)):
                os.replace(part, target)
        except tensorflow.errors.OpError as error:
            raise OSError(error.message) from error
        finally:
            for part in filter(os.path.exists, parts):
                os.remove(part)
    with atomic_write(os.path.join(folder, 'checkpoint')) as file:
        file.write(f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "{name}"\n')
