"""Text to ids: of one text, a pair, a batch, or a large corpus."""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

import mxnet as mx
from tokenizers import Tokenizer as Library

from ..errors import InputError, UnknownNameError
from . import encoding
from .tokens import Tokens

if TYPE_CHECKING:
    from ..batches import Batch


# Most texts and characters that are tokenized together: some 100 bytes for each.
_TEXTS, _CHARACTERS = 1024, 2**20
# Only a beginning of a text that will be cut is read, expected to be long enough. Its last
# pieces may differ from the whole text's, so some are to spare.
_CHARACTERS_A_PIECE, _SPARE = 6, 64
#: where a text can end early, with the same pieces up to there: white space, or CJK punctuation
GAP = r'\s|(?<=[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f])'


class TextToIds(Tokens):
    """The part of `Tokenizer` that encodes texts."""

    splitter = None
    #: tokenizer_config.json of the folder that the tokenizer is from
    _fields = {}
    #: pieces of words that the splitter found
    _aligned = encoding.AlignedPieces
    #: whether a text's ids are the ids of its parts between white space, one after the other
    splits_at_spaces = False
    #: where a text can end early
    _gap = re.compile(GAP)

    @overload
    def __call__(self, text: str) -> list[str]: ...
    @overload
    def __call__(
        self,
        text: str | Iterable[str],
        pair: str | Iterable[str] | None = None,
        *,
        padding: bool | str | None = None,
        truncation: bool | str | None = None,
        max_length: int | None = None,
        ctx: Any = None,
        **kwargs: Any,
    ) -> Batch: ...

    def __call__(
        self, text, pair=None, *, padding=None, truncation=None, max_length=None, ctx=None, **kwargs
    ):
        """Return tokens of a text, as in GluonNLP; with other arguments, a batch for a model.

        Parameters
        ----------
        text : str or list of str
            A single str without any other argument gives its tokens.
        padding : bool or str, optional
            Pad rows to the longest one, or with 'max_length' to `max_length`. False refuses texts
            of different lengths.
        truncation : bool, optional
            Whether to truncate to `max_length`, by default the model's. Default: only with
            `max_length`.
        **kwargs
            Options of `encode_batch`, such as ``add_special_tokens=False``.

        Returns
        -------
        list of str, or model_zoo.batches.Batch
            ``block(**batch)`` runs a block on it.

        Examples
        --------
        >>> from model_zoo import open_model
        >>> block, tokenizer, _ = open_model('all-MiniLM-L6-v2')
        >>> batch = tokenizer(['A cat.', 'Two dogs bark.'], padding=True, truncation=True)
        >>> states, pooled = block(**batch)
        >>> batch.words.shape, states.shape
        ((2, 6), (2, 6, 384))
        """
        from ..batches import Batch  # tokenizers alone don't need it

        asked = (pair, padding, truncation, max_length, ctx)
        if isinstance(text, str) and not kwargs and all(argument is None for argument in asked):
            return self.tokenize(text)
        UnknownNameError.check('padding', padding, (None, True, False, 'longest', 'max_length'))
        UnknownNameError.check('truncation', truncation, (None, True, False, 'longest_first'))
        cuts = max_length is not None if truncation is None else truncation
        if max_length is None and self.max_len < encoding.UNLIMITED:
            max_length = self.max_len
        if padding == 'max_length':
            if max_length is None:
                raise InputError("padding='max_length' needs `max_length`")
            kwargs['round_to'] = max_length
        texts = [text] if isinstance(text, str) else text
        pairs = [pair] if isinstance(pair, str) else pair
        batch = self.encode_batch(texts, pairs, max_length if cuts else None, **kwargs)
        if not len(batch):
            raise InputError('there is no text in the batch')
        if padding is False and len(set(batch.valid_length.tolist())) > 1:
            raise InputError('texts of different lengths make no array: pass padding=True')
        make = functools.partial(mx.nd.array, ctx=ctx or mx.cpu())
        has_types = self.pair_type or batch.token_types.any()
        return Batch(
            make(batch.input_ids, dtype='int32'),
            make(batch.token_types, dtype='int32') if has_types else None,
            make(batch.valid_length, dtype='float32'),
        )

    def tokenize(self, text: str) -> list[str]:
        """Return the list of the pieces of `text`, without special tokens."""
        return self._pieces([text])[0].tokens

    def normalized(self, word):
        """Return a word in the spelling of its pieces."""
        begins, _ = self._mark
        if begins:
            return self.decode(self.encode(word, add_special_tokens=False)).strip()
        text, splitter = self._normalized(word), self._rust.pre_tokenizer
        words = encoding.call_rust(splitter.pre_tokenize_str, text) if splitter else [(text, None)]
        return ' '.join(word for word, _ in words)

    def _pieces(self, texts, fast=False):
        """Return the pieces of each text, such as `LibraryPieces`; `fast` ones have only ids."""
        texts, splitter = [encoding.checked(text) for text in texts], self.splitter
        kinds = [encoding.LibraryPieces] * len(texts)
        for number, text in enumerate(texts if splitter else ()):
            if not any(mark in text for mark in self.added_tokens.values()):
                kinds[number] = encoding.SplitPieces if splitter.suits_rust(text) else self._aligned
        whole = [number for number, kind in enumerate(kinds) if kind is not self._aligned]
        apart = [number for number, kind in enumerate(kinds) if kind is self._aligned]
        found = dict(zip(whole, encoding.encode_rust(self._rust, [texts[n] for n in whole], fast)))
        if apart:
            words = [splitter.tokenize(texts[number]) for number in apart]
            encoded = encoding.encode_rust(self._of_words, words, fast, is_pretokenized=True)
            found.update(zip(apart, encoded))
        return [kind(found[n].ids, found[n], texts[n], self) for n, kind in enumerate(kinds)]

    def _first_pieces(self, texts, count):
        """Return the pieces of each text, or more than `count` from the beginning of a long one."""
        most = count + _SPARE
        parts = [_beginning(text, _CHARACTERS_A_PIECE * most, self._gap) for text in texts]
        found = self._pieces(parts)
        for number, (text, part) in enumerate(zip(texts, parts)):
            size = _CHARACTERS_A_PIECE * most
            while len(part) < len(text) and len(found[number].ids) < most:
                size *= 4
                part = _beginning(text, size, self._gap)
                [found[number]] = self._pieces([part])
        return found

    def ids_of(self, texts):
        """Return the ids of each text without special tokens; the fastest way for large corpora."""
        return [pieces.ids for pieces in self._pieces(texts, fast=True)]

    @functools.cached_property
    def _of_words(self):
        """The library's tokenizer for words that the splitter found."""
        return Library(self._rust.model)

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != '_of_words'}

    def encode(
        self,
        text: str,
        pair: str | None = None,
        max_length: int | None = None,
        add_special_tokens: bool = True,
        **special: Any,
    ) -> encoding.Encoding:
        """Return the ids of a text or a pair, with the model's special tokens around them.

        BERT's are ``[CLS] text [SEP]`` or ``[CLS] text [SEP] pair [SEP]``; the language models have
        none. An empty second text is left out together with its [SEP], as in GluonNLP's
        BERTSentenceTransform and the original ``run_classifier.py``.

        Parameters
        ----------
        max_length : int, optional
            Maximum number of ids, including special tokens. A text is cut at its end. In a pair,
            the longer text (the second one if they are equal) loses its last piece until both fit.
            The result's ``truncated`` is the number of lost pieces. Default: nothing is cut, and
            more than `max_len` ids log a warning.
        **special
            A family's options for special tokens, such as Transformer-XL's.
        """
        [row] = self.encode_pairs([(text, pair)], max_length, add_special_tokens, True, **special)
        return row

    @property
    def split_special_tokens(self):
        """Whether special tokens in a text are read as other text; `save_pretrained` keeps it."""
        return bool(self._fields.get('split_special_tokens'))

    @split_special_tokens.setter
    def split_special_tokens(self, value):
        self._fields = {**self._fields, 'split_special_tokens': value}
        self._rust.encode_special_tokens = value

    def encode_text(self, text):
        """Return the ids of a language model's text, for training and for generation alike.

        A special token in the text, such as ``<|endoftext|>``, is one id, as in transformers,
        unless `split_special_tokens` is set.
        """
        known = {*self._roles.values(), *self._kept_whole()} - {None}
        # where there are added tokens, the library finds them
        if self.added_tokens or self.split_special_tokens or not known:
            return list(self.encode(text))
        ids, known = [], '|'.join(map(re.escape, sorted(known, key=len, reverse=True)))
        for number, part in enumerate(re.split(f'({known})', encoding.checked(text))):
            ids += [self._id_of(part)] if number % 2 else self.encode(part) if part else []
        return ids

    def encode_batch(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        max_length: int | None = None,
        pad: bool = True,
        round_to: int | None = None,
        add_special_tokens: bool = True,
        **special: Any,
    ) -> encoding.BatchEncoding:
        """Return the ids of many texts or pairs, see :meth:`encode`.

        Parameters
        ----------
        pad : bool
            Whether to pad all rows to the length of the longest one. Language models without a
            padding token are padded with id 0.
        round_to : int, optional
            Round the padded length up to a multiple of this, up to `max_length`; with
            ``round_to=max_length`` every batch has the same length.
        max_length, add_special_tokens, **special
            As in :meth:`encode`.
        """
        texts = encoding.list_of_texts(texts, 'texts')
        others = [None] * len(texts) if pairs is None else encoding.list_of_texts(pairs, 'pairs')
        if len(others) != len(texts):
            raise InputError(f'{len(texts)} texts, but {len(others)} pairs')
        pairs = list(zip(texts, others))
        rows = [*self.encode_pairs(pairs, max_length, add_special_tokens, True, **special)]
        if not pad:
            return encoding.BatchEncoding(rows, None, None)
        length = max(map(len, rows), default=0)
        if round_to is not None:
            length = -(-length // round_to) * round_to
            if max_length is not None:
                length = min(length, max_length)
        pad_id = self.pad_token_id
        if pad_id is None:
            pad_id = self._default_pad_id
        if pad_id is None and any(len(row) < length for row in rows):
            raise InputError('the vocabulary names no padding token: use pad=False, or name one')
        return encoding.BatchEncoding(rows, length, pad_id or 0)

    def encode_pairs(
        self, pairs, max_length=None, add_special_tokens=True, counts_lost=False, **special
    ):
        """Yield the `Encoding` of each text or pair, see :meth:`encode`.

        Tasks and pipelines use this. A limited number of texts is tokenized together, which limits
        the memory.

        Parameters
        ----------
        pairs : sequence of (str, str or None)
            A text, and the second text of a pair.
        counts_lost : bool
            Whether ``truncated`` counts all lost pieces, and ``words`` has all words. By default
            only the beginning of a text that is much longer than `max_length` is read.
        max_length, add_special_tokens, **special
            As of :meth:`encode`.
        """
        frames = self._frames_with(**special) if special else self._frames
        if not add_special_tokens:
            frames = [frame.without_tokens() for frame in frames]
        if self._fields.get('truncation_side') == 'left':
            frames = [frame._replace(cuts_left=True) for frame in frames]
        are_pairs = any(other is not None for _, other in pairs)
        if max_length is not None and max_length < frames[are_pairs].size:
            raise InputError(
                f'max_length is {max_length}; {"a pair" if are_pairs else "a text"} needs at least '
                f'{frames[are_pairs].size} for its special tokens'
            )
        pairs = [(text,) if other is None else (text, other) for text, other in pairs]
        pairs = [tuple(map(encoding.checked, pair)) for pair in pairs]
        ends = itertools.accumulate(sum(map(len, pair)) for pair in pairs)
        parts = [(index // _TEXTS, end // _CHARACTERS) for index, end in enumerate(ends)]
        for _, part in itertools.groupby(zip(parts, pairs), key=operator.itemgetter(0)):
            texts, longest = [texts for _, texts in part], 0
            flat = [text for pair in texts for text in pair]
            if max_length is None or counts_lost or max(map(len, flat)) <= max_length:
                pieces = iter(self._pieces(flat))
            else:
                pieces = iter(self._first_pieces(flat, max_length))
            for pair in texts:
                found = [next(pieces) for _ in pair]
                ids = [each.ids for each in found]
                # a second text without a piece is left out
                frame, lengths = frames[len(ids) - 1 if ids[-1] else 0], list(map(len, ids))
                if max_length is not None and sum(lengths) > max_length - frame.size:
                    lengths = _cut(lengths, max_length - frame.size)
                    frame = frame if lengths[-1] else frames[0]
                row = encoding.Encoding(frame, found, ids, lengths)
                longest = max(longest, len(row))
                yield row
            if max_length is None:
                encoding.warn_if_long(longest, self.max_len)

    def with_special_tokens(self, ids, pair_ids=None):
        """Add the special tokens to the ids of a text or of a pair.

        Tasks and pipelines use this for windows over a long text.

        Parameters
        ----------
        ids, pair_ids : sequence of int
            Ids of a text, and of the second text of a pair.

        Returns
        -------
        ids, token_types : numpy.ndarray, shape (length,), int32
        start : int
            Position of the first id of the last text.
        """
        texts = [list(part) for part in (ids, pair_ids) if part is not None]
        frame, lengths = self._frames[len(texts) - 1], list(map(len, texts))
        row = encoding.Encoding(frame, (), texts, lengths)
        return row.input_ids, row.token_types, len(row) - len(frame.ids[-1]) - lengths[-1]

    def encoding_of(self, ids, max_length=None):
        """Return the `Encoding` of a text's ids, which has no tokens, offsets and words."""
        frame = self._frames[0]
        room = len(ids) if max_length is None else max_length - frame.size
        return encoding.Encoding(frame, (), [ids], [min(len(ids), room)])

    def pair_size(self):
        """Return the number of special tokens of a pair."""
        return self._frames[1].size

    def _frames_with(self):
        """Return the special tokens around a text and a pair, with a family's options."""
        return self._frames


def _beginning(text, size, gap):
    """Return a text up to the first gap behind `size` characters."""
    found = gap.search(text, size) if len(text) > size else None
    return text[: found.start()] if found else text


def _cut(sizes, room):
    """Return the lengths of a text or a pair in `room`, by BERT's ``_truncate_seq_pair``."""
    first, *others = sizes
    # of two texts the longer one loses pieces, and the second one if they are equal
    others = [min(size, max(room // 2, room - first)) for size in others]
    return [min(first, room - sum(others)), *others]
