"""Samples for pre-training in files: GluonNLP's ``.npz`` form, without the pickles in it.

Each file has the arrays of :class:`Samples` under these names. GluonNLP's own files hold arrays of
objects, rows of several lengths; they are read as well, by a reader of pickles that runs nothing.
Google's files are read as well, see `tfrecords`, and pytorch-pretrained-bert's, `pregenerated`.
In ours the rows are padded, so that NumPy (and GluonNLP's loader) needs no pickles, and a comment
of the archive says which vocabulary they were made with.
"""

import hashlib
import json
import zipfile

import numpy as np

from ...checkpoint.numpy_files import ArrayArchive
from ...errors import CheckpointError, InputError
from ...util.files import atomic_write, parse_json
from .pregenerated import epoch_of, read_epoch, read_epoch_lengths
from .samples import MATRICES, WEIGHTS, Samples, check_samples
from .tfrecords import is_tfrecord, read_tfrecord, read_tfrecord_lengths

__all__ = ['read_lengths', 'read_shard', 'vocab_checksum', 'write_shard']

_COMPRESSION = 1  # three times as fast as zlib's default, and files a tenth larger


def vocab_checksum(vocab):
    """What tells vocabularies apart: a hash of the tokens in the order of their ids."""
    return hashlib.sha256('\n'.join(vocab.idx_to_token).encode('utf-8')).hexdigest()[:16]


def write_shard(path, samples, vocab, **facts):
    """Write samples, whole or not at all; the same ones always make the same bytes.

    Parameters
    ----------
    path : str
    samples : Samples
    vocab : gluonnlp.vocab.BERTVocab
        That they were made with.
    **facts
        For the file's comment, such as options they were made with.
    """
    facts = {'vocab_checksum': vocab_checksum(vocab), 'vocab_size': len(vocab), **facts}
    with atomic_write(path, 'wb') as file, zipfile.ZipFile(
        file, 'w', zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION
    ) as archive:
        for name, array in samples._asdict().items():
            with archive.open(f'{name}.npy', 'w', force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
        archive.comment = json.dumps(facts, sort_keys=True).encode('utf-8')


def read_shard(path, vocab=None, max_len=None):
    """Read a file of samples and check it.

    It is ours, GluonNLP's, Google's TFRecord file, or pytorch-pretrained-bert's ``epoch_N.json``.

    Parameters
    ----------
    path : str
    vocab : gluonnlp.vocab.BERTVocab, optional
        That the model has, and the samples should; needed for ``epoch_N.json``.
    max_len : int, optional
        Most positions that the model has.

    Returns
    -------
    Samples

    Raises
    ------
    InputError
        If the file can't be read, is truncated, lacks an array, or its numbers contradict one
        another; if it was made with another vocabulary, or for longer sequences. The message says
        what.
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

    Parameters
    ----------
    path, vocab
        As of :func:`read_shard`; the vocabulary is checked where the file says its own.
    next_sentence : bool
        Whether its samples are to have next sentences, which is checked where the file says it.

    Returns
    -------
    numpy.ndarray, shape (samples,), int32
    """
    if epoch_of(path) is not None:
        return read_epoch_lengths(path)
    if is_tfrecord(path):
        return read_tfrecord_lengths(path)
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
                    f'{self._path!r} is no .npz file of samples: make one of a text with '
                    'create_pretraining_data.py, or sample from it while training, with `raw`'
                ) from error
            raise _unusable(error) from error
        missing = set(Samples._fields).difference(self.names)
        if missing:
            self.__exit__()
            raise InputError(
                f'{self._path!r} is no file of pre-training samples: it lacks '
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
                '(`masked_lm_only`), or make it anew with next sentences'
            )

    def read(self, name):
        """The array of that name."""
        try:
            return super().read(name, read_objects=True)
        except CheckpointError as error:
            raise _unusable(error) from error


def _unusable(error):
    if isinstance(error.__cause__, OSError) or 'is refused' in str(error):
        return InputError(str(error))
    return InputError(f'{error}: make it anew with create_pretraining_data.py, or leave it out')


def _padded(path, arrays):
    """Samples in a file's arrays; rows may differ in length."""
    padded = {}
    for name, array in arrays.items():
        dtype = np.float32 if name == WEIGHTS else np.int32
        try:
            if name not in MATRICES:
                padded[name] = array.reshape(-1).astype(dtype)
            elif array.dtype != object:
                padded[name] = array.astype(dtype, copy=False)
            else:
                rows = [np.asarray(row, dtype) for row in array]
                padded[name] = np.zeros((len(rows), max(map(len, rows), default=0)), dtype)
                for place, row in enumerate(rows):
                    padded[name][place, : len(row)] = row
        except (TypeError, ValueError) as error:
            raise InputError(f'{path}: the rows of {name} are no lists of numbers') from error
        if len(padded[name]) != len(arrays['valid_lengths']) or padded[name].ndim != (
            2 if name in MATRICES else 1
        ):
            raise InputError(
                f'{path}: {name} has the shape {padded[name].shape}, and there are '
                f'{len(arrays["valid_lengths"])} valid_lengths'
            )
    return Samples(**padded)
