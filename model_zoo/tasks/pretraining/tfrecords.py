"""Samples for pre-training in TensorFlow's record files, as Google's scripts write and read them.

A file is a sequence of records: 8 bytes with the length, the checksum of these, the content, and
its checksum. The content is a ``tf.train.Example``, a protocol buffer: name -> list of integers or
of floats. All lists of a name have the same length in Google's files, the samples' with padding.
TensorFlow isn't needed.
"""

import contextlib
import struct

import numpy as np

from ...checkpoint.tensorflow_file import crc32c
from ...errors import InputError
from ...util.files import atomic_write
from ...util.remote import open_binary
from .samples import WEIGHTS, Samples

__all__ = ['is_tfrecord', 'read_tfrecord', 'read_tfrecord_lengths', 'write_tfrecords']

_HEADER = struct.Struct('<QI')
_CHECKSUM = struct.Struct('<I')
_MASK, _LABELS = 'input_mask', 'next_sentence_labels'
# Google's names, in the order in which it writes them
_NAMES = (
    'input_ids', _MASK, 'segment_ids', 'masked_lm_positions', 'masked_lm_ids', WEIGHTS, _LABELS,
)  # fmt: skip
_FLOATS, _INTEGERS = 2, 3  # numbers of a Feature's fields
_PACKED = 2  # wire type


def is_tfrecord(path):
    """Whether a file begins with a record.

    Parameters
    ----------
    path : str

    Returns
    -------
    bool
    """
    try:
        with open_binary(path) as file:
            head = file.read(_HEADER.size)
    except OSError:
        return False
    return len(head) == _HEADER.size and _HEADER.unpack(head)[1] == crc32c(head[:8], masked=True)


def read_tfrecord(path):
    """Read a file of samples.

    Parameters
    ----------
    path : str

    Returns
    -------
    Samples
    """
    arrays = _read(path, _NAMES, verify=True)
    lengths = arrays.pop(_MASK).sum(1, dtype=np.int32)
    arrays[_LABELS] = arrays[_LABELS].reshape(-1)
    return Samples(valid_lengths=lengths, **arrays)


def read_tfrecord_lengths(path):
    """The valid lengths of a file's samples; the checksums of the samples aren't compared.

    Parameters
    ----------
    path : str

    Returns
    -------
    numpy.ndarray, shape (samples,), int32
    """
    return _read(path, (_MASK,), verify=False)[_MASK].sum(1, dtype=np.int32)


def _read(path, names, verify):
    """Name -> the rows of a file's records."""
    try:
        with open_binary(path) as file:
            content = file.read()
    except OSError as error:
        raise InputError(f'cannot read {path!r}: {error.strerror}') from error
    columns = {name: [] for name in names}
    try:
        for record in _records(content, verify):
            features = dict(map(_feature, _fields(_only(record, 1))))
            for name, parts in columns.items():
                parts.append(features[name])
        return {name: _array(name, parts) for name, parts in columns.items()}
    except KeyError as error:
        raise InputError(
            f'{path!r} is no file of pre-training samples: a record lacks {error}'
        ) from error
    except (IndexError, UnicodeDecodeError, ValueError) as error:
        raise InputError(
            f'{path!r} is damaged or was cut off ({error}): make it anew with '
            'create_pretraining_data.py, or leave it out'
        ) from error


def _records(content, verify):
    """The contents of a file's records."""
    place, view = 0, memoryview(content)
    while place < len(content):
        head = bytes(view[place : place + _HEADER.size])
        if len(head) < _HEADER.size:
            raise ValueError('its last record is not whole')
        length, checksum = _HEADER.unpack(head)
        if crc32c(head[:8], masked=True) != checksum:
            raise ValueError(f'the length at byte {place} has another checksum')
        place += _HEADER.size
        record, end = view[place : place + length], view[place + length : place + length + 4]
        if len(end) < _CHECKSUM.size:
            raise ValueError('its last record is not whole')
        if verify and crc32c(record, masked=True) != _CHECKSUM.unpack(end)[0]:
            raise ValueError(f'the record at byte {place} has another checksum')
        yield record
        place += length + _CHECKSUM.size


