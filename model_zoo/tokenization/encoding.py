"""The encoding of texts: checks, calls of the Rust library, and results."""

import logging
import re
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..util.arrays import pad_rows


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
        return cls(
            tokens,
            tuple(tuple(map(id_of, gap)) for gap in tokens),
            types or tuple((0,) * len(gap) for gap in tokens),
            text_types or (0,) * (len(tokens) - 1),
            sum(map(len, tokens)),
        )

    def without_tokens(self):
        """Return the frame of a text that gets no special tokens."""
        gaps = ((),) * len(self.ids)
        return self._replace(tokens=gaps, ids=gaps, types=gaps, size=0)

    def put_around(self, lists, lengths, gaps):
        """Join the lists, cut to their lengths, with what `gaps` has around and between them."""
        result = [*gaps[0]]
        for part, length, gap in zip(lists, lengths, gaps[1:]):
            result += self.cut(part, length)
            result += gap
        return result

    def cut(self, part, length):
        """Return the part of a list that is kept."""
        return part[len(part) - length :] if self.cuts_left else part[:length]

    def fill_types(self, row, lengths):
        """Write the token types into a row of zeros."""
        position = 0
        for number, gap in enumerate(self.types):
            if any(gap):
                row[position : position + len(gap)] = gap
            position += len(gap)
            if number < len(self.text_types):
                if self.text_types[number]:
                    row[position : position + lengths[number]] = self.text_types[number]
                position += lengths[number]


#: around a text, and around a pair, that get no special tokens
NO_FRAMES = Frame.of(((), ()), None), Frame.of(((), (), ()), None)


class ListedPieces:
    """Pieces whose ids, tokens, offsets, numbers of words, and words were all found."""

    __slots__ = ('_lists',)

    def __init__(self, ids, tokens, offsets, numbers, words):
        self._lists = ids, tokens, offsets, numbers, words

    ids, tokens, offsets, numbers, words = (
        lambda self, n=n: list(self._lists[n]) for n in range(5)
    )


class LibraryPieces:
    """One text's pieces without special tokens, of an encoding of the library."""

    __slots__ = ('_encoding', '_owner', '_text')

    def __init__(self, owner, text, encoding):
        self._owner, self._text, self._encoding = owner, text, encoding

    def ids(self):
        """Return a list of int."""
        return self._encoding.ids

    def tokens(self):
        """Return a list of str, one per id."""
        # the library's token has the space that an added token takes
        added, pairs = self._owner.added_tokens, zip(self._encoding.ids, self._encoding.tokens)
        return [t if t == t.lstrip() or not t.strip() else added.get(n, t) for n, t in pairs]

    def offsets(self):
        """Return a list of (start, end) in the text, one per id."""
        return self._encoding.offsets

    def numbers(self):
        """Return a list of indices into the words, or None, one per id."""
        return self._encoding.word_ids

    def words(self):
        """Return the list of the text's words."""
        spans = {}
        for number, (start, end) in zip(self.numbers(), self.offsets()):
            if number is not None:
                first, last = spans.get(number, (start, end))
                spans[number] = min(first, start), max(last, end)
        indices = range(max(spans, default=-1) + 1)
        return [self._text[slice(*spans.get(index, (0, 0)))].strip() for index in indices]


class SplitPieces(LibraryPieces):
    """Pieces of the words that the owner's splitter finds; the library finds the same ones."""

    __slots__ = ()

    def tokens(self):
        return self._encoding.tokens

    def words(self):
        return self._owner.splitter.tokenize(self._text)


class AlignedPieces(SplitPieces):
    """Pieces of words that the splitter gave to the library, which counts offsets in each."""

    __slots__ = ()

    def offsets(self):
        chars = [spans for _, spans in self._owner.splitter.align(self._text)]
        places = zip(self.numbers(), self._encoding.offsets)
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
        super().__init__(frame.ids[0])
        for part, length, gap in zip(ids, lengths, frame.ids[1:]):
            self += part if len(part) == length else frame.cut(part, length)
            self += gap

    @property
    def valid_length(self):
        return len(self)

    @property
    def input_ids(self):
        return np.array(self, dtype=np.int32)

    @property
    def token_types(self):
        types = np.zeros(len(self), dtype=np.int32)
        self._frame.fill_types(types, self._lengths)
        return types

    @property
    def tokens(self):
        tokens = [part.tokens() for part in self._parts]
        return self._frame.put_around(tokens, self._lengths, self._frame.tokens)

    @property
    def offsets(self):
        return self._join([part.offsets() for part in self._parts], (0, 0))

    @property
    def words(self):
        return [word for part in self._parts for word in part.words()]

    @property
    def word_ids(self):
        numbers, shift = [], 0
        for part in self._parts:
            numbers.append([None if n is None else n + shift for n in part.numbers()])
            shift += len(part.words())
        return self._join(numbers, None)

    def _join(self, lists, special):
        gaps = [(special,) * len(gap) for gap in self._frame.ids]
        return self._frame.put_around(lists, self._lengths, gaps)

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
        self.valid_length = np.array([len(row) for row in rows], dtype=np.int32)
        self.truncated = np.array([row.truncated for row in rows], dtype=np.int32)
        if length is None:
            self.input_ids = [row.input_ids for row in rows]
            self.token_types = [row.token_types for row in rows]
        else:
            self.input_ids = pad_rows(rows, pad_id, length)
            self.token_types = np.zeros_like(self.input_ids)
            for types, row in zip(self.token_types, rows):
                row._frame.fill_types(types, row._lengths)

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
    """Call a method of the Rust library."""
    try:
        return function(*args, **kwargs)
    except BaseException as error:  # the library's panics are no Exceptions
        if not isinstance(error, Exception) and type(error).__name__ != 'PanicException':
            raise
        raise InputError(f'the tokenizer cannot do this: {error}') from error


def encode_rust(rust, batch, **kwargs):
    """Return the Rust library's encodings of a batch; one input alone doesn't start its threads."""
    if len(batch) == 1:
        return [call_rust(rust.encode, batch[0], add_special_tokens=False, **kwargs)]
    return call_rust(rust.encode_batch, batch, add_special_tokens=False, **kwargs)


def warn_if_long(length, max_len):
    """Log a warning if a model with `max_len` positions can't take `length` ids."""
    if length > max_len:
        _log.warning(
            'a sequence of %d ids is longer than the %d that the model has positions for; '
            'cut it before the model sees it',
            length,
            max_len,
        )
