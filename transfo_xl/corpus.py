"""The texts of a data set as ids, with their vocabulary.

Source: ``data_utils.py`` of kimiyoung/transformer-xl (Dai et al., 2019), in the form of
pytorch-pretrained-bert 0.6.2.
"""

import os

import numpy as np

from model_zoo.checkpoint.numpy_files import ArrayArchive
from model_zoo.checkpoint.torch_file import read_pickle, write_torch
from model_zoo.errors import (
    CheckpointError,
    InputError,
    PretrainedNotFoundError,
    UnknownNameError,
    reporting,
)
from model_zoo.pretrained import SourceError, get_entry, is_alias, resolve
from model_zoo.util.files import atomic_write, make_writable_dir

from .tokenizer import TransfoXLTokenizer
from .vocabulary import to_fields

CORPUS_NAME = 'corpus.npz'
_ORIGINAL_VOCAB_NAME = 'vocab.bin'
_ORIGINAL_CORPUS_NAMES = ('corpus.bin', 'cache.pt', 'cache.pkl')
_SPLITS = ('train', 'valid', 'test')

# The originals' classes, of which pickled corpora hold instances
_CLASSES = (
    'data_utils.Corpus',
    'vocabulary.Vocab',
    'pytorch_pretrained_bert.tokenization_transfo_xl.TransfoXLCorpus',
    'pytorch_pretrained_bert.tokenization_transfo_xl.TransfoXLTokenizer',
)


