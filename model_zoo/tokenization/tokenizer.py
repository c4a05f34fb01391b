"""All tokenizers: texts to ids and back, batches, and files, over the library `tokenizers`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import json
import operator
import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import mxnet as mx
import numpy as np
from tokenizers import Tokenizer as Library

from ..checkpoint.readers import kept_sums
from ..errors import InputError, UnknownNameError
from ..pretrained import names_files, resolve_alias
from ..pretrained.files import BESIDE_VOCAB, BPE_NAMES, TOKENIZER_CONFIG
from ..util.files import atomic_write, file_in, make_writable_dir, write_json
from .encoding import (
    NO_FRAMES,
    UNLIMITED,
    AlignedPieces,
    BatchEncoding,
    Encoding,
    Frame,
    LibraryPieces,
    SplitPieces,
    call_rust,
    checked,
    encode_rust,
    list_of_texts,
    warn_if_long,
)
from .library_files import BYTE_SPACE, FILE_NAME, PREFIX, ids_of, open_rust, steps_of
from .settings import PYTHON_OPTIONS, SWITCHES
from .vocab import NO_TOKEN, ROLES, find_roles, make_vocab
from .vocab_file import find_vocab_file

if TYPE_CHECKING:
    from ..batches import Batch

__all__ = ['open_tokenizer']

TokenizerType = TypeVar('TokenizerType')

# Most texts and characters that are tokenized together: some 100 bytes for each.
_TEXTS, _CHARACTERS = 1024, 2**20
# Of a text that will be cut, only a beginning is read that is expected to be long enough. Its last
# pieces may differ from the whole text's, so some are to spare.
_CHARACTERS_A_PIECE, _SPARE = 6, 64
#: where a text can end early, with the same pieces up to there: white space, or CJK punctuation
GAP = r'\s|(?<=[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f])'


def _special(role):
    """Return the properties of a special token and of its id."""

    def find(self):
        token = self._roles.get(role)
        return None if token is None else self._id_of(token)

    return property(lambda self: self._roles.get(role)), property(find)


class Tokenizer:
    """Text to ids and back, by any tokenizer of the library `tokenizers`.

    It has the whole interface. A family's class has a builder, `library_of`, that makes the
    library's object of a vocabulary's file, and the other methods of the originals. The library's
    post-processor adds the special tokens. Texts are truncated at the end and padded on the right;
    the library's own settings for these are ignored.

    Parameters
    ----------
    source : str, os.PathLike or tokenizers.Tokenizer
        Path of a ``tokenizer.json``, or the library's object, which is copied.
    special_tokens : dict of str to str, optional
        Role (``'unk'``, ``'pad'``, ``'cls'``, ``'sep'``, ``'mask'``, ``'bos'``, ``'eos'``) ->
        token. :meth:`from_pretrained` reads them from ``tokenizer_config.json`` and
        ``special_tokens_map.json``. By default they are found by their usual names among the
        file's special tokens.
    max_len : int, optional
        Longer results log a warning; usually the number of the model's positions.

    Attributes
    ----------
    vocab : gluonnlp.vocab.Vocab
        All tokens, with this tokenizer's ids.
    added_tokens : dict of int to str
        Ids and tokens that stay whole wherever they are in a text.
    splitter : model_zoo.tokenization.basic.Splitter or None
        Finds the words of texts in which the library may find others than the originals.
    pair_type : int
        Token type of a pair's second text, and of the tokens after it.
    pad_token, cls_token, sep_token, mask_token, unk_token, bos_token, eos_token : str or None
        None if the vocabulary has none.
    pad_token_id, cls_token_id, sep_token_id, mask_token_id, unk_token_id, bos_token_id, \
