"""Samples for pre-training, and their files: GluonNLP's, Google's, pytorch-pretrained-bert's.

``.npz``: the arrays of `Samples` under these names, in GluonNLP's own files as pickled objects.
Ours are padded, so that NumPy needs no pickles, and the archive's comment names the vocabulary.
TensorFlow's record files: for each sample 8 bytes of length, their checksum, a ``tf.train.Example``
and its checksum. ``epoch_N.json``: a sample a line, with tokens instead of ids.
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
from ...util.reading import parse_json, read_json, read_lines
from ...util.remote import open_binary

#: name of the array of floats
WEIGHTS = 'masked_lm_weights'
#: names of the arrays with a row for each sample
MATRICES = 'input_ids', 'segment_ids', 'masked_lm_positions', 'masked_lm_ids', WEIGHTS


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
        """The samples at `rows`, as copies."""
        return Samples(*(array[rows] for array in self))

    @classmethod
    def empty(cls, count, length, masks):
        """Room for samples."""
        shapes = [(count, length)] * 2 + [(count, masks)] * 3 + [count] * 2
        dtypes = [np.float32 if name == WEIGHTS else np.int32 for name in cls._fields]
        return cls(*map(np.empty, shapes, dtypes))

    @classmethod
    def none(cls):
        """No samples."""
        return cls.empty(0, 0, 0)

    @classmethod
    def concatenate(cls, parts):
        """Samples of several, padded with zeros to the widest of them."""
        return cls(*map(_stack_rows, zip(*parts)))

    @classmethod
    def gather(cls, owners, rows, samples_of):
        """Samples of several parts: of each of the `owners` the row beside it."""
        order, pieces = np.argsort(owners, kind='stable'), [cls.none()]
        for owner in np.unique(owners).tolist():
            chosen = order[owners[order] == owner]
            pieces.append(samples_of(owner).take(rows[chosen]))
        return cls.concatenate(pieces).take(np.argsort(order))


def _stack_rows(arrays):
    if len(arrays) == 1:
        return arrays[0]
    if arrays[0].ndim > 1:
        width = max(array.shape[1] for array in arrays)
        arrays = [fit_columns(array, width) for array in arrays]
    return np.concatenate(arrays)


def fit_columns(array, width):
    """A copy with as many columns as wanted, padded with zeros."""
    array = array[:, :width]
    return np.pad(array, ((0, 0), (0, width - array.shape[1])))


def mask_weights(positions, width):
    """1 for each mask of the samples, and 0 behind them."""
    rows = [np.ones(len(row)) for row in positions]
    return pad_rows(rows, length=width).astype(np.float32)


def check_samples(path, samples, vocab=None, max_len=None):
    """Raise InputError if numbers of the samples of a file can't be."""

    def refuse(problem):
        raise InputError(f'{path}: {problem}; make it again with create_pretraining_data.py')

    if not samples.count:
        refuse('it has no samples')
    ids, lengths, weights = samples.input_ids, samples.valid_lengths, samples.masked_lm_weights
    longest = lengths.max()
    if lengths.min() < 1 or longest > ids.shape[1] or ids.shape != samples.segment_ids.shape:
        refuse(f'valid_lengths of {lengths.min()} to {longest} in rows of {ids.shape[1]}')
    if max_len is not None and longest > max_len:
        refuse(f'it has sequences of {longest} tokens, and the model takes {max_len} at most')
    shapes = {samples.masked_lm_positions.shape, samples.masked_lm_ids.shape, weights.shape}
    if len(shapes) > 1:
        refuse(f'positions, ids and weights of the masks have the shapes {sorted(shapes)}')
    binary = {
        'weight of a mask': weights,
        'label of a next sentence': samples.next_sentence_labels,
        'segment': samples.segment_ids,
    }
    for name, array in binary.items():
        if not ((array == 0) | (array == 1)).all():
            refuse(f'a {name} is neither 0 nor 1')
    positions = samples.masked_lm_positions
    if positions.min(initial=0) < 0 or (positions * (weights > 0) >= lengths[:, None]).any():
        refuse('a mask is at a position that its sequence does not have')
    if vocab is None:
        return
    most = max(ids.max(), samples.masked_lm_ids.max(initial=0))
    if min(ids.min(), samples.masked_lm_ids.min(initial=0)) < 0 or most >= len(vocab):
        refuse(f'it has the token id {most}, and the vocabulary {len(vocab)} tokens')
    first = getattr(vocab, 'cls_token', None) or vocab.bos_token  # RoBERTa's is the latter
    if (ids[:, 0] != vocab[first]).any():
        refuse(f'a sequence does not begin with {first}: it is of another vocabulary')


