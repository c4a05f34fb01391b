"""TensorFlow's checkpoints, read without TensorFlow and written by it.

A checkpoint is a group of files, ``NAME.index`` and ``NAME.data-00000-of-00001``; the first one
stands for it here. A file ``checkpoint`` next to them names the newest one in the folder.
"""

import contextlib
import logging
import math
import os
import re

import numpy as np

from ..errors import CheckpointError, MissingExtraError
from ..util.files import atomic_write, make_writable_dir
from .arrays import as_weights, from_bfloat16
from .crc32c import crc32c
from .tensorflow_table import TABLE_MAGIC, read_message, read_table

__all__ = ['is_tensorflow', 'newest_checkpoint', 'read_tensorflow', 'write_tensorflow']

_INDEX = '.index'
_OF_A_PART = b'\0'  # begins the keys of parts of variables
_STRING, _BFLOAT16 = 7, 14
#: number of a type in ``types.proto`` -> NumPy's
_TYPES = {
    1: 'f4', 2: 'f8', 3: 'i4', 4: 'u1', 5: 'i2', 6: 'i1', 8: 'c8', 9: 'i8', 10: '?',
    _BFLOAT16: 'u2', 17: 'u2', 18: 'c16', 19: 'f2', 22: 'u4', 23: 'u8',
}  # fmt: skip


def is_tensorflow(tail):
    """Whether a file that ends with the bytes `tail` is the index of a checkpoint."""
    return tail.endswith(TABLE_MAGIC)


def newest_checkpoint(folder):
    """The index of the checkpoint in `folder`: the one that the file ``checkpoint`` names.

    Parameters
    ----------
    folder : str

    Returns
    -------
    str or None
        None if there is no checkpoint, or if there are several and no file says which one to use.
    """
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
        found = [name for name in os.listdir(folder) if name.endswith(_INDEX)]
    except OSError:
        return None
    return os.path.join(folder, found[0]) if len(found) == 1 else None


def _import_tensorflow():
    # it writes of the processor's instructions at every start
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
    try:
        import tensorflow
    except ImportError as error:
        raise MissingExtraError.of('tensorflow', 'tensorflow') from error
    logging.getLogger('tensorflow').setLevel(logging.ERROR)
    return tensorflow


def read_tensorflow(path):
    """Read a checkpoint's variables, without TensorFlow.

    Parameters
    ----------
    path : str
        Of its index; the data, in one or several files, are beside it.

    Returns
    -------
    tensors : dict of str to numpy.ndarray
        float16 and bfloat16 become float32. Strings are left out: TensorFlow 2 stores in them what
        isn't a variable.
    metadata : dict
        Empty.
    """
    prefix = path[: -len(_INDEX)] if path.endswith(_INDEX) else path
    try:
        with contextlib.ExitStack() as stack:
            return as_weights(_Bundle(prefix, stack).read()), {}
    except CheckpointError as error:
        raise CheckpointError(f'{prefix!r} cannot be read: {error}') from error
    except Exception as error:  # a damaged file's error depends on where it is damaged
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise CheckpointError(
            f'{prefix!r} cannot be read ({what or type(error).__name__}): its files are damaged, '
            'or its data files are not beside the index; copy or download them again'
        ) from error