eos_token_id : int or None

    Examples
    --------
    >>> from tokenizers import Tokenizer as Library, models, pre_tokenizers
    >>> library = Library(models.WordLevel({'[UNK]': 0, 'a': 1, 'text': 2}, '[UNK]'))
    >>> library.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> tokenizer = Tokenizer(library)  # or Tokenizer.from_pretrained('FOLDER')
    >>> tokenizer.tokenize('a long text')
    ['a', '[UNK]', 'text']
    """

    #: kinds of vocabularies (`VocabFile.kind`) that the class reads
    kinds = ('tokenizers',)
    #: ending of a word's last symbol in byte pairs
    suffix = ''
    #: positions of the released models
    pretrained_max_len = UNLIMITED
    #: whether the library's tokenizers of the kind are less exact
    needs_python = False
    #: what transformers calls tokenizers like this, without the ending ``Tokenizer``
    names = frozenset()
    max_len = UNLIMITED
    added_tokens = {}
    splitter = None
    #: tokenizer_config.json of the folder that the tokenizer is from
    _fields = {}
    #: id of padding if the vocabulary has no token for it; None if it must have one
    _default_pad_id = None
    #: role -> the role whose token replaces a missing one
    _stand_ins = {}
    #: roles that the vocabulary must have
    _needed = ()
    #: pieces of words that the splitter found
    _aligned = AlignedPieces
    #: whether a text's ids are the ids of its parts between white space, one after the other
    splits_at_spaces = False
    #: where a text can end early
    _gap = re.compile(GAP)

    def __init__(self, source, special_tokens=None, max_len=None):
        self._set_up(open_rust(source), special_tokens, max_len)

    def _set_up(self, rust, special_tokens=None, max_len=None):
        """Set the library's tokenizer, without a copy."""
        self.max_len = max_len or UNLIMITED
        self._rust, added = rust, rust.get_added_tokens_decoder()
        self.added_tokens = {number: token.content for number, token in added.items()}
        self._special = {number for number, token in added.items() if token.special}
        special = {self.added_tokens[number] for number in self._special}
        roles = find_roles(special, first=('[UNK]', '<s>', '</s>'))
        for role, token in (special_tokens or {}).items():
            UnknownNameError.check('special token', role, ROLES)
            if rust.token_to_id(token) is None:
                raise InputError(f'the {role} token {token!r} is not in the vocabulary')
            roles[role] = token
        before, after = self._frames[0].tokens
        if before and after and not {'cls', 'sep'} <= roles.keys():
            roles = {'cls': before[0], 'sep': after[-1], **roles}
        self._named = roles

    pad_token, pad_token_id = _special('pad')
    cls_token, cls_token_id = _special('cls')
    sep_token, sep_token_id = _special('sep')
    mask_token, mask_token_id = _special('mask')
    unk_token, unk_token_id = _special('unk')
    bos_token, bos_token_id = _special('bos')
    eos_token, eos_token_id = _special('eos')

    # -- tokens and ids -------------------------------------------------------------------------

    def __len__(self):
        return len(self.vocab)

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
        if max_length is None and self.max_len < UNLIMITED:
            max_length = self.max_len
        if padding == 'max_length':
            if max_length is None:
                raise InputError("padding='max_length' needs `max_length`")
            kwargs['round_to'] = max_length
        batch = self.encode_batch(
            [text] if isinstance(text, str) else text,
            [pair] if isinstance(pair, str) else pair,
            max_length if cuts else None,
            **kwargs,
        )
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

    def __repr__(self):
        facts = [f'{len(self)} tokens']
        if self.do_lower_case:
            facts.append('do_lower_case=True')
        if self.max_len < UNLIMITED:
            facts.append(f'max_len={self.max_len}')
        return f'{type(self).__name__}({", ".join(facts)})'

    @functools.cached_property
    def vocab(self):
        return make_vocab(ids_of(self._rust), self._named)

    @functools.cached_property
    def _roles(self):
        """The special tokens by their roles."""
        roles = {role: getattr(self.vocab, name, None) for role, name in ROLES.items()}
        for role, other in self._stand_ins.items():
            roles[role] = roles[role] or roles[other]
        for role in self._needed:
            if roles[role] is None:
                raise InputError(f'the vocabulary of {len(self)} tokens names no {role} token')
        return roles

    def tokenize(self, text: str) -> list[str]:
        """Return the list of the pieces of `text`, without special tokens."""
        return self._pieces([text])[0].tokens

    def convert_tokens_to_ids(self, tokens):
        """Return ids of a list of tokens, or the id of one; more than `max_len` log a warning."""
        if isinstance(tokens, str):
            return self._id_of(tokens)
        ids = [self._id_of(token) for token in tokens]
        warn_if_long(len(ids), self.max_len)
        return ids

    def convert_ids_to_tokens(self, ids, skip_special_tokens=False):
        """Return the tokens of a sequence or array of ids, or the token of a single id."""
        if hasattr(ids, 'asnumpy'):
            ids = ids.asnumpy()
        if not isinstance(ids, (list, tuple)) and np.ndim(ids) == 0:
            return self._token_of(_as_id(ids))
        ids = map(_as_id, ids)
        if skip_special_tokens:
            special = self._special_ids()
            ids = (i for i in ids if i not in special)
        return [self._token_of(i) for i in ids]

    def _special_ids(self):
        if self.added_tokens:
            return self._special
        return {self._id_of(token) for token in self._roles.values() if token is not None}

    def _id_of(self, token):
        ids = self.vocab.token_to_idx
        number = ids.get(token, ids.get(self.unk_token))
        if number is None:
            raise InputError(f'token {token!r} is not in the vocabulary, nor is an unknown token')
        return number

    def _token_of(self, token_id):
        if not 0 <= token_id < len(self):
            raise InputError(f'{token_id} must be an id of the vocabulary, 0 to {len(self) - 1}')
        return self.vocab.idx_to_token[token_id]

    def decode(self, ids, skip_special_tokens=False):
        """Return the text of a sequence or array of ids; ids without a token are left out."""
        return self._join(self._tokens_to_decode(ids, skip_special_tokens), ' ')

    def _tokens_to_decode(self, ids, skip_special_tokens):
        tokens = self.convert_ids_to_tokens(ids, skip_special_tokens)
        return [token for token in tokens if not token.startswith(NO_TOKEN)]

    def join(self, pieces):
        """Return the word of which `pieces` are the pieces."""
        return self._join(pieces, '').strip()

    def _join(self, tokens, between):
        decoder = self._rust.decoder
        return call_rust(decoder.decode, list(tokens)) if decoder else between.join(tokens)

    # -- how the library works ------------------------------------------------------------------

    @functools.cached_property
    def do_lower_case(self):
        """Whether texts are lowered."""
        return self._normalized('A').strip(PREFIX) == 'a'

    def _normalized(self, text):
        normalizer = self._rust.normalizer
        return text if normalizer is None else call_rust(normalizer.normalize_str, text)

    @property
    def finds_marks(self):
        """Whether special tokens are found anywhere in a text, not only between spaces."""
        return bool(self.added_tokens)

    @functools.cached_property
    def word_prefix(self):
        """The text before a word that isn't the first, where the tokens of the two differ."""
        first, both = (encode_rust(self._rust, [text])[0].tokens for text in ('a', 'a a'))
        return '' if both == first * 2 else ' '

    @functools.cached_property
    def _mark(self):
        """Whether the first characters of tokens mark words' beginnings, or other pieces; these."""
        content = json.loads(self._rust.to_str())
        prefix = content['model'].get('continuing_subword_prefix')
        if prefix:
            return False, prefix
        parts = ('normalizer', 'pre_tokenizer', 'decoder')
        steps = [step for part in parts for step in steps_of(content.get(part))]
        if any(step.get('type') == 'ByteLevel' for step in steps):
            return True, BYTE_SPACE
        return True, PREFIX if PREFIX in json.dumps(steps, ensure_ascii=False) else ''

    @property
    def has_bytes(self):
        """Whether tokens are made of bytes, as GPT-2's are."""
        return self._mark == (True, BYTE_SPACE)

    def is_first_subword(self, token):
        """Return whether `token` begins a word that isn't the text's first."""
        begins, mark = self._mark
        return token.startswith(mark) is begins

    def normalized(self, word):
        """Return a word in the spelling of its pieces."""
        begins, _ = self._mark
        if begins:
            return self.decode(self.encode(word, add_special_tokens=False)).strip()
        text, splitter = self._normalized(word), self._rust.pre_tokenizer
        words = call_rust(splitter.pre_tokenize_str, text) if splitter else [(text, None)]
        return ' '.join(word for word, _ in words)

    def spell(self, ids):
        """Return the text of pieces from the middle of a text, with single spaces between words."""
        begins, mark = self._mark
        if begins:
            return ' '.join(self.decode(ids).split())
        tokens = self.convert_ids_to_tokens(ids)
        return ' '.join(' '.join(tokens).replace(f' {mark}', '').replace(mark, '').split())

    @property
    def pair_type(self):
        return self._frames[1].text_types[1]

    @functools.cached_property
    def _frames(self):
        """The special tokens that the post-processor puts around a text, and around a pair."""
        if self._rust.post_processor is None:
            return NO_FRAMES
        return self._probe(1), self._probe(2)

    def _probe(self, count):
        samples = itertools.chain('a1.', ids_of(self._rust))
        sample = next((text for text in samples if encode_rust(self._rust, [text])[0].ids), '')
        encoding = call_rust(self._rust.encode, *[sample] * count)
        gaps, text_types, position = [[] for _ in range(count + 1)], [0] * count, 0
        marks = zip(encoding.tokens, encoding.ids, encoding.type_ids)
        for mark, number in zip(marks, encoding.sequence_ids):
            if number is None:
                gaps[position].append(mark)
            else:
                position, text_types[number] = number + 1, mark[-1]
        tokens, ids, types = (tuple(tuple(m[n] for m in gap) for gap in gaps) for n in range(3))
        if not any(ids):  # language models, whose blocks have no types
            text_types = (0,) * count
        return Frame(tokens, ids, types, tuple(text_types), sum(map(len, ids)))

    # -- texts ----------------------------------------------------------------------------------

    def _pieces(self, texts, fast=False):
        """Return the pieces of each text, such as `LibraryPieces`; `fast` ones have only ids."""
        texts, splitter = [checked(text) for text in texts], self.splitter
        kinds = [LibraryPieces] * len(texts)
        for number, text in enumerate(texts if splitter else ()):
            if not any(mark in text for mark in self.added_tokens.values()):
                kinds[number] = SplitPieces if splitter.suits_rust(text) else self._aligned
        whole = [number for number, kind in enumerate(kinds) if kind is not self._aligned]
        apart = [number for number, kind in enumerate(kinds) if kind is self._aligned]
        found = dict(zip(whole, encode_rust(self._rust, [texts[n] for n in whole], fast)))
        if apart:
            words = [splitter.tokenize(texts[number]) for number in apart]
            encoded = encode_rust(self._of_words, words, fast, is_pretokenized=True)
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
    ) -> Encoding:
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
        pairs = [(text, pair)]
        [row] = self.encode_pairs(pairs, max_length, add_special_tokens, True, **special)
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
        for number, part in enumerate(re.split(f'({known})', checked(text))):
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
    ) -> BatchEncoding:
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
        texts = list_of_texts(texts, 'texts')
        others = [None] * len(texts) if pairs is None else list_of_texts(pairs, 'pairs')
        if len(others) != len(texts):
            raise InputError(f'{len(texts)} texts, but {len(others)} pairs')
        pairs = list(zip(texts, others))
        rows = [*self.encode_pairs(pairs, max_length, add_special_tokens, True, **special)]
        if not pad:
            return BatchEncoding(rows, None, None)
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
        return BatchEncoding(rows, length, pad_id or 0)

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
        pairs = [tuple(map(checked, pair)) for pair in pairs]
        ends = itertools.accumulate(sum(map(len, pair)) for pair in pairs)
        parts = [(index // _TEXTS, end // _CHARACTERS) for index, end in enumerate(ends)]
        for _, part in itertools.groupby(zip(parts, pairs), key=operator.itemgetter(0)):
            texts, longest = [texts for _, texts in part], 0
            flat = [text for pair in texts for text in pair]
            if max_length is None or max_length >= UNLIMITED or counts_lost:
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
                row = Encoding(frame, found, ids, lengths)
                longest = max(longest, len(row))
                yield row
            if max_length is None:
                warn_if_long(longest, self.max_len)

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
        row = Encoding(frame, (), texts, lengths)
        return row.input_ids, row.token_types, len(row) - len(frame.ids[-1]) - lengths[-1]

    def pair_size(self):
        """Return the number of special tokens of a pair."""
        return self._frames[1].size

    def _frames_with(self):
        """Return the special tokens around a text and a pair, with a family's options."""
        return self._frames

    # -- files ----------------------------------------------------------------------------------

    @classmethod
    def from_pretrained(
        cls: type[TokenizerType],
        name_or_dir: str | os.PathLike,
        dataset_name: str | None = None,
        root: str | os.PathLike | None = None,
        cache_dir: str | os.PathLike | None = None,
        **kwargs: Any,
    ) -> TokenizerType:
        """Open the tokenizer of a saved or released model.

        Parameters
        ----------
        name_or_dir : str or os.PathLike
            A folder with the files of :meth:`save_pretrained` or of a release, a vocabulary file, a
            model's name, or a place (see `model_zoo.pretrained.is_place`). A
            ``tokenizer_config.json`` beside them is read.
        dataset_name : str, optional
            Data set of a name's pretrained weights.
        root, cache_dir : str, optional
            The cache of pretrained files.
        **kwargs
            Arguments of the class, which override the files.

        Raises
        ------
        InputError
            If the files belong to another kind of tokenizer.
        CheckpointError
            If a pickle is damaged or has more than plain data.
        UnknownNameError
            If there's no such model.
        PretrainedNotFoundError
            If no source has the vocabulary.
        """
        name, root = os.fspath(name_or_dir), root or cache_dir
        is_file = os.path.isabs(name) or name.endswith(('.txt', '.json'))
        if is_file or names_files(name, weights=False):
            return open_tokenizer(find_vocab_file(path=name, root=root), (cls,), **kwargs)
        model, default_dataset = resolve_alias(name)
        file = find_vocab_file(model, dataset_name or default_dataset, root=root)
        return open_tokenizer(file, (cls,), **cls._released(name, file, kwargs))

    @classmethod
    def _released(cls, name, file, kwargs):
        """`kwargs` for the vocabulary of a model's name."""
        max_len = kwargs.get('max_len') or UNLIMITED
        return {**kwargs, 'max_len': min(max_len, cls.pretrained_max_len)}

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        """Make the tokenizer from a vocabulary that was found."""
        return cls.of_settings(cls.library_of(file), file.settings, **kwargs)

    @classmethod
    def library_of(cls, file):
        """Make the library's object of a `VocabFile`."""
        return open_rust(file.path)

    @classmethod
    def of_settings(cls, rust, settings, **kwargs):
        """Make the tokenizer of the library's object and a folder's `TokenizerSettings`."""
        names = [name for name in kwargs if name in (*SWITCHES, *PYTHON_OPTIONS)]
        changes = {name: kwargs.pop(name) for name in names}
        settings = dataclasses.replace(settings, fields={**settings.fields, **changes})
        rust = settings.applied_to(rust)
        vocab = rust.get_vocab()
        roles = {role: token for role, token in settings.roles.items() if token in vocab}
        given = {'special_tokens': roles, 'max_len': settings.max_len, **kwargs}
        tokenizer = cls.__new__(cls)  # its arguments are the files
        tokenizer._set_up(rust, **given)
        tokenizer._fields = settings.fields
        tokenizer._rust.encode_special_tokens = tokenizer.split_special_tokens
        return tokenizer

    @classmethod
    def exactly(cls, tokenizer):
        """Make the same tokenizer with the originals' methods, or return None."""

    def save_vocabulary(self, path):
        """Write ``tokenizer.json`` to a folder, or to a file; returns its path."""
        path = file_in(path, FILE_NAME)
        with atomic_write(path) as file:
            file.write(self._rust.to_str(pretty=True))
        return path

    def save_pretrained(self, directory):
        """Write the vocabulary and ``tokenizer_config.json``, for :meth:`from_pretrained`."""
        directory = make_writable_dir(directory)
        settings = self._settings()
        with kept_sums(directory) as written:
            written += self._save_files(directory)
            if settings is not None:
                written.append(os.path.join(directory, TOKENIZER_CONFIG))
                write_json(written[-1], settings)
            for name in BESIDE_VOCAB:  # of a former tokenizer
                path = os.path.join(directory, name)
                if path not in written and os.path.exists(path):
                    os.remove(path)
        return tuple(written)

    def _save_files(self, directory):
        return (self.save_vocabulary(directory),)

    def _settings(self):
        """Return the content of tokenizer_config.json, or None not to write it."""
        tokens = {f'{role}_token': token for role, token in self._roles.items() if token}
        return {**self._kept_fields(), **tokens}

    def _kept_fields(self):
        fields = {name: value for name, value in self._fields.items() if name != 'max_len'}
        return fields if self.max_len == UNLIMITED else {**fields, 'model_max_length': self.max_len}

    def to_library(self):
        """Return the tokenizer in the library `tokenizers`, for a ``tokenizer.json``.

        It adds the same special tokens around texts, and keeps those in a text whole. Texts may be
        split differently where the library's Unicode tables differ.
        """
        rust = Library.from_str(self._rust.to_str())
        known = self.added_tokens.values()
        rust.add_special_tokens([token for token in self._kept_whole() if token not in known])
        return rust

    def _kept_whole(self):
        """Return the tokens that stay whole only in the library."""
        return ()


#: the name of `Tokenizer` where it opens a ``tokenizer.json``
FileTokenizer = Tokenizer


def open_tokenizer(file, classes, **kwargs):
    """Open the tokenizer of a vocabulary's file, as it and the files beside it say.

    Parameters
    ----------
    file : VocabFile
    classes : sequence of type
        Classes of tokenizers; the first one for the file's kind reads it.
    **kwargs
        Arguments of the class, which override the files.

    Returns
    -------
    Tokenizer
        An object of one of `classes`, or a plain one if the files need it.

    Raises
    ------
    InputError
        If the files ask for an unknown tokenizer.
    """
    if file.kind == 'tokenizers' and classes[0].needs_python:
        file = file.older(classes[0].kinds)
    if file.kind in Tokenizer.kinds:
        tokenizer = Tokenizer.from_vocab_file(file, **kwargs)
        fields = tokenizer._fields
        for cls in classes:
            exact = cls.exactly(tokenizer)
            if exact is not None:
                return exact
        if fields.get('never_split') or fields.get('do_basic_tokenize') is False:
            raise InputError('do_basic_tokenize and never_split need a vocabulary of word pieces')
        return tokenizer
    settings, name = file.settings, file.settings.tokenizer_class
    for cls in classes:
        if file.kind in cls.kinds and (name is None or name in cls.names):
            tokenizer = cls.from_vocab_file(file, **kwargs)
            ids, roles = tokenizer.vocab.token_to_idx, tokenizer._roles
            known = {*roles.values(), *tokenizer.added_tokens.values()}
            added = settings.added.items()
            if (
                not known.issuperset(token for token, (_, n) in added if n or token in ids)
                or any(roles.get(role) != t for role, t in settings.roles.items() if t in ids)
                or (tokenizer.word_prefix and settings.fields.get('add_prefix_space'))
            ):  # made from the vocabulary alone, it would give other ids
                rust, max_len = tokenizer.to_library(), tokenizer.max_len
                return Tokenizer.of_settings(rust, settings, max_len=max_len)
            tokenizer._fields = settings.fields
            return tokenizer
    asked = f' of the class {name}Tokenizer' if name else ''
    merges = ' or '.join(BPE_NAMES.values())
    hint = f'put {merges} beside it' if file.kind == 'words' else 'save a tokenizer.json there'
    raise InputError(f'there is no tokenizer{asked} for {file.path!r}: {hint}')


def _as_id(value):
    """Return an id as an int; NDArrays have floats by default."""
    with contextlib.suppress(OverflowError, TypeError, ValueError):
        if int(value) == value:
            return int(value)
    raise InputError(f'{value!r:.80} is not a token id')


def _beginning(text, size, gap):
    """Return a text up to the first gap behind `size` characters."""
    found = gap.search(text, size) if len(text) > size else None
    return text[: found.start()] if found else text


def _cut(sizes, room):
    """Return the lengths of a text or a pair in `room`, by BERT's ``_truncate_seq_pair``."""
    if len(sizes) == 1:
        return [min(sizes[0], room)]
    first, second = sizes
    while first + second > room:
        if first > second:
            first -= 1
        else:
            second -= 1
    return [first, second]
