"""Text to the ids of Transformer-XL and back: a vocabulary of whole words, counted in a corpus.

Source: ``vocabulary.py`` and ``data_utils.py`` of kimiyoung/transformer-xl (Dai et al.,
"Transformer-XL: Attentive Language Models Beyond a Fixed-Length Context", 2019), in the form of
pytorch-pretrained-bert 0.6.2, whose ids this gives.

A lone surrogate, which no encoding can carry, is replaced by U+FFFD.
"""

import collections
import glob
import io
import itertools
import logging
import os
import zipfile

import numpy as np
from tqdm import tqdm

from model_zoo.checkpoint.pickles import read_pickle
from model_zoo.errors import CheckpointError, InputError, UnknownNameError
from model_zoo.pretrained import resolve_alias
from model_zoo.tasks.language_model.iterators import (
    LMMultiFileIterator,
    LMOrderedIterator,
    LMShuffledIterator,
)
from model_zoo.tokenization.text import checked, list_of_texts, pad_batch
from model_zoo.tokenization.vocab import make_vocab
from model_zoo.tokenization.vocab_file import find_vocab_file
from model_zoo.tokenization.words import OPTIONS, WORDS_NAME, read_words, to_fields, write_words
from model_zoo.util.files import atomic_write, make_writable_dir
from model_zoo.util.lines import read_lines

__all__ = ['TransfoXLCorpus', 'TransfoXLTokenizer', 'get_lm_corpus']

_log = logging.getLogger(__name__)

CORPUS_NAME = 'corpus.npz'
_ORIGINAL_CORPUS_NAMES = ('corpus.bin', 'cache.pt', 'cache.pkl')
_SPLITS = ('train', 'valid', 'test')

# The originals' classes, of which pickled corpora hold instances
_CLASSES = (
    'data_utils.Corpus',
    'vocabulary.Vocab',
    'pytorch_pretrained_bert.tokenization_transfo_xl.TransfoXLCorpus',
    'pytorch_pretrained_bert.tokenization_transfo_xl.TransfoXLTokenizer',
)


