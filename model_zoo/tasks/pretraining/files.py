"""Samples for pre-training, and their files: GluonNLP's, Google's, pytorch-pretrained-bert's.

``.npz``: the arrays of `Samples` under their names; GluonNLP's own files have pickled lists. The
files of this project are padded, so that NumPy needs no pickles, and the archive's comment names
the vocabulary. TensorFlow's record files: for each sample 8 bytes of length, their checksum, a
``tf.train.Example`` and its checksum. ``epoch_N.json``: a sample a line, with tokens instead of
ids.
"""

import contextlib
import hashlib
import json
import os
import re
import struct
import zipfile
from typing import NamedTuple

import numpy as np

from ...checkpoint.numpy_files import ArrayArchive
from ...checkpoint.tensorflow_file import masked_crc32c, read_message
from ...errors import CheckpointError, InputError, reporting
from ...util.arrays import pad_rows
from ...util.files import atomic_write, write_json
from ...util.reading import parse_json, read_lines
from ...util.remote import open_binary


class Samples(NamedTuple):
    """Samples for pre-training, padded, with the names that GluonNLP's files have.

    Parameters
    ----------
    input_ids, segment_ids : numpy.ndarray, shape (samples, length), int32
    masked_lm_positions, masked_lm_ids : numpy.ndarray, shape (samples, masks), int32
        0 where a sample has no more masks.
    masked_lm_weights : numpy.ndarray, shape (samples, masks), float32
        1 for a mask, 0 for padding.
    next_sentence_labels : numpy.ndarray, shape (samples,), int32
        1 where the second segment is from another document.
    valid_lengths : numpy.ndarray, shape (samples,), int32
    """

    input_ids: np.ndarray
    segment_ids: np.ndarray
    masked_lm_positions: np.ndarray
    masked_lm_ids: np.ndarray
    masked_lm_weights: np.ndarray
    next_sentence_labels: np.ndarray
    valid_lengths: np.ndarray

    @property
    def count(self):
        """Number of samples."""
        return len(self.valid_lengths)

    def take(self, rows):
        """Return the samples at `rows`, as copies."""
        return Samples(*(array[rows] for array in self))

    @classmethod
    def empty(cls, count=0, length=0, masks=0):
        """Make room for samples."""
        shapes = [(count, length)] * 2 + [(count, masks)] * 3 + [count] * 2
        return cls(*map(np.empty, shapes, map(_type_of, cls._fields)))

    @classmethod
    def concatenate(cls, parts):
        """Join samples, padded with zeros to the widest of them."""
        columns = []
        for arrays in zip(*parts):
            if arrays[0].ndim > 1:
                width = max(array.shape[1] for array in arrays)
                arrays = [fit_columns(array, width) for array in arrays]
            columns.append(np.concatenate(arrays))
        return cls(*columns)


def _type_of(name):
    return np.float32 if name == 'masked_lm_weights' else np.int32


def fit_columns(array, width):
    """Copy an array, cut or padded with zeros to `width` columns."""
    array = array[:, :width]
    return np.pad(array, ((0, 0), (0, width - array.shape[1])))


def mask_weights(positions, width):
    """Return the weights of masks: 1 for each position of a sample, and 0 behind them."""
    return (np.arange(width) < np.array(list(map(len, positions)))[:, None]).astype(np.float32)


def read_shard(path, vocab=None, max_len=None):
    """Read a file of samples and check it.

    It is an ``.npz`` file, Google's TFRecord file, or pytorch-pretrained-bert's ``epoch_N.json``.
    """
    if epoch_of(path) is not None:
        samples = _read_epoch(path, vocab)
    elif is_tfrecord(path):
        samples = _read_tfrecord(path)
    else:
        samples = Samples(*_read_arrays(path, Samples._fields, vocab))
    problem = _problem(samples, vocab, max_len)
    if problem is not None:
        raise InputError(f'{path}: {problem}; make it again with create_pretraining_data.py')
    return samples