class _Bundle:
    """The files of a checkpoint; see ``tensor_bundle.proto`` of TensorFlow."""

    def __init__(self, prefix, stack):
        self.entries = read_table(prefix + _INDEX)
        header = read_message(self.entries.pop(b''))
        if header.get(2, [0]) != [0]:
            raise CheckpointError('it was written on a big-endian machine')
        (count,) = header[1]
        shards = {_single(read_message(entry), 3) for entry in self.entries.values()}
        self.files = {
            number: stack.enter_context(_open(f'{prefix}.data-{number:05d}-of-{count:05d}'))
            for number in sorted(shards)
            if number < count
        }
        # bytes that variables may still take: none has those of another one
        self.left = sum(os.fstat(file.fileno()).st_size for file in self.files.values())

    def read(self):
        """Name -> array, of all variables that are numbers."""
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
        found = [
            self.values(name, read_message(self.entries[_part_key(name, part)])) for part in parts
        ]
        if sum(each.size for each in found) != math.prod(shape):
            raise ValueError(f'the parts of {name} are not the whole')
        result = np.zeros(shape, found[0].dtype)
        for part, values in zip(parts, found):
            place = tuple(
                slice(start, size if length < 0 else start + length)
                for (start, length), size in zip(part, shape)
            )
            result[place] = values
        return result

    def values(self, name, fields):
        kind, shape, size = _single(fields, 1), _shape(fields), _single(fields, 5)
        if kind not in _TYPES:
            raise CheckpointError(f'{name} is of type number {kind}, which NumPy does not have')
        dtype = np.dtype(_TYPES[kind]).newbyteorder('<')
        self.left -= size
        if math.prod(shape) * dtype.itemsize != size or self.left < 0:
            raise ValueError(f'{name} of shape {shape} has {size} bytes')
        file = self.files[_single(fields, 3)]
        file.seek(_single(fields, 4))
        data = file.read(size)
        if len(data) != size or crc32c(data, masked=True) != _single(fields, 6):
            raise ValueError(f'the checksum of {name} is wrong')
        array = np.ndarray(shape, dtype, data)
        return np.asarray(from_bfloat16(array)) if kind == _BFLOAT16 else array


def _open(path):
    return open(path, 'rb')


def _single(fields, number):
    return fields.get(number, [0])[-1]


def _shape(fields):
    shape = read_message(_single(fields, 2) or b'')
    return tuple(_single(read_message(size), 1) for size in shape.get(2, ()))


def _extents(part):
    """(start, length) in each dimension, of a slice; the length -1 is all of it."""
    extents = [read_message(extent) for extent in part.get(1, ())]
    return [(_single(each, 1), each[2][-1] if 2 in each else -1) for each in extents]


def _part_key(name, part):
    """The key of a part of a variable, in which numbers and texts sort as they are."""
    key = [_OF_A_PART, name.encode(), b'\0\1', bytes([1, len(part)])]
    return b''.join(key + [_ordered(number) for extent in part for number in extent])


def _ordered(number):
    count = 1
    while not -(1 << 7 * count - 1) <= number < 1 << 7 * count - 1:
        count += 1
    header = (1 << count) - 1 << 7 * count
    return ((number % (1 << 8 * count)) ^ header).to_bytes(count, 'big')


def write_tensorflow(path, tensors):
    """Write a checkpoint, and the file ``checkpoint`` that names it.

    Parameters
    ----------
    path : str
        Of its index.
    tensors : dict of str to numpy.ndarray

    Raises
    ------
    MissingExtraError
        If TensorFlow isn't installed.
    InputError
        If the files can't be written.
    """
    tensorflow = _import_tensorflow()
    folder, name = os.path.split(path)
    make_writable_dir(folder or '.')
    name = name[: -len(_INDEX)]
    data = f'{name}.data-00000-of-00001'
    with atomic_write(path, mode=None) as index, atomic_write(
        os.path.join(folder, data), mode=None
    ) as values:
        temporary = index + '.new'  # the prefix of what TensorFlow writes
        parts = [temporary + _INDEX, temporary + data[len(name) :]]
        v1 = tensorflow.compat.v1
        try:
            with tensorflow.Graph().as_default(), v1.Session() as session:
                inputs = [v1.placeholder(array.dtype, array.shape) for array in tensors.values()]
                save = tensorflow.raw_ops.SaveV2(
                    prefix=temporary,
                    tensor_names=list(tensors),
                    shape_and_slices=[''] * len(tensors),
                    tensors=inputs,
                )
                session.run(save, dict(zip(inputs, tensors.values())))
            for part, target in zip(parts, (index, values)):
                os.replace(part, target)
        except tensorflow.errors.OpError as error:
            raise OSError(error.message) from error
        finally:
            for part in filter(os.path.exists, parts):
                os.remove(part)
    with atomic_write(os.path.join(folder, 'checkpoint')) as file:
        file.write(f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "{name}"\n')