class TransfoXLTokenizer:
    """Words between white space, with ids in the order of how often a corpus has them.

    Made in three steps: count (:meth:`count_file`, :meth:`count_sents`), :meth:`build_vocab`,
    encode. Or read from files by :meth:`from_pretrained`.

    Parameters
    ----------
    special : list of str
        Words that come first, counted or not, such as ``['<eos>']``.
    min_freq : int
        Words that were counted less often aren't in the vocabulary.
    max_size : int, optional
        Most words, special ones aside.
    lower_case : bool
    delimiter : str, optional
        Between words; white space by default. With '' each character is a word.
    vocab_file : str, optional
        A text file whose lines begin with the words; :meth:`build_vocab` takes them from there.
    never_split : sequence of str
        Kept with the vocabulary; no word is ever split, so that neither the original nor this class
        needs it.

    Attributes
    ----------
    counter : collections.Counter
    idx2sym : list of str
        The words, in the order of their ids.
    sym2idx : collections.OrderedDict
    vocab : gluonnlp.vocab.Vocab

    Examples
    --------
    >>> tokenizer = TransfoXLTokenizer(special=['<unk>', '<eos>'])
    >>> tokenizer.count_sents([['the', 'cat'], ['the', 'dog']])
    >>> tokenizer.build_vocab()
    >>> tokenizer.encode('the bird', add_eos=True)
    [2, 0, 1]
    """

    def __init__(
        self,
        special=(),
        min_freq=0,
        max_size=None,
        lower_case=False,
        delimiter=None,
        vocab_file=None,
        never_split=('<unk>', '<eos>', '<formula>'),
    ):
        self.counter = collections.Counter()
        self.special = list_of_texts(special, 'special')
        self.min_freq = min_freq
        self.max_size = max_size
        self.lower_case = bool(lower_case)
        self.delimiter = delimiter
        self.vocab_file = vocab_file
        self.never_split = list_of_texts(never_split, 'never_split')
        self._set_words([])

    def _set_words(self, words, unk_idx=None):
        self.idx2sym, self.sym2idx = [], collections.OrderedDict()
        self.unk_idx = unk_idx
        self._vocab = None
        for word in words:
            self.add_symbol(word)

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        """Make the tokenizer from a file that was found.

        Parameters
        ----------
        file : model_zoo.tokenization.vocab_file.VocabFile
        **kwargs
            Arguments of the class, which win over what the file says.

        Raises
        ------
        InputError, CheckpointError
            See :func:`model_zoo.tokenization.words.read_words`.
        """
        if file.kind != 'words':
            raise InputError(f'{file.path!r} is no vocabulary of words; is it of another family?')
        return cls._from_fields(read_words(file.path), kwargs)

    @classmethod
    def _from_fields(cls, fields, kwargs):
        options = {name: fields[name] for name in OPTIONS if name in fields and name != 'unk_idx'}
        tokenizer = cls(**{**options, **kwargs})
        tokenizer.counter = fields['counter']
        tokenizer._set_words(fields['idx2sym'], fields.get('unk_idx'))
        for word in tokenizer.special:
            if word in tokenizer.sym2idx:
                tokenizer._note_special(word)
        return tokenizer

    @classmethod
    def from_pretrained(cls, name_or_dir, dataset_name=None, root=None, **kwargs):
        """Make the tokenizer of a saved or of a released model.

        Parameters
        ----------
        name_or_dir : str or os.PathLike
            A directory with ``vocab.json`` (of :meth:`save_vocabulary`) or with the originals'
            ``vocab.bin`` or ``vocab.pkl``; the file itself; a text file with a word a line; or a
            model's name.
        dataset_name : str, optional
            Data set of the pretrained weights, where a name is given.
        root : str, optional
            Where pretrained files are kept.
        **kwargs
            Arguments of the class, which win over what the files say.

        Raises
        ------
        InputError
            If the file is no such vocabulary.
        CheckpointError
            If a pickle is damaged or asks for more than plain data.
        UnknownNameError
            If there's no such model.
        PretrainedNotFoundError
            If no source has the vocabulary.
        """
        name = os.fspath(name_or_dir)
        if name.endswith('.txt'):
            tokenizer = cls(vocab_file=name, **kwargs)
            tokenizer.build_vocab()
            return tokenizer
        if os.path.exists(name) or os.path.isabs(name):
            return cls.from_vocab_file(find_vocab_file(None, path=name), **kwargs)
        model, default_dataset = resolve_alias(name)
        file = find_vocab_file(model, dataset_name or default_dataset, root=root)
        return cls.from_vocab_file(file, **kwargs)

    def __len__(self):
        return len(self.idx2sym)

    def __call__(self, line):
        """Words of `line`, as GluonNLP's tokenizers are called."""
        return self.tokenize(line)

    @property
    def vocab(self):
        """The words with this tokenizer's ids.

        Returns
        -------
        gluonnlp.vocab.Vocab
        """
        if self._vocab is None:
            self._vocab = make_vocab(dict(self.sym2idx))
        return self._vocab

    def count_file(self, path, verbose=False, add_eos=False):
        """Count the words of a text file.

        Parameters
        ----------
        path : str or os.PathLike
        verbose : bool
            Whether to show the progress.
        add_eos : bool
            Whether to count an ``<eos>`` a line.

        Returns
        -------
        list of list of str
            The words of each line.

        Raises
        ------
        InputError
            If the file can't be read or isn't UTF-8.
        """
        sents = [self.tokenize(line, add_eos) for line in _lines(path, verbose)]
        self.count_sents(sents)
        return sents

    def count_sents(self, sents, verbose=False):
        """Count the words of sentences, each a list of words."""
        for symbols in tqdm(sents, 'counting', disable=not verbose):
            self.counter.update(symbols)

    def build_vocab(self):
        """Make the vocabulary: the special words, then those counted, the most frequent first.

        Of words that were counted equally often, the one that was seen first comes first. With
        `vocab_file`, its words are taken in their order instead.

        Raises
        ------
        InputError
            If `vocab_file` can't be read, or has no ``<unk>``.
        """
        self._set_words([])
        if self.vocab_file:
            self._build_from_file()
            return
        for word in self.special:
            self.add_special(word)
        for word, count in self.counter.most_common(self.max_size):
            if count < self.min_freq:
                break
            self.add_symbol(word)
        _log.info('a vocabulary of %d of %d words', len(self), len(self.counter))

    def _build_from_file(self):
        for number, line in read_lines(self.vocab_file):
            if not line.strip():
                raise InputError(f'{self.vocab_file}, line {number} is blank; it must hold a word')
            self.add_symbol(line.split()[0])
        unknown = next((word for word in ('<UNK>', '<unk>') if word in self.sym2idx), None)
        if unknown is None:
            raise InputError(f'{self.vocab_file!r} has no <unk> among its words; add it')
        self.unk_idx = self.sym2idx[unknown]

    def cutoffs(self, shares=(0.9, 0.97)):
        """Where to cut the vocabulary for adaptive embeddings and softmax.

        Parameters
        ----------
        shares : sequence of float
            Share of the counted text that the words before each cutoff make up, ascending. (The
            model released for WikiText-103 cuts its 267735 words at 20000, 40000 and 200000.)

        Returns
        -------
        list of int
            For the field `cutoffs` of the model's configuration: ascending and less than the number
            of words. Shares that would give the same cutoff twice, or all words, have none.

        Raises
        ------
        InputError
            If nothing was counted, or the shares aren't ascending between 0 and 1.
        """
        counts = np.array([self.counter[word] for word in self.idx2sym], dtype=np.float64)
        if not counts.sum():
            raise InputError('no counts to cut the vocabulary by; count a text first')
        shares = list(shares)
        if shares != sorted(set(shares)) or not all(0 < share < 1 for share in shares):
            raise InputError(f'shares are {shares}; they must be ascending, between 0 and 1')
        covered = np.cumsum(counts) / counts.sum()
        found = np.unique(np.searchsorted(covered, shares) + 1)
        return [int(place) for place in found if place < len(self)]

    def add_special(self, sym):
        """Add a special word, if it isn't there yet; its id is the attribute ``<name>_idx``."""
        self.add_symbol(sym)
        self._note_special(sym)

    def _note_special(self, sym):
        setattr(self, f'{sym.strip("<>")}_idx', self.sym2idx[sym])

    def add_symbol(self, sym):
        """Add a word, if it isn't there yet."""
        if sym not in self.sym2idx:
            self.sym2idx[sym] = len(self.idx2sym)
            self.idx2sym.append(sym)
            self._vocab = None

    def get_sym(self, idx):
        """The word with id `idx`.

        Raises
        ------
        InputError
            If there's none.
        """
        place = int(idx)
        if not 0 <= place < len(self):
            raise InputError(
                f'id {place} is not in the vocabulary; its ids are 0 to {len(self) - 1}'
            )
        return self.idx2sym[place]

    def get_idx(self, sym):
        """The id of `sym`, or that of the unknown word.

        Raises
        ------
        InputError
            If the vocabulary has neither.
        """
        found = self.sym2idx.get(sym, self.unk_idx)
        if found is None:
            found = self.sym2idx.get('<unk>', self.sym2idx.get('<UNK>'))
        if found is None:
            raise InputError(
                f'word {sym!r} is not in the vocabulary ({len(self)} words), which has no <unk> '
                "either; build it from a text that has the word, or with special=['<unk>', ...]"
            )
        return found

    def convert_ids_to_tokens(self, indices):
        """Words of a sequence of ids."""
        if hasattr(indices, 'asnumpy'):
            indices = indices.asnumpy()
        return [self.get_sym(idx) for idx in indices]

    def convert_tokens_to_ids(self, symbols):
        """Ids of a list of words, or the id of one."""
        if isinstance(symbols, str):
            return self.get_idx(symbols)
        return [self.get_idx(sym) for sym in symbols]

    def tokenize(self, line, add_eos=False, add_double_eos=False):
        """List of the words of `line`.

        Parameters
        ----------
        line : str
        add_eos : bool
            Whether to put ``<eos>`` after them.
        add_double_eos : bool
            Whether to put ``<S>`` before and after them, as the One Billion Word Benchmark has it;
            wins over `add_eos`.

        Raises
        ------
        InputError
            If `line` isn't a str.
        """
        line = checked(line).strip()
        if self.lower_case:
            line = line.lower()
        symbols = list(line) if self.delimiter == '' else line.split(self.delimiter)
        if add_double_eos:
            return ['<S>', *symbols, '<S>']
        return [*symbols, '<eos>'] if add_eos else symbols

    def encode(self, line, add_eos=False, add_double_eos=False):
        """List of the ids of a line; the arguments are :meth:`tokenize`'s."""
        return self.convert_tokens_to_ids(self.tokenize(line, add_eos, add_double_eos))

    def encode_batch(self, texts, pad=True, add_eos=False, add_double_eos=False):
        """Ids of many lines.

        Parameters
        ----------
        texts : list of str
        pad : bool
            Whether to pad all rows on the right, with id 0, to the length of the longest one.
        add_eos, add_double_eos : bool
            See :meth:`tokenize`.

        Returns
        -------
        dict
            ``input_ids``, np.ndarray of int32 and shape (batch, length), or a list of arrays where
            they aren't padded; ``valid_length``, np.ndarray of int32 and shape (batch,).
        """
        texts = list_of_texts(texts, 'texts')
        rows = [self.encode(text, add_eos, add_double_eos) for text in texts]
        ids = pad_batch(rows) if pad else [np.array(row, dtype=np.int32) for row in rows]
        return {'input_ids': ids, 'valid_length': np.array([len(row) for row in rows], np.int32)}

    def encode_file(self, path, ordered=False, verbose=False, add_eos=True, add_double_eos=False):
        """Ids of the lines of a text file.

        Parameters
        ----------
        path : str or os.PathLike
        ordered : bool
            Whether to join the lines.
        verbose : bool
            Whether to show the progress.
        add_eos, add_double_eos : bool
            See :meth:`tokenize`.

        Returns
        -------
        np.ndarray, or list of np.ndarray
            int32, shape (tokens,), of all lines where `ordered`, else of each.

        Raises
        ------
        InputError
            If the file can't be read or isn't UTF-8.
        """
        sents = (self.tokenize(line, add_eos, add_double_eos) for line in _lines(path, verbose))
        return self._encode_sents(sents, ordered)

    def encode_sents(self, sents, ordered=False, verbose=False):
        """Ids of sentences, each a list of words; arrays as :meth:`encode_file` gives them."""
        return self._encode_sents(tqdm(sents, 'encoding', disable=not verbose), ordered)

    def _encode_sents(self, sents, ordered):
        if ordered:
            get_idx = self.get_idx
            ids = (get_idx(sym) for sym in itertools.chain.from_iterable(sents))
            return np.fromiter(ids, dtype=np.int32)
        return [np.array(self.convert_tokens_to_ids(symbols), np.int32) for symbols in sents]

    def decode(self, indices, exclude=None):
        """The words of a sequence of ids, with spaces between.

        Parameters
        ----------
        indices : sequence of int
        exclude : collection of int, optional
            Ids to leave out.
        """
        if hasattr(indices, 'asnumpy'):
            indices = indices.asnumpy()
        return ' '.join(self.get_sym(idx) for idx in indices if not exclude or idx not in exclude)

    def save_vocabulary(self, vocab_path):
        """Write the words, their counts and the options as JSON.

        Parameters
        ----------
        vocab_path : str or os.PathLike
            A file, or a directory in which ``vocab.json`` is written.

        Returns
        -------
        str
            Path of the file.
        """
        path = os.fspath(vocab_path)
        if os.path.isdir(path):
            path = os.path.join(path, WORDS_NAME)
        fields = {name: getattr(self, name) for name in OPTIONS}
        write_words(path, {**fields, 'idx2sym': self.idx2sym, 'counter': self.counter})
        return path

    def save_pretrained(self, directory):
        """Write ``vocab.json``, for :meth:`from_pretrained`.

        Parameters
        ----------
        directory : str or os.PathLike
            Made where it is missing.

        Returns
        -------
        tuple of str
            Path of the file.
        """
        return (self.save_vocabulary(make_writable_dir(directory)),)


