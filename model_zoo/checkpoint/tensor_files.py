"""Files of safetensors, and MXNet's ``.params``."""

# mx.nd.load isn't used, because a .params file has no checksum and MXNet trusts its content: a
# damaged length can make it allocate terabytes.
#
# Format (src/ndarray/ndarray.cc), little-endian: u64 magic 0x112, u64 0, u64 number of arrays; for
# each array u32 version, i32 storage type, u32 dimensions and i64 each, i32 device type, i32 device
# number, i32 dtype, the elements; then u64 number of names, and for each u64 length and the bytes.
# Our own files hold one more array, METADATA: a JSON text with their version. Behind what MXNet
# reads they end with _TRAILER and the CRC-32 of all that comes before it.

import json
import math
import struct
import zlib

import mxnet as mx
import numpy as np
import safetensors
import safetensors.numpy

from ..errors import CheckpointError, reporting
from ..util.files import atomic_write

__all__ = ['read_params', 'write_params', 'write_safetensors']


#: arguments of `reporting` for a file that may be damaged, which can raise anything
DAMAGED = ('; if it is damaged, copy or download it again', CheckpointError, Exception)
#: name of the entry of this project's files that holds the metadata
METADATA = '__metadata__'
VERSION = 1
_MAGIC = 0x112
_TRAILER = b'zoocrc32'
_TRAILER_SIZE = len(_TRAILER) + 4
_VERSIONS = (0xF993FAC9, 0xF993FACA)  # with NumPy's shapes a scalar has 0 dimensions
_DTYPES = ('f4', 'f8', 'f2', 'u1', 'i4', 'i1', 'i8', '?')  # by MXNet's numbers


#: the first bytes of a ``.params`` file
PARAMS_START = struct.pack('<Q', _MAGIC)


def read_params(path):
    """Read the arrays of a ``.params`` file, as read-only views, and its metadata."""
    arrays, names = [], []
    with reporting(f'cannot read {path!r}', *DAMAGED):
        with open(path, 'rb') as file:
            content = memoryview(file.read())
        trailer = bytes(content[-_TRAILER_SIZE:])
        is_ours = trailer.startswith(_TRAILER)
        if is_ours:
            content = content[:-_TRAILER_SIZE]
            if trailer[-4:] != struct.pack('<I', zlib.crc32(content)):
                raise ValueError('its checksum is wrong')
        position, (count,) = 24, struct.unpack_from('<16xQ', content)
        for _ in range(count):
            version, storage, axes = struct.unpack_from('<IiI', content, position)
            if version not in _VERSIONS or storage != 0:
                raise ValueError('an array is sparse, or older than MXNet 1.0')
            *shape, _, _, flag = struct.unpack_from(f'<{axes}q3i', content, position + 12)
            if not 0 <= flag < len(_DTYPES) or any(size < 0 for size in shape):
                raise ValueError(f'an array of shape {shape} and dtype number {flag}')
            position += 24 + 8 * axes
            values = np.frombuffer(content, f'<{_DTYPES[flag]}', math.prod(shape), position)
            arrays.append(values.reshape(shape))
            position += values.nbytes
        (count,) = struct.unpack_from('<Q', content, position)
        position += 8
        for _ in range(count):
            (size,) = struct.unpack_from('<Q', content, position)
            names.append(bytes(content[position + 8 :][:size]).decode())
            position += 8 + size
        tensors = dict(zip(names, arrays))
        is_whole = position == len(content) and len(names) == len(arrays) == len(tensors)
        if not is_whole or is_ours != (METADATA in tensors):
            raise ValueError("its arrays, names, metadata and checksum don't agree")
        if not is_ours:
            return tensors, {}
        metadata = json.loads(tensors.pop(METADATA).tobytes())
        if metadata['version'] != VERSION:
            raise CheckpointError(f'{path!r} is of a later version: upgrade gluon-transformer-zoo')
        return tensors, metadata


def _as_ndarray(value):
    """Make an array of MXNet, on NumPy's memory where possible."""
    if value.size and value.flags.c_contiguous and value.dtype == np.float32:
        return mx.nd.from_numpy(value[...])  # of the view, which becomes read-only
    return mx.nd.array(value, dtype=value.dtype)


def write_params(path, tensors, metadata=None):
    """Write arrays by name, whole or not at all; with `metadata`, a dict, also checksums."""
    arrays = {name: _as_ndarray(value) for name, value in tensors.items()}
    if metadata is not None:
        text = json.dumps({**metadata, 'version': VERSION}).encode()
        arrays[METADATA] = mx.nd.array(np.frombuffer(text, np.uint8), dtype='uint8')
    with atomic_write(path, mode=None) as temporary:
        try:
            mx.nd.save(temporary, arrays)
        except mx.MXNetError as error:
            raise OSError(f'the disk is full or failed ({str(error).splitlines()[-1]})') from error
        if metadata is not None:
            checksum = 0
            with open(temporary, 'r+b') as file:
                while part := file.read(1 << 20):
                    checksum = zlib.crc32(part, checksum)
                file.write(_TRAILER + struct.pack('<I', checksum))


def from_bfloat16(bits):
    """Return bfloat16 numbers, given as uint16, in float32, whose first half they are."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def as_weights(tensors):
    """Convert float16 tensors to float32, the type that blocks compute with."""
    return {
        name: array.astype(np.float32) if array.dtype == np.float16 else array
        for name, array in tensors.items()
    }


def plain_arrays(state_dict):
    """Make NumPy arrays of a dict's NDArrays, NumPy arrays or tensors of torch."""
    result = {}
    for name, value in state_dict.items():
        if isinstance(value, mx.nd.NDArray):
            value = value.asnumpy()
        elif type(value).__module__.startswith('torch'):
            value = value.detach().cpu()
            value = (value.float() if 'bfloat16' in str(value.dtype) else value).numpy()
        result[name] = np.asarray(value)
    return result


def read_safetensors(path):
    """Read the tensors of a safetensors file, in float32, and its metadata."""
    with reporting(f'cannot read {path!r}', *DAMAGED):
        with safetensors.safe_open(path, 'np') as file:
            metadata = file.metadata() or {}
            kinds = {name: file.get_slice(name).get_dtype() for name in [*file.keys()]}
            for name, kind in kinds.items():
                if kind.startswith(('F8', 'F6_', 'F4')):
                    problem = f'{path!r} has numbers of the type {kind} ({name}), which is unknown'
                    raise CheckpointError(f'{problem} here: convert it to bfloat16 or float16')
            unlike = [name for name, kind in kinds.items() if kind == 'BF16']
            tensors = {name: file.get_tensor(name) for name in kinds if name not in unlike}
        if unlike:
            with open(path, 'rb') as file:
                views = dict(safetensors.deserialize(file.read()))
            for name in unlike:
                bits = np.frombuffer(views[name]['data'], '<u2')
                tensors[name] = from_bfloat16(bits).reshape(views[name]['shape'])
    return as_weights(tensors), metadata


def write_safetensors(path, tensors):
    """Write `tensors`, NumPy arrays by name, whole or not at all.

    An array with several names, which is tied, is written by the first, as transformers does.
    """
    first = {id(array): name for name, array in reversed(tensors.items())}
    kept = (item for item in tensors.items() if first[id(item[1])] == item[0])
    tensors = {name: np.ascontiguousarray(array) for name, array in kept}
    problem = f'{path!r} cannot hold these tensors'
    with reporting(problem, errors=safetensors.SafetensorError):
        content = safetensors.numpy.save(tensors, {'format': 'pt'})
    with atomic_write(path, 'wb') as file:
        file.write(content)