def _problem(samples, vocab, max_len):
    """Return what is wrong with the numbers of samples, which others may have made, or None."""
    ids, masked, lengths = samples.input_ids, samples.masked_lm_ids, samples.valid_lengths
    if not len(lengths):
        return 'it has no samples'
    if len({len(array) for array in samples}) > 1 or lengths.max() > ids.shape[1]:
        return f'its arrays have the shapes {[array.shape for array in samples]}'
    if max_len is not None and lengths.max() > max_len:
        return f'it has {lengths.max()} tokens in a sequence, and the model takes {max_len} at most'
    if (samples.masked_lm_positions.max(initial=0, axis=1) >= lengths).any():
        return 'a mask is at a position that its sequence does not have'
    if vocab is None:
        return None
    most = max(ids.max(), masked.max(initial=0))
    if min(ids.min(), masked.min(initial=0)) < 0 or most >= len(vocab):
        return f'it has the token id {most}, and the vocabulary {len(vocab)} tokens'
    first = getattr(vocab, 'cls_token', None) or vocab.bos_token  # RoBERTa's is the latter
    if (ids[:, 0] != vocab[first]).any():
        return f'a sequence does not begin with {first}: its vocabulary is another one'
    return None


def read_lengths(path, vocab=None, next_sentence=False):
    """Read the valid lengths of a file's samples; quicker than reading them all.

    Returns
    -------
    numpy.ndarray, shape (samples,), int32
    """
    if epoch_of(path) is not None:
        lengths = _read_epoch(path, vocab).valid_lengths
    elif is_tfrecord(path):
        lengths = _read_records(path, (_MASK,))[_MASK].sum(1, dtype=np.int32)
    else:
        (lengths,) = _read_arrays(path, ['valid_lengths'], vocab, next_sentence)
    if not lengths.size or lengths.min() < 1:
        raise InputError(f'{path} has no samples, or a sample without tokens: leave it out')
    return lengths


# -- .npz ------------------------------------------------------------------------------------------

_COMPRESSION = 1  # three times as fast as zlib's default, and files a tenth larger


def vocab_checksum(vocab):
    """Compute a hash of the tokens in the order of their ids, which identifies a vocabulary."""
    return hashlib.sha256('\n'.join(vocab.idx_to_token).encode('utf-8')).hexdigest()[:16]