def _lines(path, verbose):
    """Lines of a file, as Python's text files have them: they also end at a carriage return."""
    for _, line in tqdm(read_lines(path), os.fspath(path), disable=not verbose):
        if '\r' in line:
            yield from io.StringIO(line, newline=None)
        else:
            yield line


class _Dataset:
    """How the original reads one of its data sets."""

    def __init__(self, tokenizer, counted=_SPLITS, cutoffs=(), ordered=True, **encoding):
        self.tokenizer, self.encoding = tokenizer, encoding  # arguments of the class, of its method
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
        """The originals' cutoffs for the data set, as far as the vocabulary reaches."""
        cutoffs = _DATASETS[self.dataset].cutoffs if self.dataset else ()
        return [place for place in cutoffs if place < len(self.vocab)]

    def build_corpus(self, path, dataset):
        """Count, build the vocabulary and encode.

        Parameters
        ----------
        path : str or os.PathLike
            Folder of ``train.txt``, ``valid.txt`` and ``test.txt``; of 'lm1b', with the
            benchmark's folder in place of ``train.txt``.
        dataset : {'ptb', 'wt2', 'wt103', 'lm1b', 'enwik8', 'text8'}
            Says which texts are counted, and how lines end.

        Raises
        ------
        UnknownNameError
            If the data set isn't known.
        InputError
            If a file can't be read, or has words without ids.
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
        """Batches of a text, see :mod:`model_zoo.tasks.language_model.iterators`.

        Parameters
        ----------
        split : {'train', 'valid', 'test'}
        *args, **kwargs
            ``bsz, bptt, ext_len``.

        Returns
        -------
        LMOrderedIterator, LMShuffledIterator or LMMultiFileIterator
            The last two for 'lm1b', whose training files are shuffled.

        Raises
        ------
        UnknownNameError
            If there's no such split.
        InputError
            If it isn't there yet.
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

    def save_pretrained(self, directory):
        """Write ``vocab.json`` and ``corpus.npz``, for :meth:`from_pretrained`.

        Parameters
        ----------
        directory : str or os.PathLike
            Made where it is missing.

        Returns
        -------
        tuple of str
            Paths of both files.
        """
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

    @classmethod
    def from_pretrained(cls, directory, **kwargs):
        """Read a corpus.

        Parameters
        ----------
        directory : str or os.PathLike
            With the files of :meth:`save_pretrained`, or with the originals' ``vocab.bin`` and
            ``corpus.bin``, or their ``cache.pt`` or ``cache.pkl``, in which the vocabulary is.
        **kwargs
            Arguments of :class:`TransfoXLTokenizer`, which win over what the files say.

        Returns
        -------
        TransfoXLCorpus

        Raises
        ------
        InputError, CheckpointError
            If there are no such files, or a pickle asks for more than plain data.
        """
        folder = os.fspath(directory)
        names = [CORPUS_NAME, *_ORIGINAL_CORPUS_NAMES]
        paths = (os.path.join(folder, name) for name in names)
        path = next(filter(os.path.isfile, paths), None)
        if path is None:
            raise InputError(f'no corpus in {folder!r}: looked for {", ".join(names)}')
        found = _read_npz(path) if path.endswith('.npz') else read_pickle(path, _CLASSES)
        if not isinstance(found, dict):
            found = getattr(found, '__dict__', {})
        corpus = cls()
        if found.get('vocab') is not None:
            corpus.vocab = TransfoXLTokenizer._from_fields(to_fields(found['vocab'], path), kwargs)
        else:
            corpus.vocab = TransfoXLTokenizer.from_pretrained(folder, **kwargs)
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
        To be kept by its ``save_pretrained``, where counting and encoding takes long.

    Raises
    ------
    UnknownNameError, InputError
        As :meth:`TransfoXLCorpus.build_corpus`.
    """
    options = dict(_DATASETS[_checked_dataset(dataset)].tokenizer)
    if dataset == 'lm1b':
        options['vocab_file'] = os.path.join(datadir, _LM1B_WORDS)
    corpus = TransfoXLCorpus(**options)
    corpus.build_corpus(datadir, dataset)
    return corpus


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
    try:
        with np.load(path, allow_pickle=False) as file:
            found = dict(file)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise CheckpointError(f'{path!r} is not a readable corpus: {error}') from error
    for split in _SPLITS:
        lengths = found.get(f'{split}_lengths')
        if lengths is not None:
            found[split] = np.split(found[split], np.cumsum(lengths))[:-1]
        elif split in found and found[split].dtype.kind == 'U':
            found[split] = found[split].tolist()
    found['dataset'] = str(found.get('dataset', ''))
    return found