def _fields(message):
    """The length-delimited fields of a protocol buffer: pairs of number and content."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        if key & 7 != _PACKED:
            raise ValueError(f'a field has the wire type {key & 7}')
        length, place = _varint(message, place)
        if place + length > len(message):
            raise ValueError('a field is longer than its message')
        yield key >> 3, message[place : place + length]
        place += length


def _varint(message, place):
    """An integer, and the place behind it."""
    value = shift = 0
    while True:
        byte = message[place]
        value, place = value | (byte & 127) << shift, place + 1
        if byte < 128:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError('a number of more than 64 bits')


def _only(message, number):
    """The content of the field that a message consists of."""
    found = [content for each, content in _fields(message) if each == number]
    if len(found) != 1:
        raise ValueError('it is no tf.train.Example')
    return found[0]


def _feature(field):
    """An entry of the map of features: its name, and its kind with the packed numbers."""
    entry = dict(_fields(field[1]))
    ((kind, numbers),) = _fields(entry[2])
    return bytes(entry[1]).decode('ascii'), (kind, _only(numbers, 1))


def _array(name, parts):
    """The lists of one name as rows."""
    wanted = _FLOATS if name == WEIGHTS else _INTEGERS
    if any(kind != wanted for kind, _ in parts):
        raise ValueError(f'{name} has numbers of another type')
    packed = [np.frombuffer(numbers, np.uint8) for _, numbers in parts]
    values = np.concatenate(packed)
    if wanted == _FLOATS:
        counts, values = [len(part) / 4 for part in packed], values.view('<f4')
    else:
        counts, values = [np.count_nonzero(part < 128) for part in packed], _integers(values)
    if len(set(counts)) != 1:
        raise ValueError(f'the lists {name} have {min(counts)} to {max(counts)} numbers')
    return values.reshape(len(parts), -1)


def _integers(packed):
    """The int32 numbers of varints that stand one behind the other."""
    last = packed < 128
    starts = np.flatnonzero(np.concatenate([[True], last[:-1]]))
    place = np.arange(len(packed)) - np.repeat(starts, np.diff([*starts, len(packed)]))
    if len(packed) and (not last[-1] or place.max() > 4):
        raise ValueError('a number is too large')
    bits = (packed & 127).astype(np.int64) << 7 * place
    return np.add.reduceat(bits, starts).astype(np.int32)


def write_tfrecords(paths, parts, max_seq_length, max_predictions_per_seq):
    """Write samples to files, one sample to each in turn, all files whole or none.

    Parameters
    ----------
    paths : sequence of str
    parts : iterable of Samples
    max_seq_length, max_predictions_per_seq : int
        To which they are padded, as Google's reader wants it.
    """
    count = 0
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(atomic_write(path, 'wb')) for path in paths]
        for samples in parts:
            for record in _examples(samples, max_seq_length, max_predictions_per_seq):
                head = struct.pack('<Q', len(record))
                files[count % len(files)].write(
                    head
                    + _CHECKSUM.pack(crc32c(head, masked=True))
                    + record
                    + _CHECKSUM.pack(crc32c(record, masked=True))
                )
                count += 1


def _examples(samples, length, masks):
    """Serialized examples."""
    mask = np.arange(length) < samples.valid_lengths[:, None]
    columns = {**samples._asdict(), _MASK: mask, _LABELS: samples.next_sentence_labels[:, None]}
    widths = {_LABELS: 1}
    encoded = []
    for name in _NAMES:
        width = widths.get(name, masks if name.startswith('masked') else length)
        rows = columns[name][:, :width]
        rows = np.pad(rows, ((0, 0), (0, width - rows.shape[1])))
        if name == WEIGHTS:
            kind, packed = _FLOATS, [row.tobytes() for row in rows.astype('<f4')]
        else:
            kind, packed = _INTEGERS, _varints(rows)
        key = _delimited(1, name.encode())
        encoded.append(
            [
                _delimited(1, key + _delimited(2, _delimited(kind, _delimited(1, row))))
                for row in packed
            ]
        )
    for features in zip(*encoded):
        yield _delimited(1, b''.join(features))


def _delimited(number, content):
    """A field of a protocol buffer."""
    head, length = [number << 3 | _PACKED], len(content)
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    return bytes([*head, length]) + content


def _varints(rows):
    """Each row of numbers from 0 up, packed."""
    places = 7 * np.arange(5)
    parts = rows.astype(np.int64)[..., None] >> places
    used = np.maximum(np.count_nonzero(parts, axis=-1), 1)[..., None] > np.arange(5)
    more = np.concatenate([used[..., 1:], np.zeros_like(used[..., :1])], -1)
    octets = (parts & 127 | more << 7).astype(np.uint8)
    return [octet[use].tobytes() for octet, use in zip(octets, used)]
