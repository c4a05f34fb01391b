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

import contextlib
import logging
import math
import os
import re
import struct

import google_crc32c
import numpy as np

from ..errors import CheckpointError, MissingExtraError, reporting
from ..util.files import make_writable_dir, written_together
from .tensor_files import DAMAGED, as_weights, from_bfloat16

_log = logging.getLogger(__name__)
_TABLE_END = b'\x57\xfb\x80\x8b\x24\x75\x47\xdb'
_FOOTER = 48
_INDEX = '.index'
_OF_A_PART = b'\0'  # begins the keys of parts of variables
_STRING, _BFLOAT16 = 7, 14
#: number of a type in ``types.proto`` -> NumPy's
_TYPES = {_BFLOAT16: 'u2', 17: 'u2', 18: 'c16', 19: 'f2', 22: 'u4', 23: 'u8'}
_TYPES.update(enumerate(('f4', 'f8', 'i4', 'u1', 'i2', 'i1'), 1))
_TYPES.update(enumerate(('c8', 'i8', '?'), 8))


def masked_crc32c(data):
    """Compute a checksum as TensorFlow stores it: rotated, and with a constant added."""
    crc = google_crc32c.value(bytes(data))
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def read_table(path):
    """Read a table's keys and values, both bytes."""
    with open(path, 'rb') as file:
        content = file.read()
    footer = content[-_FOOTER:]
    if len(footer) < _FOOTER or not is_tensorflow(footer):
        raise ValueError('its end is missing')
    (_, _, index, size), _ = _varints(footer, 0, 4)  # places and sizes of two blocks
    result = {}
    for handle in _entries(content, index, size).values():
        place, _ = _varints(handle, 0, 2)
        result.update(_entries(content, *place))
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
        (shared, length, value_length), begin = _varints(block, position, 3)
        value = begin + length
        key = key[:shared] + block[begin:value]
        position = value + value_length
        result[key] = block[value:position]
    return result


def read_message(content):
    """Read a protocol buffer: number of a field -> its values, integers or bytes."""
    position, fields = 0, {}
    while position < len(content):
        (tag,), position = _varints(content, position, 1)
        kind = tag & 7
        if kind == 0:
            (value,), position = _varints(content, position, 1)
        elif kind == 2:
            (length,), position = _varints(content, position, 1)
            value, position = content[position : position + length], position + length
        elif kind in (1, 5):
            end = position + (8 if kind == 1 else 4)
            value, position = int.from_bytes(content[position:end], 'little'), end
        else:
            raise ValueError(f'a field of kind {kind}')
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _varints(content, position, count):
    """Read numbers at `position`; returns them and the position behind them."""
    numbers = []
    for _ in range(count):
        number = shift = 0
        while True:
            byte = content[position]
            number |= (byte & 127) << shift
            position += 1
            shift += 7
            if byte < 128:
                break
        numbers.append(number)
    return numbers, position


#: what to do about files of TensorFlow 2, which name objects instead of BERT's parameters
TENSORFLOW_2 = (
    'it is of TensorFlow 2, with other names of parameters; convert it: pip install '
    "'transformers<5' tensorflow torch; python -m "
    'transformers.models.bert.convert_bert_original_tf2_checkpoint_to_pytorch --tf_checkpoint_path '
    'CHECKPOINT --bert_config_file bert_config.json --pytorch_dump_path pytorch_model.bin'
)


def is_tensorflow(tail):
    """Return whether a file that ends with the bytes `tail` is the index of a checkpoint."""
    return tail.endswith(_TABLE_END)


def newest_checkpoint(folder):
    """Find the index of the newest checkpoint in `folder`, or None."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(_INDEX)]
    except OSError:
        return None
    if len(names) > 1:
        names = [_latest_of(names, folder)]
    return os.path.join(folder, names[0]) if names and names[0] else None


def _latest_of(names, folder):
    """Return the checkpoint that the file ``checkpoint`` names, or the one after most steps."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        with open(os.path.join(folder, 'checkpoint'), encoding='utf-8') as file:
            named = re.search(r'^model_checkpoint_path: "(.+)"', file.read(4096), re.MULTILINE)
        if named and os.path.basename(named[1]) + _INDEX in names:
            return os.path.basename(named[1]) + _INDEX
    steps = [re.fullmatch(rf'(.+)-(\d+){re.escape(_INDEX)}', name) for name in names]
    if not all(steps) or len({match[1] for match in steps}) > 1:
        return None
    latest = max(steps, key=lambda match: int(match[2]))[0]
    _log.info('the last of the checkpoints in %r is used: %s', folder, latest)
    return latest


