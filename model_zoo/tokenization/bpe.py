"""Byte pair encoding: the merging, and what the tokenizers over it share.

Source: Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units" (2016), as
OpenAI's releases of GPT and GPT-2 and pytorch-pretrained-bert 0.6.2 do it.

A word's symbols are merged pair by pair, always the pair that stands first in the merges file,
and all its places in the word at once. The Rust library `tokenizers` merges place by place, which
is the same as long as each pair stands in the file after all pairs that make its two symbols. That
is so in the releases. Where it isn't, and for words with symbols that the vocabulary doesn't have,
:func:`merge_symbols` is taken.
"""

import collections
import heapq
import json
import os

import numpy as np
from tokenizers import Tokenizer, models

from ..errors import InputError
from ..pretrained import resolve_alias
from ..pretrained.files import BPE_NAMES
from ..util.files import atomic_write, make_writable_dir, write_json
from ..util.lines import read_lines
from .bpe_files import read_bpe_vocab, read_merges
from .text import (
    CONFIG_NAME,
    UNLIMITED,
    ChunkCache,
    checked,
    list_of_texts,
    pad_batch,
    read_max_len,
    warn_if_long,
)
from .vocab import make_vocab
from .vocab_file import find_vocab_file

__all__ = ['BPETokenizer', 'merge_symbols']

SPECIAL_TOKENS_NAME = 'special_tokens.txt'

_BATCH = 1024  # texts whose new chunks are looked up together


def merge_symbols(symbols, ranks):
    """Merge neighbours, in the order of `ranks`, until no pair of `ranks` is left.

    Takes time proportional to n log n for n symbols.

    Parameters
    ----------
    symbols : list of str
    ranks : dict of (str, str) to int

    Returns
    -------
    list of str
    """
    symbols, count = list(symbols), len(symbols)
    following, previous = list(range(1, count + 1)), list(range(-1, count - 1))
    places = collections.defaultdict(list)  # pair -> where it may stand
    queue = []

    def note(left, right):
        pair = symbols[left], symbols[right]
        if pair in ranks:
            if pair not in places:
                heapq.heappush(queue, (ranks[pair], pair))
            places[pair].append(left)

    for left in range(count - 1):
        note(left, left + 1)
    while queue:
        _, pair = heapq.heappop(queue)
        for left in sorted(places.pop(pair)):
            right = following[left]
            if right == count or (symbols[left], symbols[right]) != pair:
                continue  # one of the two was merged with its other neighbour
            symbols[left], symbols[right] = ''.join(pair), None
            after = following[left] = following[right]
            if after < count:
                previous[after] = left
                note(left, after)
            if previous[left] >= 0:
                note(previous[left], left)
    return [symbol for symbol in symbols if symbol is not None]


def _as_id(value):
    """An id as an int; NDArrays have floats by default."""
    try:
        number = int(value)
        if number == value:
            return number
    except (TypeError, ValueError):
        pass
    raise InputError(f'{value!r} is no token id')


