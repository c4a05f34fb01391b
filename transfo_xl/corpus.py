"""The texts of a data set as ids, with their vocabulary.

Source: ``data_utils.py`` of kimiyoung/transformer-xl (Dai et al., 2019), in the form of
pytorch-pretrained-bert 0.6.2.
"""

import glob
import os

import numpy as np

from model_zoo.checkpoint.numpy_files import ArrayArchive
from model_zoo.checkpoint.pickles import read_pickle
from model_zoo.checkpoint.torch_file import write_torch_object
from model_zoo.errors import (
    CheckpointError,
    InputError,
    PretrainedNotFoundError,
    UnknownNameError,
)
from model_zoo.pretrained import SourceError, get_entry, is_alias, resolve
from model_zoo.tokenization.words import to_fields
from model_zoo.util.files import atomic_write, make_writable_dir

from .streams import LMMultiFileIterator, LMOrderedIterator, LMShuffledIterator
from .tokenizer import TransfoXLTokenizer

__all__ = ['TransfoXLCorpus', 'get_lm_corpus']

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


class _Dataset:
    """How the original reads one of its data sets."""

    def __init__(self, tokenizer, counted=_SPLITS, cutoffs=(), ordered=True, **encoding):
        self.tokenizer = tokenizer  # arguments of TransfoXLTokenizer
        self.encoding = encoding  # arguments of its encode_file
        self.counted, self.cutoffs, self.ordered = counted, cutoffs, ordered