_NAME = re.compile(r'epoch_(\d+)\.json')
_COUNT, _LENGTH = 'num_training_examples', 'max_seq_len'
_LINE = {
    'tokens': list[str],
    'segment_ids': list[int],
    'is_random_next': bool | int,
    'masked_lm_positions': list[int],
    'masked_lm_labels': list[str],
}


def epoch_of(path):
    """The number of the epoch in a file's name; None if the file isn't one of these."""
    match = _NAME.fullmatch(os.path.basename(path))
    return None if match is None else int(match[1])


def read_epoch(path, vocab):
    """Read a file of samples."""
    rows = [_row(path, number, line, vocab) for number, line in read_lines(path) if line.strip()]
    metrics = _read_metrics(path)
    if len(rows) != metrics[_COUNT]:
        raise InputError(
            f'{path!r} has {len(rows)} samples, and its metrics say {metrics[_COUNT]}: it was cut '
            'off; make it again, or leave it out'
        )
    if not rows:
        return Samples.none()
    tokens, types, positions, labels, is_random = zip(*rows)
    lengths = np.array(list(map(len, tokens)), np.int32)
    width, masks = int(lengths.max()), max(map(len, positions))
    if width > metrics[_LENGTH]:
        raise InputError(
            f'{path!r} has a sample of {width} tokens, and its metrics say {metrics[_LENGTH]} at '
            'most'
        )
    return Samples(
        pad_rows(tokens),
        pad_rows(types),
        pad_rows(positions),
        pad_rows(labels),
        mask_weights(positions, masks),
        np.array(is_random, np.int32),
        lengths,
    )


def _row(path, number, line, vocab):
    """The fields of a sample, with ids in the place of tokens."""
    problem = f'{path!r}, line {number}: not a sample as pregenerate_training_data.py writes it'
    with reporting(problem, errors=ValueError):
        fields = parse_json(line, _LINE)
    known = vocab.token_to_idx
    for token in (*fields['tokens'], *fields['masked_lm_labels']):
        if token not in known:
            raise InputError(
                f'{path!r}, line {number}: the model has no token {token!r:.40}; the samples are '
                'of another vocabulary'
            )
    tokens, types, is_random, positions, labels = (fields[name] for name in _LINE)
    tokens, labels = ([known[token] for token in names] for names in (tokens, labels))
    if not all(0 <= value < 2**31 for value in (*types, *positions)):
        raise InputError(f'{path!r}, line {number}: segment_ids or positions are out of range')
    if not tokens or len(types) != len(tokens) or len(positions) != len(labels):
        raise InputError(
            f'{path!r}, line {number}: it has {len(tokens)} tokens with {len(types)} segment_ids, '
            f'and {len(positions)} masks with {len(labels)} labels'
        )
    return tokens, types, positions, labels, bool(is_random)


def _metrics_path(path):
    return f'{os.path.splitext(path)[0]}_metrics.json'


def _read_metrics(path):
    shape = {_COUNT: int, _LENGTH: int}
    return read_json(_metrics_path(path), 'the metrics of the samples,', shape)


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
                count += 1
    write_json(_metrics_path(path), {_COUNT: count, _LENGTH: max_seq_length})


_HEADER = struct.Struct('<QI')
_CHECKSUM = struct.Struct('<I')
_MASK, _LABELS = 'input_mask', 'next_sentence_labels'
# Google's names, in the order in which it writes them
_NAMES = (
    'input_ids',
    _MASK,
    'segment_ids',
    'masked_lm_positions',
    'masked_lm_ids',
    WEIGHTS,
    _LABELS,
)
_FLOATS, _INTEGERS = 2, 3  # numbers of a Feature's fields
_PACKED = 2  # wire type


def is_tfrecord(path):
    """Whether a file begins with a record."""
    try:
        with open_binary(path) as file:
            head = file.read(_HEADER.size)
    except OSError:
        return False
    return len(head) == _HEADER.size and _HEADER.unpack(head)[1] == masked_crc32c(head[:8])


def read_tfrecord(path):
    """Read a file of samples."""
    arrays = _read(path, _NAMES, verify=True)
    lengths = arrays.pop(_MASK).sum(1, dtype=np.int32)
    arrays[_LABELS] = arrays[_LABELS].reshape(-1)
    return Samples(valid_lengths=lengths, **arrays)