def write_shard(path, samples, vocab, **facts):
    """Write samples, whole or not at all; equal samples always make equal bytes."""
    facts = {'vocab_checksum': vocab_checksum(vocab), 'vocab_size': len(vocab), **facts}
    with (
        atomic_write(path, 'wb') as file,
        zipfile.ZipFile(file, 'w', zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION) as archive,
    ):
        for name, array in samples._asdict().items():
            with archive.open(f'{name}.npy', 'w', force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
        archive.comment = json.dumps(facts, sort_keys=True).encode('utf-8')


def _read_arrays(path, names, vocab, next_sentence=False):
    """Read arrays of `Samples` by their names, padded; refuse a file made for another use."""
    cure = ': make samples of a text with create_pretraining_data.py, or use `raw`'
    problem = f'{path}: its arrays are not lists of numbers'
    with (
        reporting(f'cannot use {path!r}', cure, errors=CheckpointError),
        ArrayArchive(path) as archive,
    ):
        missing = set(Samples._fields).difference(archive.names)
        if missing:
            raise CheckpointError(f'it has no {", ".join(sorted(missing))}')
        facts = {}
        with contextlib.suppress(ValueError):  # another program's comment
            facts = parse_json(archive.comment or b'{}', dict)
        misfit = None
        if vocab is not None and facts.get('vocab_checksum') not in (None, vocab_checksum(vocab)):
            misfit = "was made with another vocabulary than the model's"
        elif next_sentence and not facts.get('next_sentence', True):
            misfit = 'has no next sentences: use `masked_lm_only`'
        if misfit:
            raise InputError(f'{path!r} {misfit}')
        arrays = {name: archive.read(name) for name in names}
        with reporting(problem, errors=(TypeError, ValueError)):
            return [_plain(name, array) for name, array in arrays.items()]


def _plain(name, array):
    """Return an array of `Samples`; rows of GluonNLP's may differ in length."""
    if name in ('next_sentence_labels', 'valid_lengths'):
        array = array.reshape(-1)
    elif array.dtype == object:
        array = pad_rows(array)
    return array.astype(_type_of(name), copy=False)


# -- pytorch-pretrained-bert's epochs --------------------------------------------------------------

_NAME = re.compile(r'epoch_(\d+)\.json')
_LINE = {
    'tokens': list[str],
    'segment_ids': list[int],
    'is_random_next': bool | int,
    'masked_lm_positions': list[int],
    'masked_lm_labels': list[str],
}


def epoch_of(path):
    """Return the number of the epoch in a file's name, or None."""
    match = _NAME.fullmatch(os.path.basename(path))
    return None if match is None else int(match[1])


def _read_epoch(path, vocab):
    rows = []
    for number, line in read_lines(path):
        problem = f"{path!r}, line {number}: not a sample of the model's vocabulary"
        if line.strip():
            with reporting(problem, errors=(LookupError, OverflowError, ValueError)):
                rows.append(_row(parse_json(line, _LINE), vocab.token_to_idx))
    if not rows:
        return Samples.empty()
    tokens, types, is_random, positions, labels = zip(*rows)
    arrays = map(pad_rows, (tokens, types, positions, labels))
    weights = mask_weights(positions, max(map(len, positions)))
    lengths = np.array(list(map(len, tokens)), np.int32)
    return Samples(*arrays, weights, np.array(is_random, np.int32), lengths)


def _row(fields, known):
    """Return a sample's values in the order of its line, with ids instead of tokens."""
    tokens, types, is_random, positions, labels = (fields[name] for name in _LINE)
    if len(tokens) != len(types) or len(positions) != len(labels):
        raise ValueError('its lists differ in length')
    unknown = {*tokens, *labels}.difference(known)  # whose value for any other is [UNK]
    if unknown:
        raise ValueError(f'{min(unknown)!r:.80} is unknown')
    tokens, labels = ([known[token] for token in names] for names in (tokens, labels))
    arrays = [np.array(values, np.int32) for values in (tokens, types, positions, labels)]
    return *arrays[:2], bool(is_random), *arrays[2:]


def write_epoch(path, parts, vocab, max_seq_length):
    """Write samples as ``epoch_N.json``, and their number beside it."""
    count, tokens = 0, vocab.idx_to_token
    with atomic_write(path) as file:
        for samples in parts:
            masks = samples.masked_lm_weights.sum(axis=1).astype(int)
            for row, (length, most) in enumerate(zip(samples.valid_lengths, masks)):
                values = (
                    [tokens[i] for i in samples.input_ids[row, :length]],
                    samples.segment_ids[row, :length].tolist(),
                    bool(samples.next_sentence_labels[row]),
                    samples.masked_lm_positions[row, :most].tolist(),
                    [tokens[i] for i in samples.masked_lm_ids[row, :most]],
                )
                file.write(json.dumps(dict(zip(_LINE, values))) + '\n')
            count += samples.count
    metrics = {'num_training_examples': count, 'max_seq_len': max_seq_length}
    write_json(f'{os.path.splitext(path)[0]}_metrics.json', metrics)


# -- Google's TFRecords ----------------------------------------------------------------------------

_HEADER, _CHECKSUM = struct.Struct('<QI'), struct.Struct('<I')
_MASK = 'input_mask'
# Google's names, in the order in which it writes them
_NAMES = ('input_ids', _MASK, *Samples._fields[1:6])
_FLOATS, _INTEGERS = 2, 3  # numbers of a Feature's fields
_PACKED = 2  # wire type


def is_tfrecord(path):
    """Return whether a file begins with a record."""
    try:
        with open_binary(path) as file:
            head = file.read(_HEADER.size)
    except OSError:
        return False
    return len(head) == _HEADER.size and _HEADER.unpack(head)[1] == masked_crc32c(head[:8])


def _read_tfrecord(path):
    arrays = _read_records(path, _NAMES)
    lengths = arrays.pop(_MASK).sum(1, dtype=np.int32)
    arrays['next_sentence_labels'] = arrays['next_sentence_labels'].reshape(-1)
    return Samples(valid_lengths=lengths, **arrays)


def _read_records(path, names):
    """Read features of a file's records: name -> array with a row for each record."""
    with reporting(f'cannot read {path!r}'), open_binary(path) as file:
        content = file.read()
    problem = f'{path!r} is no file of pre-training samples, or is damaged'
    errors = (ArithmeticError, LookupError, TypeError, ValueError, struct.error)
    with reporting(problem, errors=errors):
        features = map(_features, _records(content))
        rows = [[_numbers(*each[name]) for name in names] for each in features]
        return {name: np.stack(column) for name, column in zip(names, zip(*rows, strict=True))}


def _records(content):
    """Yield the contents of a file's records."""
    start, view = 0, memoryview(content)
    while start < len(content):
        length, checksum = _HEADER.unpack_from(view, start)
        if masked_crc32c(view[start : start + 8]) != checksum:
            raise ValueError(f'the record at byte {start} has another length')
        start += _HEADER.size
        record, start = view[start : start + length], start + length
        if _CHECKSUM.unpack_from(view, start)[0] != masked_crc32c(record):
            raise ValueError(f'the record before byte {start} has another checksum')
        yield record
        start += _CHECKSUM.size


def _features(record):
    """Read a tf.train.Example: a feature's name -> the kind of its numbers, and these, packed."""
    features = {}
    (example,) = read_message(record)[1]
    for entry in read_message(example)[1]:
        (name,), (value,) = (read_message(entry)[number] for number in (1, 2))
        ((kind, (numbers,)),) = read_message(value).items()
        features[bytes(name).decode('ascii')] = kind, *read_message(numbers)[1]
    return features


def _numbers(kind, packed):
    """Decode the numbers of a feature: floats, or int32 as varints."""
    if kind == _FLOATS:
        return np.frombuffer(packed, '<f4')
    octets = np.frombuffer(packed, np.uint8)
    starts = np.flatnonzero(np.concatenate([[True], octets[:-1] < 128]))
    places = np.arange(len(octets)) - np.repeat(starts, np.diff([*starts, len(octets)]))
    bits = (octets & 127).astype(np.int64) << 7 * places
    return np.add.reduceat(bits, starts).astype(np.int32)


def write_tfrecords(paths, parts, max_seq_length, max_predictions_per_seq):
    """Write samples to files, one sample to each in turn, all files whole or none."""
    count = 0
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(atomic_write(path, 'wb')) for path in paths]
        for samples in parts:
            for record in _examples(samples, max_seq_length, max_predictions_per_seq):
                for data in (struct.pack('<Q', len(record)), record):
                    files[count % len(files)].write(data + _CHECKSUM.pack(masked_crc32c(data)))
                count += 1


def _examples(samples, length, masks):
    """Yield the samples as serialized examples."""
    mask = np.arange(length) < samples.valid_lengths[:, None]
    columns = {**samples._asdict(), _MASK: mask.astype(np.int32)}
    for name in _NAMES[:-1]:
        columns[name] = fit_columns(columns[name], masks if name.startswith('masked') else length)
    for row in range(samples.count):
        features = (_feature(name, np.atleast_1d(columns[name][row])) for name in _NAMES)
        yield _delimited(1, b''.join(features))


def _feature(name, values):
    """Serialize a feature's name and numbers."""
    if values.dtype == np.float32:
        kind, packed = _FLOATS, values.astype('<f4').tobytes()
    else:
        kind, packed = _INTEGERS, b''.join(map(_varint, values.tolist()))
    value = _delimited(kind, _delimited(1, packed))
    return _delimited(1, _delimited(1, name.encode()) + _delimited(2, value))


def _delimited(number, content):
    """Serialize a field of a protocol buffer."""
    return bytes([number << 3 | _PACKED]) + _varint(len(content)) + content


def _varint(number):
    octets = []
    while number > 127:
        octets.append(number & 127 | 128)
        number >>= 7
    return bytes([*octets, number])
