"""The encoding of texts: checks, calls of the library `tokenizers`, and results."""

import itertools
import logging
import re
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..util.arrays import pad_rows

__all__ = ['BatchEncoding', 'Encoding', 'Frame', 'LibraryPieces', 'ListedPieces']


class Frame(NamedTuple):
    """The special tokens around a text, or around and between the two texts of a pair.

    The first three fields have a tuple for each gap: before the first text, after it, and so on.

    `text_types` has the token type of each text, `size` the number of special tokens; with
    `cuts_left` texts lose their beginnings.
    """

    tokens: tuple
    ids: tuple
    types: tuple
    text_types: tuple
    size: int
    cuts_left: bool = False

    @classmethod
    def of(cls, tokens, id_of, types=None, text_types=None):
        """Make a frame of tokens; `id_of` gives their ids; all types are 0 by default."""
        ids = tuple(tuple(map(id_of, gap)) for gap in tokens)
        types = types or tuple((0,) * len(gap) for gap in tokens)
        text_types = text_types or (0,) * (len(tokens) - 1)
        return cls(tokens, ids, types, text_types, sum(map(len, tokens)))

    def without_tokens(self):
        """Return the frame of a text that gets no special tokens."""
        gaps = ((),) * len(self.ids)
        return self._replace(tokens=gaps, ids=gaps, types=gaps, size=0)

    def around(self, lists, lengths, gaps):
        """Join the lists, cut to their lengths, with what `gaps` has around and between them."""
        result = [*gaps[0]]
        for part, length, gap in zip(lists, lengths, gaps[1:]):
            result += part[len(part) - length :] if self.cuts_left else part[:length]
            result += gap
        return result


#: around a text, and around a pair, that get no special tokens
NO_FRAMES = Frame.of(((), ()), None), Frame.of(((), (), ()), None)


class ListedPieces(NamedTuple):
    """Pieces of one text, all of whose properties are known."""

    ids: list
    tokens: list
    offsets: list
    numbers: list
    words: list


class LibraryPieces(NamedTuple):
    """Pieces of one text, without special tokens, from an encoding of the library.

    A text has ``ids``, ``tokens``, ``offsets`` (start and end), ``numbers`` (indices into the
    words, or None), one per piece, and ``words``.
    """

    ids: list
    encoding: Any
    text: str
    owner: Any

    offsets = property(lambda self: self.encoding.offsets)
    numbers = property(lambda self: self.encoding.word_ids)

    @property
    def tokens(self):
        # the library's token has the space that an added token takes
        added, pairs = self.owner.added_tokens, zip(self.ids, self.encoding.tokens)
        return [t if t == t.lstrip() or not t.strip() else added.get(n, t) for n, t in pairs]

    @property
    def words(self):
        spans = {}
        for number, (start, end) in zip(self.numbers, self.offsets):
            if number is not None:
                first, last = spans.get(number, (start, end))
                spans[number] = min(first, start), max(last, end)
        indices = range(max(spans, default=-1) + 1)
        return [self.text[slice(*spans.get(index, (0, 0)))].strip() for index in indices]


class SplitPieces(LibraryPieces):
    """Pieces of the words that the owner's splitter finds; the library finds the same ones."""

    __slots__ = ()
    tokens = property(lambda self: self.encoding.tokens)
    words = property(lambda self: self.owner.splitter.tokenize(self.text))


class AlignedPieces(SplitPieces):
    """Pieces of words that the splitter gave to the library, which counts offsets in each."""

    __slots__ = ()

    @property
    def offsets(self):
        chars = [spans for _, spans in self.owner.splitter.align(self.text)]
        places = zip(self.numbers, self.encoding.offsets)
        return [cover(chars[number], start, end) for number, (start, end) in places]


class Encoding(list):
    """Ids of one text or pair, with their places in the text.

    It is the list of ids, including special tokens. The attributes can also be read as items
    (``encoding['token_types']``). Lists have one entry per id.

    Attributes
    ----------
    input_ids, token_types : np.ndarray
        int32, shape (length,). The ids are a block's `words`. BERT's token types are 0 up to the
        first [SEP] and 1 after it; 0 for language models.
    valid_length : int
    truncated : int
        Number of pieces that `max_length` cut off.
    tokens : list of str
    offsets : list of (int, int)
        Start and end in the piece's text, in Python characters. An unknown word's token has the
        word's span. Special tokens have (0, 0).
    words : list of str
        All words of the text, cut off or not, followed by the second text's words.
    word_ids : list of int or None
        Index into `words`; None for special tokens.
    """

    __slots__ = ('_frame', '_lengths', '_parts', 'truncated')

    def __init__(self, frame, parts, ids, lengths):
        self._frame, self._parts, self._lengths = frame, parts, lengths
        self.truncated = sum(map(len, ids)) - sum(lengths)
        super().__init__(frame.around(ids, lengths, frame.ids))

    valid_length = property(len)

    @property
    def input_ids(self):
        return np.array(self, dtype=np.int32)

    @property
    def token_types(self):
        frame, types, counts = self._frame, [], []
        gaps = itertools.zip_longest(frame.types, frame.text_types, self._lengths, fillvalue=0)
        for gap, text_type, length in gaps:
            types += [*gap, text_type]
            counts += [1] * len(gap) + [length]
        return np.repeat(np.array(types, np.int32), counts)

    @property
    def tokens(self):
        tokens = [part.tokens for part in self._parts]
        return self._frame.around(tokens, self._lengths, self._frame.tokens)

    @property
    def offsets(self):
        return self._join([part.offsets for part in self._parts], (0, 0))

    @property
    def words(self):
        return [word for part in self._parts for word in part.words]

    @property
    def word_ids(self):
        numbers, shift = [], 0
        for part in self._parts:
            numbers.append([None if n is None else n + shift for n in part.numbers])
            shift += len(part.words)
        return self._join(numbers, None)

    def _join(self, lists, special):
        gaps = [(special,) * len(gap) for gap in self._frame.ids]
        return self._frame.around(lists, self._lengths, gaps)

    def __getitem__(self, key):
        return getattr(self, key) if isinstance(key, str) else super().__getitem__(key)