_EOS = {'special': ['<eos>']}
_LM1B_WORDS = '1b_word_vocab.txt'
_DATASETS = {
    'ptb': _Dataset({**_EOS, 'lower_case': True}),
    'wt2': _Dataset(_EOS),
    'wt103': _Dataset(_EOS, counted=('train',), cutoffs=(20000, 40000, 200000)),
    'enwik8': _Dataset({}, add_eos=False),
    'text8': _Dataset({}, add_eos=False),
    # the training text is many files, which are read one at a time
    'lm1b': _Dataset(
        {}, counted=(), cutoffs=(60000, 100000, 640000), ordered=False, add_double_eos=True
    ),
}
_LM1B_TRAIN = os.path.join(
    '1-billion-word-language-modeling-benchmark-r13output',
    'training-monolingual.tokenized.shuffled',
    'news.en-*',
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

    @property
    def cutoffs(self):
        """The originals' cutoffs for the data set, up to the size of the vocabulary."""
        cutoffs = _DATASETS[self.dataset].cutoffs if self.dataset else ()
        return [place for place in cutoffs if place < len(self.vocab)]

    def build_corpus(self, path, dataset):
        """Count, build the vocabulary and encode.

        Parameters
        ----------
        path : str or os.PathLike
            Folder with ``train.txt``, ``valid.txt`` and ``test.txt``; 'lm1b' has the benchmark's
            folder in place of ``train.txt``.
        dataset : {'ptb', 'wt2', 'wt103', 'lm1b', 'enwik8', 'text8'}
            Says which texts are counted, and how lines end.
        """
        self.dataset, rules = _checked_dataset(dataset), _DATASETS[dataset]
        files = {split: os.path.join(path, f'{split}.txt') for split in _SPLITS}
        for split in rules.counted:
            self.vocab.count_file(files[split])
        self.vocab.build_vocab()
        for split in _SPLITS:
            if dataset == 'lm1b' and split == 'train':
                self.train = sorted(glob.glob(os.path.join(path, _LM1B_TRAIN)))
                if not self.train:
                    raise InputError(f'no files {os.path.join(path, _LM1B_TRAIN)!r}')
            else:
                ids = self.vocab.encode_file(files[split], rules.ordered, **rules.encoding)
                setattr(self, split, ids)

    def get_iterator(self, split, *args, **kwargs):
        """Batches of a text.

        Parameters
        ----------
        split : {'train', 'valid', 'test'}
        *args, **kwargs
            ``bsz, bptt, ext_len``.

        Returns
        -------
        LMOrderedIterator, LMShuffledIterator or LMMultiFileIterator
            The last two for 'lm1b', whose training files are shuffled.
        """
        if split not in _SPLITS:
            raise UnknownNameError.of('split', split, _SPLITS)
        data = getattr(self, split)
        if data is None:
            raise InputError(f'the corpus has no {split} text; build_corpus makes it')
        if isinstance(data, np.ndarray):
            return LMOrderedIterator(data, *args, **kwargs)
        if split == 'train':
            return LMMultiFileIterator(data, self.vocab, *args, shuffle=True, **kwargs)
        return LMShuffledIterator(data, *args, **kwargs)

    def save_pretrained(self, directory, format='native'):
        """Write ``vocab.json`` and ``corpus.npz``, for :meth:`from_pretrained`.

        Parameters
        ----------
        directory : str or os.PathLike
            Made where it is missing.
        format : {'native', 'pytorch'}
            The latter: pytorch-pretrained-bert's ``vocab.bin`` and ``corpus.bin``, which needs
            torch.

        Returns
        -------
        tuple of str
            Paths of both files.
        """
        if format not in ('native', 'pytorch'):
            raise UnknownNameError.of('format of a corpus', format, ('native', 'pytorch'))
        if format == 'pytorch':
            folder = make_writable_dir(directory)
            vocab = self.vocab.save_vocabulary(os.path.join(folder, _ORIGINAL_VOCAB_NAME))
            path = os.path.join(folder, _ORIGINAL_CORPUS_NAMES[0])
            write_torch_object(path, self._originals_fields())
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

        Returns
        -------
        TransfoXLCorpus

        Raises
        ------
        InputError, CheckpointError
            If there are no such files, or a pickle asks for more than plain data.
        UnknownNameError, PretrainedNotFoundError
            If there is no such model, or the hub's files can't be fetched.
        """
        folder = os.fspath(directory)
        if is_alias(folder) and not os.path.exists(folder):
            path = _corpus_of(folder)
        else:
            names = [CORPUS_NAME, *_ORIGINAL_CORPUS_NAMES]
            paths = (os.path.join(folder, name) for name in names)
            path = next(filter(os.path.isfile, paths), None)
            if path is None:
                raise InputError(f'no corpus in {folder!r}: looked for {", ".join(names)}')
        return cls._read(path, folder, cache_dir, kwargs)

    @classmethod
    def from_file(cls, path, **kwargs):
        """Read a corpus in a file of its own, as the originals pickle it.

        Nothing that such a file might ask for is run: only plain data is read.

        Parameters
        ----------
        path : str or os.PathLike
            With the vocabulary in it, or beside it.
        **kwargs
            Arguments of :class:`TransfoXLTokenizer`, which win over what the file says.

        Returns
        -------
        TransfoXLCorpus

        Raises
        ------
        InputError, CheckpointError
            If it can't be read, or asks for more than plain data.
        """
        path = os.fspath(path)
        return cls._read(path, os.path.dirname(path) or '.', None, kwargs)

    @classmethod
    def _read(cls, path, folder, cache_dir, kwargs):
        found = _read_npz(path) if path.endswith('.npz') else read_pickle(path, _CLASSES)
        if not isinstance(found, dict):
            found = getattr(found, '__dict__', {})
        corpus = cls()
        if found.get('vocab') is not None:
            corpus.vocab = TransfoXLTokenizer.from_fields(to_fields(found['vocab'], path), kwargs)
        else:
            corpus.vocab = TransfoXLTokenizer.from_pretrained(
                folder, cache_dir=cache_dir, **kwargs
            )
        if found.get('dataset'):
            corpus.dataset = _checked_dataset(found['dataset'])
        for split in _SPLITS:
            setattr(corpus, split, _checked_ids(found.get(split), split, path))
        return corpus


def get_lm_corpus(datadir, dataset):
    """Make the corpus of a data set, with the options that the original has for it.

    Parameters
    ----------
    datadir : str or os.PathLike
        See :meth:`TransfoXLCorpus.build_corpus`; of 'lm1b', with ``1b_word_vocab.txt``.
    dataset : str

    Returns
    -------
    TransfoXLCorpus
        Keep it with ``save_pretrained`` if counting and encoding take long.
    """
    options = dict(_DATASETS[_checked_dataset(dataset)].tokenizer)
    if dataset == 'lm1b':
        options['vocab_file'] = os.path.join(datadir, _LM1B_WORDS)
    corpus = TransfoXLCorpus(**options)
    corpus.build_corpus(datadir, dataset)
    return corpus


def _corpus_of(name):
    """Path of the corpus that is beside a model's weights on the hub."""
    from model_zoo.pretrained.hub import Repository  # the hub's library is slow to load

    entry = get_entry(*resolve(name))
    if entry.hub is None:
        raise PretrainedNotFoundError(f'the hub does not have {name}')
    try:
        return Repository(entry.hub).file(_ORIGINAL_CORPUS_NAMES[0])
    except SourceError as error:
        raise PretrainedNotFoundError(f'the corpus of {name}: {error}') from error


def _checked_dataset(name):
    if name not in _DATASETS:
        raise UnknownNameError.of('data set', name, _DATASETS)
    return name


def _checked_ids(data, split, path):
    """A text's ids as int32, of all lines or of each; or the files of a text."""
    if data is None:
        return None
    if isinstance(data, list) and data and isinstance(data[0], str):
        return data
    try:
        if isinstance(data, list) and (not data or np.ndim(data[0])):
            return [np.asarray(sentence).astype(np.int32, casting='same_kind') for sentence in data]
        return np.asarray(data).astype(np.int32, casting='same_kind')
    except (TypeError, ValueError) as error:
        raise CheckpointError(f'{path!r}: its {split} text is no list of ids: {error}') from None


def _read_npz(path):
    with ArrayArchive(path) as archive:
        found = {name: archive.read(name) for name in archive.names}
    for split in _SPLITS:
        lengths = found.get(f'{split}_lengths')
        if lengths is not None:
            try:
                found[split] = np.split(found[split], np.cumsum(lengths))[:-1]
            except (KeyError, TypeError, ValueError, IndexError) as error:
                what = f'its {split} text has no lines of these lengths: {error}'
                raise CheckpointError(f'{path!r} is damaged: {what}') from error
        elif split in found and found[split].dtype.kind == 'U':
            found[split] = found[split].tolist()
    found['dataset'] = str(found.get('dataset', ''))
    return found