def read_tensorflow(path):
    """Read the variables of a checkpoint, without strings."""
    prefix, tensors = path.removesuffix(_INDEX), {}
    with reporting(f'cannot read {prefix!r}', *DAMAGED):
        entries = read_table(prefix + _INDEX)
        if b'_CHECKPOINTABLE_OBJECT_GRAPH' in entries:
            raise CheckpointError(f'cannot read {prefix!r}: {TENSORFLOW_2}')
        files = prefix, read_message(entries.pop(b''))[1][0]
        for key in sorted(entries):
            fields = read_message(entries[key])
            if not key.startswith(_OF_A_PART) and _single(fields, 1) != _STRING:
                tensors[key.decode()] = _read_tensor(files, key, fields, entries)
    return as_weights(tensors), {}


def _read_tensor(files, key, fields, entries):
    """Read a variable (``tensor_bundle.proto``), which may be stored in parts."""
    if 7 not in fields:
        return _read_values(files, fields)
    # the parts' keys sort as their extents do
    keys = sorted(each for each in entries if each.startswith(_OF_A_PART + key + b'\0\1'))
    extents = sorted(_extents(read_message(part)) for part in fields[7])
    result = None
    for part, slices in zip(keys, extents, strict=True):
        values = _read_values(files, read_message(entries[part]))
        if result is None:
            result = np.zeros(_shape(fields), values.dtype)
        ends = ((begin, None if size < 0 else begin + size) for begin, size in slices)
        result[tuple(slice(*each) for each in ends)] = values
    return result


def _read_values(files, fields):
    (prefix, count), (kind, size) = files, (_single(fields, number) for number in (1, 5))
    shape = _shape(fields)
    if kind not in _TYPES:
        raise ValueError(f'a variable is of type number {kind}, which NumPy does not have')
    dtype = np.dtype(_TYPES[kind]).newbyteorder('<')
    if math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f'a variable of shape {shape} has {size} bytes')
    path = f'{prefix}.data-{_single(fields, 3):05d}-of-{count:05d}'
    with reporting(f'cannot read {path!r}', *DAMAGED), open(path, 'rb') as file:
        file.seek(_single(fields, 4))
        data = file.read(size)
    if len(data) != size or masked_crc32c(data) != _single(fields, 6):
        raise ValueError('the checksum of a variable is wrong')
    array = np.ndarray(shape, dtype, data)
    return np.asarray(from_bfloat16(array)) if kind == _BFLOAT16 else array


def _single(fields, number):
    return fields.get(number, [0])[-1]


def _shape(fields):
    shape = read_message(_single(fields, 2) or b'')
    return tuple(_single(read_message(size), 1) for size in shape.get(2, ()))


def _extents(part):
    """Return (start, length) of a slice in each dimension; the length -1 means all."""
    extents = [read_message(extent) for extent in part.get(1, ())]
    return [(_single(extent, 1), extent[2][-1] if 2 in extent else -1) for extent in extents]


def write_tensorflow(path, tensors):
    """Write a checkpoint, and the file ``checkpoint`` that names it."""
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')  # else it logs the processor's instructions
    try:
        import tensorflow
    except ImportError as error:
        raise MissingExtraError.of('tensorflow', 'tensorflow') from error
    logging.getLogger('tensorflow').setLevel(logging.ERROR)
    folder, name = os.path.split(path.removesuffix(_INDEX))
    with written_together(make_writable_dir(folder or '.')) as temporary:
        try:
            tensorflow.raw_ops.SaveV2(
                prefix=os.path.join(temporary, name),
                tensor_names=list(tensors),
                shape_and_slices=[''] * len(tensors),
                tensors=list(tensors.values()),
            )
        except tensorflow.errors.OpError as error:
            raise OSError(error.message) from error
        with open(os.path.join(temporary, 'checkpoint'), 'w', encoding='utf-8') as file:
            file.write(f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "{name}"\n')