class BatchEncoding:
    """Ids of a batch of texts or pairs.

    Fields can be read as attributes or as items; ``batch[i]`` is the :class:`Encoding` of row `i`.

    Attributes
    ----------
    input_ids, token_types : np.ndarray, or list of np.ndarray where the batch isn't padded
        int32, shape (batch, length). The ids are a block's `words`. Padding has the id of the
        padding token and token type 0.
    valid_length, truncated : np.ndarray
        int32, shape (batch,). Length without padding; number of pieces that `max_length` cut off.
    tokens, offsets, words, word_ids : list of list
        The rows' lists (without padding), see :class:`Encoding`; created on demand.
    """

    def __init__(self, rows, length, pad_id):
        self.rows = rows
        self.valid_length = np.array(list(map(len, rows)), dtype=np.int32)
        self.truncated = np.array([row.truncated for row in rows], dtype=np.int32)
        self.token_types = [row.token_types for row in rows]
        if length is None:
            self.input_ids = [row.input_ids for row in rows]
        else:
            self.input_ids = pad_rows(rows, pad_id, length)
            self.token_types = pad_rows(self.token_types, 0, length)

    tokens = property(lambda self: [row.tokens for row in self.rows])
    offsets = property(lambda self: [row.offsets for row in self.rows])
    words = property(lambda self: [row.words for row in self.rows])
    word_ids = property(lambda self: [row.word_ids for row in self.rows])

    def __getitem__(self, key):
        return getattr(self, key) if isinstance(key, str) else self.rows[key]

    def __len__(self):
        return len(self.rows)

    def __repr__(self):
        return f'BatchEncoding({len(self)} texts, longest {self.valid_length.max(initial=0)})'


_log = logging.getLogger(__name__)

#: the original's default of ``max_len``
UNLIMITED = int(1e12)

_SURROGATES = re.compile('[\ud800-\udfff]')


def checked(text):
    """Return `text`, which must be a str, with U+FFFD for lone surrogates (same length)."""
    if not isinstance(text, str):
        hint = '; decode it first' if isinstance(text, bytes) else ''
        raise InputError(f'a text must be a str, not {type(text).__name__}: {text!r:.80}{hint}')
    return text if text.isascii() else _SURROGATES.sub('\ufffd', text)


def list_of_texts(texts, name):
    """Return `texts` as a list; a str is refused."""
    if isinstance(texts, (str, bytes)):
        raise InputError(f'{name} must be a list of str, not one {type(texts).__name__}')
    return list(texts)


def cover(spans, start, end):
    """Return the smallest span that covers ``spans[start:end]``, or an empty one where none are."""
    if start < end:
        part = spans[start:end]
        return min(part)[0], max(last for _, last in part)
    position = spans[start][0] if start < len(spans) else spans[-1][1]
    return position, position


def call_rust(function, *args, **kwargs):
    """Call a method of the library."""
    try:
        return function(*args, **kwargs)
    except BaseException as error:  # the library's panics are no Exceptions
        if not isinstance(error, Exception) and type(error).__name__ != 'PanicException':
            raise
        raise InputError(f'the tokenizer cannot do this: {error}') from error


def encode_rust(rust, batch, fast=False, **kwargs):
    """Return the library's encodings of a batch; `fast` ones have only ids."""
    # a single short text needs no threads; other threads stand still meanwhile
    if len(batch) == 1 and len(batch[0]) < 10_000:
        return [call_rust(rust.encode, batch[0], add_special_tokens=False, **kwargs)]
    encode = rust.encode_batch_fast if fast else rust.encode_batch
    return call_rust(encode, batch, add_special_tokens=False, **kwargs)


def warn_if_long(length, max_len):
    """Log a warning if a model with `max_len` positions can't take `length` ids."""
    if length > max_len:
        _log.warning('a text of %d ids is longer than the %d that the model takes', length, max_len)
