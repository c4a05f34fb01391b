"""Tensors of the Open Inference Protocol, as JSON and as bytes."""

import json
import struct

import numpy as np

from ...errors import InputError
from .payload import read_object, take

__all__ = ['read_request', 'write_response']

#: the protocol's datatypes; BYTES is apart
TYPES = {
    'BOOL': '?', 'UINT8': 'u1', 'UINT16': '<u2', 'UINT32': '<u4', 'UINT64': '<u8', 'INT8': 'i1',
    'INT16': '<i2', 'INT32': '<i4', 'INT64': '<i8', 'FP16': '<f2', 'FP32': '<f4', 'FP64': '<f8',
}  # fmt: skip


def read_request(body, header_length=None):
    """A request: its JSON, and its inputs as arrays.

    Parameters
    ----------
    body : bytes
    header_length : int, optional
        How much of it is JSON, if tensors follow it as bytes.

    Returns
    -------
    dict
    dict of str to numpy.ndarray
        By name; str in an array of objects for BYTES.
    """
    size = len(body) if header_length is None else header_length
    if not 0 <= size <= len(body):
        raise InputError(f'the header of {size} bytes is longer than the body, {len(body)}')
    content = read_object(body[:size])
    take(content, 'inputs', list)
    rest, arrays = memoryview(body)[size:], {}
    for tensor in content['inputs']:
        name, datatype, shape = _described(tensor)
        count = int(np.prod(shape, dtype=np.int64))
        parameters = tensor.get('parameters') or {}
        length = parameters.get('binary_data_size') if isinstance(parameters, dict) else None
        if length is not None:
            if not isinstance(length, int) or not 0 <= length <= len(rest):
                raise InputError(f'the input {name} has fewer bytes than its binary_data_size')
            values, rest = _from_bytes(name, datatype, bytes(rest[:length])), rest[length:]
        else:
            values = _from_json(name, datatype, tensor.get('data'))
        if len(values) != count:
            raise InputError(f'the input {name} has {len(values)} values, and its shape {count}')
        arrays[name] = values.reshape(shape)
    if len(rest):
        raise InputError(f'{len(rest)} bytes are left over behind the tensors')
    return content, arrays


def _described(tensor):
    """Name, datatype and shape of a tensor."""
    if not isinstance(tensor, dict) or not isinstance(tensor.get('name'), str):
        raise InputError('an input has no name')
    name, datatype, shape = tensor['name'], tensor.get('datatype'), tensor.get('shape')
    if datatype != 'BYTES' and datatype not in TYPES:
        raise InputError(f'the input {name} has the datatype {datatype!r}, which is not known')
    if not isinstance(shape, list) or not all(
        isinstance(each, int) and not isinstance(each, bool) and 0 <= each < 2**31 for each in shape
    ):
        raise InputError(f'the shape of the input {name} must be a list of integers')
    return name, datatype, shape


def _from_bytes(name, datatype, data):
    if datatype != 'BYTES':
        kind = np.dtype(TYPES[datatype])
        if len(data) % kind.itemsize:
            raise InputError(f'the input {name} has {len(data)} bytes, no multiple of its datatype')
        return np.frombuffer(data, kind)
    values, place = [], 0
    while place < len(data):
        if place + 4 > len(data):
            raise InputError(f'the bytes of the input {name} end within a length')
        (length,) = struct.unpack_from('<I', data, place)
        value = data[place + 4 : place + 4 + length]
        if len(value) != length:
            raise InputError(f'the bytes of the input {name} end within a text')
        values.append(_text(name, value))
        place += 4 + length
    return _objects(values)


def _from_json(name, datatype, data):
    values, left = [], [data]
    while left:
        each = left.pop()
        if isinstance(each, list):
            left += reversed(each)
        else:
            values.append(each)
    if datatype == 'BYTES':
        if not all(isinstance(each, str) for each in values):
            raise InputError(f'the data of the input {name} must be str')
        return _objects(values)
    if not all(isinstance(each, (bool, int, float)) for each in values):
        raise InputError(f'the data of the input {name} must be numbers')
    try:
        return np.array(values, TYPES[datatype])
    except (ValueError, OverflowError) as error:
        raise InputError(f'the data of the input {name} is no {datatype}: {error}') from None


def _text(name, value):
    try:
        return value.decode('utf-8')
    except UnicodeDecodeError:
        raise InputError(f'a text of the input {name} is not UTF-8') from None


def _objects(values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


def write_response(head, outputs, binary):
    """A response.

    Parameters
    ----------
    head : dict
        What comes before the outputs.
    outputs : dict of str to numpy.ndarray
        str in an array of objects for BYTES.
    binary : set of str
        Names of the outputs that are sent as bytes.

    Returns
    -------
    bytes
    int or None
        How much of them is JSON, if bytes follow it.
    """
    tensors, parts = [], []
    for name, values in outputs.items():
        datatype = _datatype(values)
        tensor = {'name': name, 'datatype': datatype, 'shape': list(values.shape)}
        if name in binary:
            parts.append(_to_bytes(datatype, values))
            tensor['parameters'] = {'binary_data_size': len(parts[-1])}
        else:
            tensor['data'] = values.ravel().tolist()
        tensors.append(tensor)
    header = json.dumps({**head, 'outputs': tensors}).encode()
    return b''.join([header, *parts]), len(header) if parts else None


def _datatype(values):
    if values.dtype == object:
        return 'BYTES'
    return next(name for name, kind in TYPES.items() if np.dtype(kind) == values.dtype)


def _to_bytes(datatype, values):
    if datatype != 'BYTES':
        return values.astype(TYPES[datatype]).tobytes()
    encoded = [each.encode() for each in values.ravel()]
    return b''.join(struct.pack('<I', len(each)) + each for each in encoded)
