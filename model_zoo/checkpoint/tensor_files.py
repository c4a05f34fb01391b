"""Files of safetensors; MXNet's ``.params``, and graphs (``symbol.json``).

MXNet follows the numbers in a graph without a check, so a damaged one can end the process.
"""

# mx.nd.load isn't used, because a .params file has no checksum and MXNet trusts its content: a
# damaged length can make it allocate terabytes.
#
# Format (src/ndarray/ndarray.cc), little-endian: u64 magic 0x112, u64 0, u64 number of arrays; for
# each array u32 version, i32 storage type, u32 dimensions and i64 each, i32 device type, i32 device
# number, i32 dtype, the elements; then u64 number of names, and for each u64 length and the bytes.
# Our own files hold one more array, METADATA: a JSON text with their version. Behind what MXNet
# reads they end with _TRAILER and the CRC-32 of all that comes before it.

import contextlib
import json
import math
import os
import struct
import zlib

import mxnet as mx
import numpy as np
import safetensors
import safetensors.numpy

from ..errors import CheckpointError, InputError
from ..util.files import atomic_write
from ..util.reading import parse_json, read_json

__all__ = [
    'METADATA',
    'PARAMS_START',
    'as_weights',
    'check_graph',
    'from_bfloat16',
    'is_safetensors',
    'plain_arrays',
    'read_params',
    'read_parts',
    'read_safetensors',
    'reading',
    'write_params',
    'write_safetensors',
]


@contextlib.contextmanager
def reading(path):
    """A context in which the error of a file that can't be read is a CheckpointError.

    So is a device: what is read here is read whole, and a device may have no end.
    """
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise CheckpointError(f'cannot read {path!r}: it is no regular file')
    try:
        yield
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointError(f'cannot read {path!r}: {error.strerror or error}') from error
    except Exception as error:  # a damaged file can raise anything
        what = (str(error).splitlines() or [type(error).__name__])[0]
        raise CheckpointError(
            f'{path!r} is damaged ({what}); copy or download the file again'
        ) from error


_MOST_OUTPUTS = 3  # of an operator that doesn't say their number


def check_graph(path):
    """Raise CheckpointError unless all numbers in a ``symbol.json`` name a node that is there."""
    try:
        graph = read_json(path)
        nodes = graph['nodes']
        for number, node in enumerate(nodes):
            if not isinstance(node['op'], str) or not isinstance(node['name'], str):
                raise ValueError(f'node {number} has no operator')
            for source in node['inputs']:
                _check_source(nodes[:number], source)
        for source in graph['heads']:
            _check_source(nodes, source)
        for number in graph['arg_nodes']:
            _check_number(number, len(nodes))
    except (InputError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f'the graph {path!r} is damaged: {error}') from error


def _check_number(number, end):
    if type(number) is not int or not 0 <= number < end:
        raise ValueError(f'it names {number!r:.40} of {end}')


def _check_source(nodes, source):
    """A source is a node's number, the number of its output, and a version."""
    number, output = source[:2]
    _check_number(number, len(nodes))
    node = nodes[number]
    attributes = node.get('attrs', {})
    count = 1 if node['op'] == 'null' else int(attributes.get('num_outputs', _MOST_OUTPUTS))
    _check_number(output, count)


#: name of the entry of a file of ours that holds its metadata and checksums
METADATA = '__metadata__'
VERSION = 1
_MAGIC = 0x112
_TRAILER = b'zoocrc32'
_TRAILER_SIZE = len(_TRAILER) + 4
_V2, _V3 = 0xF993FAC9, 0xF993FACA  # V3 is NumPy's shapes: a scalar has 0 dimensions
_DTYPES = ('f4', 'f8', 'f2', 'u1', 'i4', 'i1', 'i8', '?')  # by MXNet's numbers


#: the first bytes of a ``.params`` file
PARAMS_START = struct.pack('<Q', _MAGIC)


def _damaged(path, problem):
    return CheckpointError(f'{path!r} is damaged: {problem}; copy or download the file again')


def _read_array(path, read):
    """The array that a ``.params`` file has next."""
    version, storage = read('u4', 2)
    if version not in (_V2, _V3):
        raise CheckpointError(
            f'{path!r} holds an array of format {version:#x}; formats {_V2:#x} and {_V3:#x} '
            '(MXNet 1.0 and later) can be read: load and save it once with MXNet'
        )
    if storage != 0:
        raise CheckpointError(f'{path!r} holds a sparse array; only dense ones can be read')
    (dimensions,) = read('u4')
    if dimensions > 32:
        raise _damaged(path, f'an array of {dimensions} dimensions')
    shape = tuple(read('i8', int(dimensions)).tolist())
    flag = int(read('i4', 3)[2])
    if not 0 <= flag < len(_DTYPES) or any(size < 0 for size in shape):
        raise _damaged(path, f'an array of shape {shape} and dtype number {flag}')
    values = read(_DTYPES[flag], math.prod(shape))
    try:
        return values.reshape(shape)
    except ValueError as error:  # one size is 0 and another one beyond what NumPy can have
        raise _damaged(path, f'an array of shape {shape}') from error