def _read(path, names, verify):
    """Name -> the rows of a file's records."""
    with reporting(f'cannot read {path!r}'), open_binary(path) as file:
        content = file.read()
    columns = {name: [] for name in names}
    try:
        for record in _records(content, verify):
            features = _features(record)
            for name, parts in columns.items():
                parts.append(features[name])
        return {name: _array(name, parts) for name, parts in columns.items()}
    except KeyError as error:
        raise InputError(
            f'{path!r} is not a file of pre-training samples: a record lacks {error}'
        ) from error
    except (IndexError, TypeError, UnicodeDecodeError, ValueError) as error:
        raise InputError(
            f'{path!r} is damaged or was cut off ({error}): make it again with '
            'create_pretraining_data.py, or leave it out'
        ) from error


def _records(content, verify):
    """The contents of a file's records."""
    position, view = 0, memoryview(content)
    while position < len(content):
        head = bytes(view[position : position + _HEADER.size])
        if len(head) < _HEADER.size:
            raise ValueError('its last record is not whole')
        length, checksum = _HEADER.unpack(head)
        if masked_crc32c(head[:8]) != checksum:
            raise ValueError(f'the length at byte {position} has another checksum')
        position += _HEADER.size
        record, position = view[position : position + length], position + length
        end = view[position : position + _CHECKSUM.size]
        if len(end) < _CHECKSUM.size:
            raise ValueError('its last record is not whole')
        if verify and masked_crc32c(record) != _CHECKSUM.unpack(end)[0]:
            raise ValueError(f'the record at byte {position - length} has another checksum')
        yield record
        position += _CHECKSUM.size


def _features(record):
    """Name of a tf.train.Example's feature -> its kind, and its numbers, packed."""
    features = {}
    for entry in read_message(_only(read_message(record), 1)).get(1, ()):
        fields = read_message(entry)
        ((dtype, (numbers,)),) = read_message(_only(fields, 2)).items()
        features[bytes(_only(fields, 1)).decode('ascii')] = dtype, _only(read_message(numbers), 1)
    return features


def _only(fields, number):
    """The value of a field that is there once."""
    values = fields.get(number, ())
    if len(values) != 1:
        raise ValueError('it is not a tf.train.Example')
    return values[0]


def _array(name, parts):
    """The lists of one name as rows."""
    wanted = _FLOATS if name == WEIGHTS else _INTEGERS
    if any(dtype != wanted for dtype, _ in parts):
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
    position = np.arange(len(packed)) - np.repeat(starts, np.diff([*starts, len(packed)]))
    if len(packed) and (not last[-1] or position.max() > 4):
        raise ValueError('a number is too large')
    bits = (packed & 127).astype(np.int64) << 7 * position
    return np.add.reduceat(bits, starts).astype(np.int32)