class BPETokenizer(ChunkCache):
    """What tokenizers over byte pairs share: files, ids, special tokens, batches.

    Subclasses give ``_chunks(text)``, pieces of text of which none influences another, and
    ``_words(chunk)``, the words of a chunk, each a str of symbols to be merged; and `decode`.

    Parameters
    ----------
    vocab_file : str or os.PathLike
        JSON object of tokens and ids.
    merges_file : str or os.PathLike
        One pair of symbols a line.
    special_tokens : list of str, optional
        See :meth:`set_special_tokens`.
    max_len : int, optional
        Length from which a warning is logged; usually the number of the model's positions.

    Attributes
    ----------
    encoder, decoder : dict
        From tokens to ids, and back; without the special tokens.
    special_tokens, special_tokens_decoder : dict
        From special tokens to ids, and back.
    bpe_ranks : dict of (str, str) to int

    Raises
    ------
    InputError
        If a file can't be read, or the merges don't fit the vocabulary.
    """

    suffix = ''  # that the last symbol of each word has
    pretrained_max_len = None  # positions of the released models

    def __init__(self, vocab_file, merges_file, special_tokens=None, max_len=None):
        super().__init__()
        self.max_len = UNLIMITED if max_len is None else max_len
        self.encoder = read_bpe_vocab(vocab_file)
        self.decoder = dict(enumerate(self.encoder))
        self.bpe_ranks = read_merges(merges_file)
        self._check_fit(os.fspath(vocab_file), os.fspath(merges_file))
        self._symbols = frozenset(token for token in self.encoder if self._is_plain(token))
        self._unknown_id = self.encoder.get('<unk>')
        self._rust = self._make_rust()
        self.set_special_tokens(special_tokens)

    def _check_fit(self, vocab_path, merges_path):
        hint = f'; merges {merges_path!r} and vocabulary {vocab_path!r} must be of one release'
        suffixed = any(token.endswith('</w>') and token != '</w>' for token in self.encoder)
        if suffixed != bool(self.suffix):
            what = 'has' if suffixed else 'lacks'
            raise InputError(
                f'vocabulary {vocab_path!r} {what} tokens that end in </w>, so it is not for '
                f'{type(self).__name__} but for a tokenizer of another family'
            )
        for rank, pair in enumerate(self.bpe_ranks):
            for token in (*pair, ''.join(pair)):
                if token not in self.encoder:
                    raise InputError(
                        f'the vocabulary has no {token!r}, which pair {rank + 1} of the merges, '
                        f'{" ".join(pair)!r}, needs{hint}'
                    )
        merged = {''.join(pair) for pair in self.bpe_ranks}
        merged.update(token for token in self.encoder if self._is_plain(token))
        lost = [token for token in self.encoder if token not in merged]
        # a few tokens of a user's own do no harm, but the end of the merges must not be missing
        if len(lost) > 0.01 * len(self.encoder) + 1:
            raise InputError(
                f'no merges lead to {len(lost)} tokens of the vocabulary, such as {lost[0]!r}; '
                f'is the file whole?{hint}'
            )

    def _is_plain(self, token):
        """Whether `token` is a symbol to begin with, or looks like a special token."""
        if self.suffix and token.endswith(self.suffix):
            token = token[: -len(self.suffix)]
        return len(token) < 2 or (token[0] + token[-1]) in ('<>', '[]', '__')

    def _make_rust(self):
        """The Rust library's tokenizer for words, or None if it would merge otherwise."""
        last = {}
        for pair, rank in self.bpe_ranks.items():
            last[''.join(pair)] = rank
        if any(last.get(part, -1) > rank for pair, rank in self.bpe_ranks.items() for part in pair):
            return None
        suffix = {'end_of_word_suffix': self.suffix} if self.suffix else {}
        # no cache in there: there is one here already
        return Tokenizer(models.BPE(self.encoder, list(self.bpe_ranks), cache_capacity=0, **suffix))

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        """Make the tokenizer from files that were found.

        Parameters
        ----------
        file : VocabFile
        **kwargs
            Further arguments of the class. By default `special_tokens` are those of
            ``special_tokens.txt``, and `max_len` that of ``tokenizer_config.json``, beside the
            vocabulary.

        Raises
        ------
        InputError
            If they aren't those of byte pairs.
        """
        if file.kind != 'bpe':
            hint = ''
            if file.path.endswith('.json'):
                hint = f'; put {" or ".join(BPE_NAMES.values())} beside it'
            raise InputError(f'{file.path!r} is no vocabulary of byte pairs with its merges{hint}')
        folder = os.path.dirname(file.path)
        kwargs = {**read_max_len(folder), **kwargs}
        special = os.path.join(folder, SPECIAL_TOKENS_NAME)
        if 'special_tokens' not in kwargs and os.path.isfile(special):
            lines = (line.rstrip('\r\n') for _, line in read_lines(special))
            kwargs['special_tokens'] = [line for line in lines if line]
        return cls(file.path, file.merges_path, **kwargs)

    @classmethod
    def from_pretrained(cls, name_or_dir, dataset_name=None, root=None, **kwargs):
        """Make the tokenizer of a saved or of a released model.

        Parameters
        ----------
        name_or_dir : str or os.PathLike
            A directory with ``vocab.json`` and ``merges.txt``, or with ``encoder.json`` and
            ``vocab.bpe``, or with ``encoder_bpe_40000.json`` and ``vocab_40000.bpe``, the releases'
            own names; the vocabulary's file itself; or a model's name. ``special_tokens.txt`` and
            ``tokenizer_config.json`` are read where they are there.
        dataset_name : str, optional
            Data set of the pretrained weights, where a name is given.
        root : str, optional
            Where pretrained files are kept.
        **kwargs
            Further arguments of the class.

        Raises
        ------
        InputError
            If the files aren't those of such a tokenizer.
        UnknownNameError
            If there's no such model.
        PretrainedNotFoundError
            If no source has the vocabulary.
        """
        name = os.fspath(name_or_dir)
        if os.path.exists(name) or os.path.isabs(name) or name.endswith('.json'):
            return cls.from_vocab_file(find_vocab_file(None, path=name), **kwargs)
        model, default_dataset = resolve_alias(name)
        file = find_vocab_file(model, dataset_name or default_dataset, root=root)
        kwargs['max_len'] = min(kwargs.get('max_len', UNLIMITED), cls.pretrained_max_len)
        return cls.from_vocab_file(file, **kwargs)

    def __len__(self):
        return len(self.encoder) + len(self.special_tokens)

    def __call__(self, text):
        """Tokens of `text`, as GluonNLP's tokenizers are called."""
        return self.tokenize(text)

    @property
    def vocab(self):
        """All tokens, the special ones included, with this tokenizer's ids.

        Returns
        -------
        gluonnlp.vocab.Vocab
        """
        if self._vocab is None:
            self._vocab = make_vocab({**self.encoder, **self.special_tokens})
        return self._vocab

    def set_special_tokens(self, special_tokens):
        """Set the tokens that come after the vocabulary; those set before are dropped.

        They aren't looked for in texts: a text's ids never hold them, as in the original. Use
        :meth:`convert_tokens_to_ids`.

        Parameters
        ----------
        special_tokens : list of str or None
            In the order of their ids, from the vocabulary's length on.

        Raises
        ------
        InputError
            If one is there twice, is in the vocabulary already, or isn't a str of a line.
        """
        tokens = list_of_texts(special_tokens or [], 'special_tokens')
        for place, token in enumerate(tokens):
            if not isinstance(token, str) or not token or '\n' in token or '\r' in token:
                raise InputError(f'special token {token!r} must be a str without line breaks')
            if token in self.encoder or token in tokens[:place]:
                raise InputError(f'special token {token!r} is there already; give each one once')
        start = len(self.encoder)
        self.special_tokens = {token: start + place for place, token in enumerate(tokens)}
        self.special_tokens_decoder = {place: token for token, place in self.special_tokens.items()}
        self._vocab = None
        self._forget()

    def tokenize(self, text):
        """List of the pieces of `text`.

        Raises
        ------
        InputError
            If `text` isn't a str.
        """
        return [token for chunk in self._pieces([text])[0] for token in chunk[1]]

    def encode(self, text):
        """List of the ids of `text`; more than `max_len` of them log a warning.

        Raises
        ------
        InputError
            If `text` isn't a str, or the vocabulary has no id for a piece of it, nor ``<unk>``.
        """
        ids = [i for chunk in self._pieces([text])[0] for i in chunk[0]]
        warn_if_long(len(ids), self.max_len)
        return ids

    def encode_batch(self, texts, pad=True):
        """Ids of many texts.

        Parameters
        ----------
        texts : list of str
        pad : bool
            Whether to pad all rows on the right, with id 0, to the length of the longest one.

        Returns
        -------
        dict
            ``input_ids``, np.ndarray of int32 and shape (batch, length), or a list of arrays where
            they aren't padded; ``valid_length``, np.ndarray of int32 and shape (batch,).

        Raises
        ------
        InputError
            As :meth:`encode`; also if `texts` is one str.
        """
        rows = [
            [i for chunk in chunks for i in chunk[0]]
            for chunks in self._pieces(list_of_texts(texts, 'texts'))
        ]
        lengths = [len(row) for row in rows]
        warn_if_long(max(lengths, default=0), self.max_len)
        ids = pad_batch(rows) if pad else [np.array(row, dtype=np.int32) for row in rows]
        return {'input_ids': ids, 'valid_length': np.array(lengths, dtype=np.int32)}

    def convert_tokens_to_ids(self, tokens):
        """Ids of a list of tokens, or the id of one; more than `max_len` of them log a warning.

        Raises
        ------
        InputError
            If a token is neither special nor in the vocabulary, and that has no ``<unk>``.
        """
        if isinstance(tokens, str):
            return self._id_of(tokens)
        ids = [self._id_of(token) for token in tokens]
        warn_if_long(len(ids), self.max_len)
        return ids

    def convert_ids_to_tokens(self, ids, skip_special_tokens=False):
        """Tokens of a sequence of ids, or the token of one.

        Parameters
        ----------
        ids : sequence of int, np.ndarray, mx.nd.NDArray, or int
        skip_special_tokens : bool
            Whether to leave out those of :meth:`set_special_tokens`.

        Raises
        ------
        InputError
            If an id is neither a special token's nor in the vocabulary.
        """
        if hasattr(ids, 'asnumpy'):
            ids = ids.asnumpy()
        if np.ndim(ids) == 0:
            return self._token_of(_as_id(ids))
        ids = [_as_id(i) for i in ids]
        if skip_special_tokens:
            ids = [i for i in ids if i not in self.special_tokens_decoder]
        return [self._token_of(i) for i in ids]

    def bpe(self, token):
        """The pieces of a word, with spaces between, as the original gives them."""
        return ' '.join(self._merge([token])[0])

    def save_vocabulary(self, directory):
        """Write ``vocab.json``, ``merges.txt`` and ``special_tokens.txt``.

        Parameters
        ----------
        directory : str or os.PathLike
            Made where it is missing.

        Returns
        -------
        tuple of str
            Paths of the three files.
        """
        directory = make_writable_dir(directory)
        vocab_name, merges_name = next(iter(BPE_NAMES.items()))
        names = vocab_name, merges_name, SPECIAL_TOKENS_NAME
        paths = tuple(os.path.join(directory, name) for name in names)
        with atomic_write(paths[0]) as file:
            json.dump(self.encoder, file, ensure_ascii=False)
        with atomic_write(paths[1]) as file:
            file.write('#version: 0.2\n')
            file.writelines(f'{first} {second}\n' for first, second in self.bpe_ranks)
        with atomic_write(paths[2]) as file:
            file.writelines(f'{token}\n' for token in self.special_tokens)
        return paths

    def save_pretrained(self, directory):
        """Write the files of :meth:`save_vocabulary` and ``tokenizer_config.json``.

        The special tokens are also in ``added_tokens.json``, where transformers looks for them.

        Parameters
        ----------
        directory : str or os.PathLike
            Made where it is missing.

        Returns
        -------
        tuple of str
            Paths of the files.
        """
        paths = self.save_vocabulary(directory)
        added_path = os.path.join(os.fspath(directory), 'added_tokens.json')
        if self.special_tokens:
            write_json(added_path, self.special_tokens)
            paths = (*paths, added_path)
        elif os.path.exists(added_path):  # of another tokenizer that was here
            os.remove(added_path)
        config_path = os.path.join(os.fspath(directory), CONFIG_NAME)
        write_json(config_path, {} if self.max_len == UNLIMITED else {'max_len': self.max_len})
        return (*paths, config_path)

    def _id_of(self, token):
        found = self.special_tokens.get(token)
        if found is None:
            found = self.encoder.get(token, self._unknown_id)
        if found is None:
            raise InputError(
                f'token {token!r} is not in the vocabulary, which has no <unk> either; '
                'tokenize the text first'
            )
        return found

    def _token_of(self, place):
        token = self.decoder.get(place, self.special_tokens_decoder.get(place))
        if token is None:
            raise InputError(
                f'id {place} is not in the vocabulary; its ids are 0 to {len(self) - 1}'
            )
        return token

    def _pieces(self, texts):
        """For each text, the (ids, tokens) of its chunks."""
        pieces = []
        for start in range(0, len(texts), _BATCH):
            batch = [checked(text) for text in texts[start : start + _BATCH]]
            pieces += self._look_up([self._chunks(text) for text in batch])
        return pieces

    def _learn(self, chunks):
        words = [self._words(chunk) for chunk in chunks]
        pieces = iter(self._merge([word for of_chunk in words for word in of_chunk]))
        learned = []
        for of_chunk in words:
            tokens = tuple(token for _ in of_chunk for token in next(pieces))
            learned.append((tuple(map(self._id_of, tokens)), tokens))
        return learned

    def _merge(self, words):
        """The pieces of each word."""
        merged = [None] * len(words)
        if self._rust is not None:
            known, suffix = self._symbols, self.suffix
            quick = [
                n
                for n, word in enumerate(words)
                if word[-1] + suffix in known and known.issuperset(word[:-1])
            ]
            encoding = self._rust.encode(
                [words[n] for n in quick], is_pretokenized=True, add_special_tokens=False
            )
            for n in quick:
                merged[n] = []
            for number, token in zip(encoding.word_ids, encoding.tokens):
                merged[quick[number]].append(token)
        for n, word in enumerate(words):
            if merged[n] is None:
                symbols = [*word[:-1], word[-1] + self.suffix]
                merged[n] = self._finish(merge_symbols(symbols, self.bpe_ranks))
        return merged

    def _finish(self, pieces):
        """What the original makes of the pieces of a word."""
        return pieces