def read_params(path):
    """The arrays of a ``.params`` file, as views that may not be written to; and its metadata."""
    with open(path, 'rb') as file:
        data = memoryview(file.read(os.fstat(file.fileno()).st_size))  # a device's is 0
    content, trailer = data[:-_TRAILER_SIZE], bytes(data[-_TRAILER_SIZE:])
    is_ours, position = trailer[:-4] == _TRAILER, 0
    if not is_ours:
        content = data
    elif trailer[-4:] != struct.pack('<I', zlib.crc32(content)):
        raise _damaged(path, 'its checksum is wrong')

    def read(dtype, count=1):
        """The next values, as a view."""
        nonlocal position
        start, dtype = position, np.dtype(dtype).newbyteorder('<')
        position += count * dtype.itemsize
        if position > len(content):
            raise _damaged(path, f'it ends at byte {len(content)}, in the middle of an array')
        return np.frombuffer(content[start:position], dtype)

    magic, _ = read('u8', 2)
    if magic != _MAGIC:
        raise CheckpointError(f"{path!r} is not one of MXNet's .params files")
    arrays = [_read_array(path, read) for _ in range(read('u8')[0])]
    names = []
    for _ in range(read('u8')[0]):
        try:
            names.append(read('u1', int(read('u8')[0])).tobytes().decode())
        except UnicodeDecodeError as error:
            raise _damaged(path, 'a name is not text') from error
    if arrays and not names:
        raise CheckpointError(
            f'{path!r} holds arrays without names; save a dict of arrays with their names instead'
        )
    if len(names) != len(arrays) or len(set(names)) != len(names):
        raise _damaged(path, f'{len(arrays)} arrays have {len(set(names))} names')
    tensors = dict(zip(names, arrays))
    if is_ours != (METADATA in tensors):
        raise _damaged(path, 'its checksum or its metadata is missing')
    if not is_ours:
        return tensors, {}
    try:
        metadata = parse_json(tensors.pop(METADATA).tobytes())
        version = metadata['version']
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(path, 'its metadata cannot be read') from error
    if version != VERSION:
        raise CheckpointError(
            f'{path!r} has version {version} of this format, and version {VERSION} can be '
            'read: upgrade gluon-transformer-zoo'
        )
    return tensors, metadata


def _append_checksum(path):
    checksum = 0
    with open(path, 'r+b') as file:
        for part in iter(lambda: file.read(1 << 20), b''):
            checksum = zlib.crc32(part, checksum)
        file.write(_TRAILER + struct.pack('<I', checksum))


def _as_ndarray(value):
    """An array of NumPy as one of MXNet, with the same memory where that is possible."""
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
            _append_checksum(temporary)


def from_bfloat16(bits):
    """bfloat16, as uint16, in float32, of which its bits are the first half."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def as_weights(tensors):
    """`tensors`, with float16 converted to float32, the type that blocks compute with."""
    return {
        name: array.astype(np.float32) if array.dtype == np.float16 else array
        for name, array in tensors.items()
    }


def plain_arrays(state_dict):
    """A dict's NDArrays, NumPy arrays or tensors of torch as NumPy arrays."""
    result = {}
    for name, value in state_dict.items():
        if hasattr(value, 'asnumpy'):
            value = value.asnumpy()
        elif hasattr(value, 'detach'):  # torch's
            value = value.detach().cpu()
            value = (value.float() if 'bfloat16' in str(value.dtype) else value).numpy()
        result[name] = np.asarray(value)
    return result


def is_safetensors(head):
    """Whether a file that starts with the bytes `head` is one: 8 bytes of length, then JSON."""
    return head[8:9] == b'{'


def read_safetensors(path):
    """The tensors of a safetensors file, in float32, and what the file says of itself."""
    with reading(path):
        with safetensors.safe_open(path, 'np') as file:
            metadata = file.metadata() or {}
            names = list(file.keys())
            unlike = [name for name in names if file.get_slice(name).get_dtype() == 'BF16']
            tensors = {name: file.get_tensor(name) for name in names if name not in unlike}
        if unlike:
            with open(path, 'rb') as file:
                views = dict(safetensors.deserialize(file.read()))
            for name in unlike:
                bits = np.frombuffer(views[name]['data'], '<u2')
                tensors[name] = from_bfloat16(bits).reshape(views[name]['shape'])
    return as_weights(tensors), metadata


def read_parts(path, index, read):
    """Read a checkpoint of several files, named by its index; ``read(path)`` reads one."""
    files = index['weight_map']
    if not isinstance(files, dict) or not all(isinstance(name, str) for name in files.values()):
        raise CheckpointError(f"{path!r} is damaged: its weight_map isn't names of files")
    folder = os.path.dirname(path)
    result, metadata = {}, {}
    for name in sorted(set(files.values())):
        if os.path.basename(name) != name:
            raise CheckpointError(f'{path!r} names a file in another folder: {name!r}')
        if name.endswith('.json') or not name.isprintable():
            raise CheckpointError(f'{path!r} names {name!r}, which is not a file of weights')
        tensors, metadata = read(os.path.join(folder, name))
        lacking = [key for key, file in files.items() if file == name and key not in tensors]
        if lacking:
            raise CheckpointError(
                f'{os.path.join(folder, name)!r} lacks what {path!r} says that it has: '
                + ', '.join(lacking[:20])
            )
        result.update(tensors)
    return result, metadata


def write_safetensors(path, tensors):
    """Write `tensors`, NumPy arrays by name, whole or not at all.

    An array with several names, which is tied, is written by the first, as transformers does.
    """
    first = {id(array): name for name, array in reversed(tensors.items())}
    tensors = {
        name: np.ascontiguousarray(array)
        for name, array in tensors.items()
        if first[id(array)] == name
    }
    try:
        content = safetensors.numpy.save(tensors, {'format': 'pt'})
    except safetensors.SafetensorError as error:
        raise InputError(f'{path!r} cannot hold these tensors: {error}') from error
    with atomic_write(path, 'wb') as file:
        file.write(content)