def write_tfrecords(paths, parts, max_seq_length, max_predictions_per_seq):
    """Write samples to files, one sample to each in turn, all files whole or none."""
    count = 0
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(atomic_write(path, 'wb')) for path in paths]
        for samples in parts:
            for record in _examples(samples, max_seq_length, max_predictions_per_seq):
                head = struct.pack('<Q', len(record))
                files[count % len(files)].write(
                    head
                    + _CHECKSUM.pack(masked_crc32c(head))
                    + record
                    + _CHECKSUM.pack(masked_crc32c(record))
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
        rows = fit_columns(columns[name], width)
        if name == WEIGHTS:
            dtype, packed = _FLOATS, [row.tobytes() for row in rows.astype('<f4')]
        else:
            dtype, packed = _INTEGERS, _varints(rows)
        key = _delimited(1, name.encode())
        encoded.append(
            [
                _delimited(1, key + _delimited(2, _delimited(dtype, _delimited(1, row))))
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
    shifts = 7 * np.arange(5)
    parts = rows.astype(np.int64)[..., None] >> shifts
    used = np.maximum(np.count_nonzero(parts, axis=-1), 1)[..., None] > np.arange(5)
    more = np.concatenate([used[..., 1:], np.zeros_like(used[..., :1])], -1)
    octets = (parts & 127 | more << 7).astype(np.uint8)
    return [octet[use].tobytes() for octet, use in zip(octets, used)]


_COMPRESSION = 1  # three times as fast as zlib's default, and files a tenth larger


def vocab_checksum(vocab):
    """What tells vocabularies apart: a hash of the tokens in the order of their ids."""
    return hashlib.sha256('\n'.join(vocab.idx_to_token).encode('utf-8')).hexdigest()[:16]


def write_shard(path, samples, vocab, **facts):
    """Write samples, whole or not at all; the same ones always make the same bytes."""
    facts = {'vocab_checksum': vocab_checksum(vocab), 'vocab_size': len(vocab), **facts}
    with (
        atomic_write(path, 'wb') as file,
        zipfile.ZipFile(file, 'w', zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION) as archive,
    ):
        for name, array in samples._asdict().items():
            with archive.open(f'{name}.npy', 'w', force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
        archive.comment = json.dumps(facts, sort_keys=True).encode('utf-8')


def read_shard(path, vocab=None, max_len=None):
    """Read a file of samples and check it.

    It is ours, GluonNLP's, Google's TFRecord file, or pytorch-pretrained-bert's ``epoch_N.json``.
    """
    if epoch_of(path) is not None:
        samples = read_epoch(path, vocab)
    elif is_tfrecord(path):
        samples = read_tfrecord(path)
    else:
        with _Archive(path) as archive:
            archive.check_facts(vocab)
            arrays = {name: archive.read(name) for name in Samples._fields}
        samples = _padded(path, arrays)
    check_samples(path, samples, vocab, max_len)
    return samples


def read_lengths(path, vocab=None, next_sentence=False):
    """The valid lengths of a file's samples; quicker than reading them all.

    Returns
    -------
    numpy.ndarray, shape (samples,), int32
    """
    if epoch_of(path) is not None:
        lengths = read_epoch(path, vocab).valid_lengths
    elif is_tfrecord(path):  # the checksums of the samples aren't compared
        lengths = _read(path, (_MASK,), verify=False)[_MASK].sum(1, dtype=np.int32)
    else:
        with _Archive(path) as archive:
            archive.check_facts(vocab, next_sentence)
            lengths = archive.read('valid_lengths')
    if not lengths.size:
        raise InputError(f'{path} has no samples: leave it out')
    if lengths.dtype.kind not in 'iu' or lengths.size != len(lengths):
        raise InputError(f'{path}: valid_lengths are {lengths.dtype} of shape {lengths.shape}')
    if lengths.min() < 1:
        raise InputError(f'{path}: a valid length is {lengths.min()}')
    return lengths.reshape(-1).astype(np.int32)


class _Archive(ArrayArchive):
    """A file of samples while it is read."""

    def __enter__(self):
        try:
            super().__enter__()
        except CheckpointError as error:
            if isinstance(error.__cause__, zipfile.BadZipFile) and not self._path.endswith('.npz'):
                raise InputError(
                    f'{self._path!r} is not a .npz file of samples: make one of a text with '
                    'create_pretraining_data.py, or sample from it while training, with `raw`'
                ) from error
            raise _unusable(error) from error
        missing = set(Samples._fields).difference(self.names)
        if missing:
            self.__exit__()
            raise InputError(
                f'{self._path!r} is not a file of pre-training samples: it lacks '
                f'{", ".join(sorted(missing))}; make it with create_pretraining_data.py'
            )
        return self

    def check_facts(self, vocab, next_sentence=False):
        """Raise InputError if the file says that it was made otherwise than it is used."""
        try:
            facts = parse_json(self.comment or b'{}')
            checksum, size = facts.get('vocab_checksum'), facts.get('vocab_size')
            has_pairs = facts.get('next_sentence', True)
        except (ValueError, AttributeError):
            return  # the comment of another program
        if vocab is not None and checksum not in (None, vocab_checksum(vocab)):
            raise InputError(
                f'{self._path!r} was made with another vocabulary (of {size} tokens) than the '
                f"model's (of {len(vocab)}): give the one's vocabulary to the other"
            )
        if next_sentence and not has_pairs:
            raise InputError(
                f'{self._path!r} has samples of the masked language model alone: train that alone '
                '(`masked_lm_only`), or make it again with next sentences'
            )

    def read(self, name):
        """The array of that name."""
        try:
            return super().read(name)
        except CheckpointError as error:
            raise _unusable(error) from error


def _unusable(error):
    if isinstance(error.__cause__, OSError) or 'is refused' in str(error):
        return InputError(str(error))
    return InputError(f'{error}: make it again with create_pretraining_data.py, or leave it out')


def _padded(path, arrays):
    """Samples in a file's arrays; rows may differ in length."""
    padded = {}
    for name, array in arrays.items():
        dtype = np.float32 if name == WEIGHTS else np.int32
        problem = f'{path}: the rows of {name} are not lists of numbers'
        with reporting(problem, errors=(TypeError, ValueError)):
            if array.dtype == object and name in MATRICES:
                rows = [np.asarray(row, dtype) for row in array]
                width = max(map(len, rows), default=0)
                rows = [np.pad(row, (0, width - len(row))) for row in rows]
                array = np.array(rows, dtype).reshape(len(rows), width)
            array = array if name in MATRICES else array.reshape(-1)
            padded[name] = array.astype(dtype, copy=False)
        count = len(arrays['valid_lengths'])
        if len(array) != count or array.ndim != (2 if name in MATRICES else 1):
            raise InputError(
                f'{path}: {name} has the shape {array.shape}, and there are {count} valid_lengths'
            )
    return Samples(**padded)
