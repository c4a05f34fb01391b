"""Transformer-XL's tokenizer and corpus, by the names of ``tokenization_transfo_xl.py``."""

import glob
import os

import mxnet as mx
import numpy as np

import transfo_xl
from model_zoo.errors import InputError, UnknownNameError

from .file_utils import CachedTokenizer, archive_map
from .torch_like import find_context

__all__ = [
    'PRETRAINED_VOCAB_ARCHIVE_MAP',
    'LMMultiFileIterator',
    'LMOrderedIterator',
    'LMShuffledIterator',
    'TransfoXLCorpus',
    'TransfoXLTokenizer',
    'get_lm_corpus',
]

#: names that `TransfoXLTokenizer.from_pretrained` takes -> what they are called here
PRETRAINED_VOCAB_ARCHIVE_MAP = archive_map('transfo_xl')


class TransfoXLTokenizer(CachedTokenizer, transfo_xl.TransfoXLTokenizer):
    """See `transfo_xl.TransfoXLTokenizer`."""


class LMOrderedIterator:
    """Cuts one text into `bsz` streams, and these into consecutive segments.

    Yields ``(data, target, length)``: NDArrays of int32 on the `device`, shape (bsz, length),
    `target` being `data` shifted by one; the last segment may be shorter. With `ext_len`, `data`
    also holds that many preceding tokens. A remainder that doesn't fill all streams is dropped.
    """

    def __init__(self, data, bsz, bptt, device='cpu', ext_len=None):
        self.bsz, self.bptt, self.device, self.ext_len = _check(bsz, bptt, device, ext_len)
        data = np.asarray(data, dtype=np.int32)
        self.n_step = len(data) // bsz
        if self.n_step < 2:
            raise InputError(f'{len(data)} tokens are too few for {bsz} streams: use a smaller bsz')
        self.data = data[: self.n_step * bsz].reshape(bsz, self.n_step)
        self.n_batch = -(-self.n_step // bptt)

    def get_batch(self, i, bptt=None):
        """Return the segment that begins at position `i` of the streams."""
        length = min(bptt or self.bptt, self.n_step - 1 - i)
        data = self.data[:, max(0, i - self.ext_len) : i + length]
        return *_on(self.device, data, self.data[:, i + 1 : i + 1 + length]), length

    def get_fixlen_iter(self, start=0):
        """Segments of length `bptt`."""
        for i in range(start, self.n_step - 1, self.bptt):
            yield self.get_batch(i)

    def get_varlen_iter(self, start=0, std=5, min_len=5, max_deviation=3):
        """Segments of random lengths (by NumPy's generator) about `bptt`, or, 1 in 20, half."""
        longest = self.bptt + max_deviation * std
        i = start
        while True:
            mean = self.bptt if np.random.random() < 0.95 else self.bptt / 2
            bptt = min(longest, max(min_len, int(np.random.normal(mean, std))))
            data, target, length = self.get_batch(i, bptt)
            i += length
            yield data, target, length
            if i >= self.n_step - 2:
                return

    def __len__(self):
        return -(-(self.n_step - 1) // self.bptt)

    def __iter__(self):
        return self.get_fixlen_iter()


class LMShuffledIterator:
    """Fills `bsz` streams with whole sentences, and cuts them into segments.

    Yields ``(data, target, length)`` as :class:`LMOrderedIterator` does, always of length `bptt`.
    Tokens at the end that don't fill a segment of every stream are left out.

    With `shuffle` a new order of the sentences is drawn (by NumPy's generator) each time. `ext_len`
    tokens of the last segment are repeated before the next one.
    """

    def __init__(self, data, bsz, bptt, device='cpu', ext_len=None, shuffle=False):
        self.data, self.shuffle = data, shuffle
        self.bsz, self.bptt, self.device, self.ext_len = _check(bsz, bptt, device, ext_len)

    def __iter__(self):
        count = len(self.data)
        order = np.random.permutation(count) if self.shuffle else range(count)
        return self._segments(self.data[i] for i in order)

    def _segments(self, sentences):
        streams = [np.empty(0, np.int32)] * self.bsz
        kept = np.empty((self.bsz, 0), np.int32)
        while True:
            data, target = np.empty((2, self.bsz, self.bptt), np.int32)
            for row in range(self.bsz):
                filled = 0
                while filled < self.bptt:
                    while len(streams[row]) <= 1:
                        sentence = next(sentences, None)
                        if sentence is None:
                            return
                        streams[row] = np.asarray(sentence, np.int32)
                    stop = min(len(streams[row]) - 1, self.bptt - filled)
                    data[row, filled : filled + stop] = streams[row][:stop]
                    target[row, filled : filled + stop] = streams[row][1 : stop + 1]
                    streams[row] = streams[row][stop:]
                    filled += stop
            data = np.concatenate([kept, data], axis=1)
            yield *_on(self.device, data, target), self.bptt
            kept = data[:, data.shape[1] - min(data.shape[1], self.ext_len) :]


class LMMultiFileIterator(LMShuffledIterator):
    """:class:`LMShuffledIterator` over files that are read one at a time.

    `shuffle` concerns the files and each file's sentences.
    """

    def __init__(self, paths, vocab, bsz, bptt, device='cpu', ext_len=None, shuffle=False):
        super().__init__(None, bsz, bptt, device, ext_len, shuffle)
        self.paths, self.vocab = list(paths), vocab

    def __iter__(self):
        if self.shuffle:
            np.random.shuffle(self.paths)
        for path in self.paths:
            sentences = self.vocab.encode_file(path, add_double_eos=True)
            if self.shuffle:
                np.random.shuffle(sentences)
            yield from self._segments(iter(sentences))


def _on(ctx, *arrays):
    return [mx.nd.array(array, ctx, dtype='int32') for array in arrays]


def _check(bsz, bptt, device, ext_len):
    ctx = find_context(device)
    if ctx is None:
        raise InputError(f"device is {device!r:.80}: pass such as 'cpu', 'cuda:0' or mx.gpu(0)")
    return bsz, bptt, ctx, ext_len or 0


_SPLITS = ('train', 'valid', 'test')


class _Dataset:
    """The original's options to read one of its data sets."""

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


class TransfoXLCorpus(transfo_xl.TransfoXLCorpus):
    """`transfo_xl.TransfoXLCorpus` that also counts and encodes a data set, and makes batches."""

    @property
    def cutoffs(self):
        """Return the originals' cutoffs for the data set, up to the size of the vocabulary."""
        cutoffs = _DATASETS[self.dataset].cutoffs if self.dataset else ()
        return [cut for cut in cutoffs if cut < len(self.vocab)]

    def build_corpus(self, path, dataset):
        """Count, build the vocabulary and encode.

        The folder `path` has ``train.txt``, ``valid.txt`` and ``test.txt``; 'lm1b' has the
        benchmark's folder instead of ``train.txt``. The data set ('ptb', 'wt2', 'wt103', 'lm1b',
        'enwik8', 'text8') says which texts are counted, and how lines end.
        """
        UnknownNameError.check('data set', dataset, _DATASETS)
        self.dataset, rules = dataset, _DATASETS[dataset]
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
        """Return batches of 'train', 'valid' or 'test'; `args`: ``bsz, bptt, device, ext_len``."""
        UnknownNameError.check('split', split, _SPLITS)
        data = getattr(self, split)
        if data is None:
            raise InputError(f'the corpus has no {split} text; build_corpus makes it')
        if isinstance(data, np.ndarray):
            return LMOrderedIterator(data, *args, **kwargs)
        if split == 'train':
            return LMMultiFileIterator(data, self.vocab, *args, shuffle=True, **kwargs)
        return LMShuffledIterator(data, *args, **kwargs)


def get_lm_corpus(datadir, dataset):
    """Make the corpus of a data set, with the options that the original has for it.

    `datadir` is as in :meth:`TransfoXLCorpus.build_corpus`. For 'lm1b' it also has
    ``1b_word_vocab.txt``.
    """
    UnknownNameError.check('data set', dataset, _DATASETS)
    options = dict(_DATASETS[dataset].tokenizer)
    if dataset == 'lm1b':
        options['vocab_file'] = os.path.join(datadir, _LM1B_WORDS)
    corpus = TransfoXLCorpus(**options)
    corpus.build_corpus(datadir, dataset)
    return corpus