class TransfoXLCorpus:
    """The ids of a data set's training, validation and test text, with their vocabulary.

    Parameters
    ----------
    *args, **kwargs
        Of :class:`TransfoXLTokenizer`.

    Attributes
    ----------
    vocab : TransfoXLTokenizer
    dataset : str or None
    train, valid, test : np.ndarray, list or None
        int32, shape (tokens,). For 'lm1b', a list of files and two lists of sentences.
    """

    def __init__(self, *args, **kwargs):
        self.vocab = TransfoXLTokenizer(*args, **kwargs)
        self.dataset = None
        self.train = self.valid = self.test = None

    def save_pretrained(self, directory, format='native'):
        """Write ``vocab.json`` and ``corpus.npz``, for :meth:`from_pretrained`.

        Parameters
        ----------
        directory : str or os.PathLike
            Made where it is missing.
        format : {'native', 'pytorch'}
            The latter: pytorch-pretrained-bert's ``vocab.bin`` and ``corpus.bin``.
        """
        UnknownNameError.check('format of a corpus', format, ('native', 'pytorch'))
        if format == 'pytorch':
            folder = make_writable_dir(directory)
            vocab = self.vocab.save_vocabulary(os.path.join(folder, _ORIGINAL_VOCAB_NAME))
            path = os.path.join(folder, _ORIGINAL_CORPUS_NAMES[0])
            write_torch(path, self._originals_fields())
            return vocab, path
        (vocab_path,) = self.vocab.save_pretrained(directory)
        path = os.path.join(os.fspath(directory), CORPUS_NAME)
        arrays = {'dataset': np.array(self.dataset or '')}
        for split in _SPLITS:
            data = getattr(self, split)
            if isinstance(data, list) and not (data and isinstance(data[0], str)):
                arrays[f'{split}_lengths'] = np.array([len(sentence) for sentence in data], int)
                data = np.concatenate([np.empty(0, np.int32), *data])
            if data is not None:
                arrays[split] = np.asarray(data)
        with atomic_write(path, 'wb') as file:
            np.savez(file, **arrays)
        return vocab_path, path

    def _originals_fields(self):
        def as_long(data):
            if isinstance(data, np.ndarray):
                return data.astype(np.int64)
            is_text = data is None or not data or isinstance(data[0], str)
            return data if is_text else list(map(as_long, data))

        return {'dataset': self.dataset, **{name: as_long(getattr(self, name)) for name in _SPLITS}}

    @classmethod
    def from_pretrained(cls, directory, cache_dir=None, **kwargs):
        """Read a corpus.

        Parameters
        ----------
        directory : str or os.PathLike
            With the files of :meth:`save_pretrained`, or with the originals' ``vocab.bin`` and
            ``corpus.bin``, or their ``cache.pt`` or ``cache.pkl``, in which the vocabulary is. Or a
            model's name, such as ``'transfo-xl-wt103'``: the hub has them beside its weights.
        cache_dir : str, optional
            Cache in which the vocabulary of a named model is looked up first.
        **kwargs
            Arguments of :class:`TransfoXLTokenizer`; they override the files.

        Raises
        ------
        InputError, CheckpointError
            If there are no such files, or a pickle asks for more than plain data.
        UnknownNameError, PretrainedNotFoundError
            If there is no such model, or the hub's files can't be fetched.
        """
        folder = os.fspath(directory)
        if is_alias(folder) and not os.path.exists(folder):
            from model_zoo.pretrained.hub import fetch_file  # the hub's library is slow to load

            hub = get_entry(*resolve(folder)).hub
            if hub is None:
                raise PretrainedNotFoundError(f'the hub does not have {folder}')
            missing = {'error_class': PretrainedNotFoundError, 'errors': SourceError}
            with reporting(f'the corpus of {folder}', **missing):
                path = fetch_file(hub, _ORIGINAL_CORPUS_NAMES[0])
        else:
            names = [CORPUS_NAME, *_ORIGINAL_CORPUS_NAMES]
            paths = (os.path.join(folder, name) for name in names)
            path = next(filter(os.path.isfile, paths), None)
            if path is None:
                raise InputError(f'no corpus in {folder!r}: looked for {", ".join(names)}')
        return cls._read(path, folder, cache_dir, kwargs)

    @classmethod
    def from_file(cls, path, **kwargs):
        """Read a corpus that the originals pickled.

        Nothing in the file is executed: only plain data is read.

        Parameters
        ----------
        path : str or os.PathLike
            With the vocabulary in it, or beside it.
        **kwargs
            Arguments of :class:`TransfoXLTokenizer`; they override the file.

        Raises
        ------
        InputError, CheckpointError
            If it can't be read, or asks for more than plain data.
        """
        path = os.fspath(path)
        return cls._read(path, os.path.dirname(path) or '.', None, kwargs)

    @classmethod
    def _read(cls, path, folder, cache_dir, kwargs):
        content = _read_npz(path) if path.endswith('.npz') else read_pickle(path, _CLASSES)
        if not isinstance(content, dict):
            content = getattr(content, '__dict__', {})
        corpus = cls()
        if content.get('vocab') is not None:
            corpus.vocab = TransfoXLTokenizer.from_fields(to_fields(content['vocab'], path), kwargs)
        else:
            corpus.vocab = TransfoXLTokenizer.from_pretrained(folder, cache_dir=cache_dir, **kwargs)
        corpus.dataset = content.get('dataset') or None
        for split in _SPLITS:
            setattr(corpus, split, _checked_ids(content.get(split), split, path))
        return corpus


def _checked_ids(data, split, path):
    """Return a text's ids as int32, of all lines or of each; or the files of a text."""
    if data is None:
        return None
    if isinstance(data, list) and data and isinstance(data[0], str):
        return data
    problem = f'{path!r}: its {split} text is not a list of ids'
    with reporting(problem, error_class=CheckpointError, errors=(TypeError, ValueError)):
        if isinstance(data, list) and (not data or np.ndim(data[0])):
            return [np.asarray(sentence).astype(np.int32, casting='same_kind') for sentence in data]
        return np.asarray(data).astype(np.int32, casting='same_kind')


def _read_npz(path):
    with ArrayArchive(path) as archive:
        content = {name: archive.read(name) for name in archive.names}
    for split in _SPLITS:
        lengths = content.get(f'{split}_lengths')
        if lengths is not None:
            content[split] = np.split(content[split], np.cumsum(lengths))[:-1]
        elif split in content and content[split].dtype.kind == 'U':
            content[split] = content[split].tolist()
    content['dataset'] = str(content.get('dataset', ''))
    return content
