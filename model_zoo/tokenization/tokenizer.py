"""The interface of all tokenizers: texts to ids and back, batches, and files."""

from __future__ import annotations

import abc
import functools
import itertools
import operator
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import mxnet as mx
import numpy as np
from tokenizers import processors

from ..checkpoint.readers import kept_sums
from ..errors import InputError
from ..pretrained import names_files, resolve_alias
from ..pretrained.files import BESIDE_VOCAB, BPE_NAMES, TOKENIZER_CONFIG
from ..util.files import make_writable_dir, write_json
from .encoding import UNLIMITED, BatchEncoding, Encoding, Frame, list_of_texts, warn_if_long
from .vocab import ROLES
from .vocab_file import find_vocab_file

if TYPE_CHECKING:
    from ..batches import Batch

__all__ = ['open_tokenizer', 'spell_word_pieces']

TokenizerType = TypeVar('TokenizerType')

# Texts, and characters of them, that are cut into pieces together: some 100 bytes for each.
_TEXTS, _CHARACTERS = 1024, 2**20


def _token(role):
    return property(lambda self: self._roles.get(role))


def _token_id(role):
    def find(self):
        token = self._roles.get(role)
        return None if token is None else self._id_of(token)

    return property(find)


class Tokenizer(abc.ABC):
    """Text to ids and back.

    A family's class sets `vocab`, and has `_pieces`, `from_vocab_file` and `save_vocabulary`. It
    may override `template`, `pair_type`, `decode`, and `_settings`, the options that are kept in
    files.

    Parameters
    ----------
    max_len : int, optional
        Longer results log a warning; usually the number of the model's positions.

    Attributes
    ----------
    vocab : gluonnlp.vocab.Vocab
        All tokens, with this tokenizer's ids.
    template : tuple of tuple of str
        Roles of the special tokens before a text, between the texts of a pair, and at the end.
        BERT's is ``(('cls',), ('sep',), ('sep',))``.
    pair_type : int
        Token type of a pair's second text, and of the tokens after it.
    pad_token, cls_token, sep_token, mask_token, unk_token, bos_token, eos_token : str or None
        None if the vocabulary has none.
    pad_token_id, cls_token_id, sep_token_id, mask_token_id, unk_token_id, bos_token_id, \
eos_token_id : int or None
    """

    template = ((), (), ())
    pair_type = 0
    #: `FileTokenizer`, which derives from this class
    library = None
    #: kinds of vocabularies (`VocabFile.kind`) that the class reads
    kinds = ()
    #: positions of the released models
    pretrained_max_len = UNLIMITED
    #: makes one that gives what a `FileTokenizer` of word pieces gives
    of_word_pieces = None
    #: whether the library's tokenizers of the kind are less exact
    needs_python = False
    #: what transformers calls tokenizers like this, without the ending ``Tokenizer``
    names = frozenset()
    #: tokenizer_config.json of the folder that the tokenizer is from
    _fields = {}
    #: whether special tokens are found wherever in a text, not only between spaces
    finds_marks = False
    #: what stands before a word that isn't the first, where the tokens of the two differ
    word_prefix = ''
    #: pads batches where the vocabulary has no token for it; None if it must have one
    _default_pad_id = None
    #: role -> the one whose token it has where the vocabulary has no other for it
    _stand_ins = {}
    #: roles that the vocabulary must have
    _needed = ()

    def __init__(self, max_len=None):
        self.max_len = UNLIMITED if max_len is None else max_len

    pad_token, pad_token_id = _token('pad'), _token_id('pad')
    cls_token, cls_token_id = _token('cls'), _token_id('cls')
    sep_token, sep_token_id = _token('sep'), _token_id('sep')
    mask_token, mask_token_id = _token('mask'), _token_id('mask')
    unk_token, unk_token_id = _token('unk'), _token_id('unk')
    bos_token, bos_token_id = _token('bos'), _token_id('bos')
    eos_token, eos_token_id = _token('eos'), _token_id('eos')

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
        **options: Any,
    ) -> Batch: ...

    def __call__(
        self,
        text,
        pair=None,
        *,
        padding=None,
        truncation=None,
        max_length=None,
        ctx=None,
        **options,
    ):
        """Tokens of a text, as in GluonNLP; with any other argument, a batch of texts for a model.

        Parameters
        ----------
        text : str or list of str
            A single str without any other argument gives its tokens.
        padding : bool or str, optional
            Pad rows to the longest one, or with 'max_length' to `max_length`. False refuses texts
            of different lengths.
        truncation : bool, optional
            Whether to truncate to `max_length`, by default the model's. Default: only if you give
            `max_length`.
        **options
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
        if isinstance(text, str) and not options and all(argument is None for argument in asked):
            return self.tokenize(text)
        if padding not in (None, True, False, 'longest', 'max_length'):
            raise InputError(f"padding is {padding!r:.80}: give True, False or 'max_length'")
        if truncation not in (None, True, False, 'longest_first'):
            raise InputError(f'truncation is {truncation!r:.80}: give True or False')
        most = self.max_len if self.max_len < UNLIMITED else None
        limit = most if max_length is None else max_length
        if padding == 'max_length':
            if limit is None:
                raise InputError("padding='max_length' needs `max_length`")
            options['round_to'] = limit
        cuts = max_length is not None if truncation is None else truncation
        batch = self.encode_batch(
            [text] if isinstance(text, str) else text,
            [pair] if isinstance(pair, str) else pair,
            limit if cuts else None,
            **options,
        )
        if not len(batch):
            raise InputError('there is no text in the batch')
        if padding is False and len(set(batch.valid_length.tolist())) > 1:
            raise InputError('texts of different lengths make no array: give padding=True')
        has_types = self.pair_type or batch.token_types.any()
        ids, types, length = (
            mx.nd.array(array, ctx=ctx or mx.cpu(), dtype=dtype)
            for array, dtype in (
                (batch.input_ids, 'int32'),
                (batch.token_types, 'int32'),
                (batch.valid_length, 'float32'),
            )
        )
        return Batch(ids, types if has_types else None, length)

    def __repr__(self):
        facts = [f'{len(self)} tokens']
        if getattr(self, 'do_lower_case', None) is not None:
            facts.append(f'do_lower_case={self.do_lower_case}')
        if self.max_len < UNLIMITED:
            facts.append(f'max_len={self.max_len}')
        return f'{type(self).__name__}({", ".join(facts)})'

    def _vocab_changed(self):
        for name in ('vocab', '_roles', '_frames'):
            self.__dict__.pop(name, None)

    @functools.cached_property
    def _roles(self):
        """The special tokens by their roles."""
        roles = self._find_roles()
        for role, other in self._stand_ins.items():
            roles[role] = roles.get(role) or roles.get(other)
        for role in self._needed:
            if roles.get(role) is None:
                raise InputError(
                    f'the vocabulary ({len(self)} tokens) names no {role} token: give it one, or '
                    "take the model's own vocabulary"
                )
        return roles

    def _find_roles(self):
        return {role: getattr(self.vocab, name, None) for role, name in ROLES.items()}

    def tokenize(self, text: str) -> list[str]:
        """List of the pieces of `text`, without special tokens."""
        return self._pieces([text])[0].tokens()

    def tokenize_with_offsets(self, text):
        """List of (piece, (start, end)) of `text`.

        A character with bytes in several pieces belongs to each of them.
        """
        (pieces,) = self._pieces([text])
        return list(zip(pieces.tokens(), pieces.offsets()))

    def convert_tokens_to_ids(self, tokens):
        """Ids of a list of tokens, or the id of one token; more than `max_len` log a warning."""
        if isinstance(tokens, str):
            return self._id_of(tokens)
        ids = [self._id_of(token) for token in tokens]
        warn_if_long(len(ids), self.max_len)
        return ids

    def convert_ids_to_tokens(self, ids, skip_special_tokens=False):
        """Tokens of a sequence or array of ids, or the token of a single id."""
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
        return {self._id_of(token) for token in self._roles.values() if token is not None}

    def _id_of(self, token):
        ids = self.vocab.token_to_idx
        number = ids.get(token, ids.get(self.unk_token))
        if number is None:
            raise InputError(
                f'token {token!r} is not in the vocabulary, which has no unknown token either; '
                'tokenize the text first'
            )
        return number

    def _token_of(self, token_id):
        tokens = self.vocab.idx_to_token
        if not 0 <= token_id < len(tokens):
            raise self._unknown_id(token_id)
        return tokens[token_id]

    def _unknown_id(self, token_id):
        last = len(self) - 1
        return InputError(f'id {token_id} is not in the vocabulary; its ids are 0 to {last}')

    def decode(self, ids, skip_special_tokens=False):
        """Text of a sequence or array of ids."""
        return ' '.join(self.convert_ids_to_tokens(ids, skip_special_tokens))

    # -- texts ----------------------------------------------------------------------------------

    @abc.abstractmethod
    def _pieces(self, texts):
        """The `Pieces` of each text."""

    def encode(
        self,
        text: str,
        pair: str | None = None,
        max_length: int | None = None,
        add_special_tokens: bool = True,
        **special: Any,
    ) -> Encoding:
        """Ids of a text or a pair, with the model's special tokens around them.

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
        pairs = None if pair is None else [pair]
        frames = self._around(add_special_tokens, **special)
        return self._rows([text], pairs, max_length, frames)[0]

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
        """Ids of many texts or pairs, see :meth:`encode`.

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
        if pairs is not None:
            pairs = list_of_texts(pairs, 'pairs')
            if len(pairs) != len(texts):
                raise InputError(f'{len(texts)} texts but {len(pairs)} pairs; give as many of both')
        if round_to is not None and round_to < 1:
            raise InputError(f'round_to is {round_to}; it must be at least 1')
        frames = self._around(add_special_tokens, **special)
        rows = self._rows(texts, pairs, max_length, frames)
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
            raise InputError(
                'the vocabulary names no padding token, so a batch of different lengths '
                "can't be padded; make the vocabulary with padding_token=..., or use pad=False"
            )
        return BatchEncoding(rows, length, pad_id or 0)

    def encode_pairs(self, pairs, max_length=None, add_special_tokens=True):
        """Yield the `Encoding` of each text or pair, see :meth:`encode`.

        Tasks and pipelines use this. A limited number of texts is tokenized together, which limits
        the memory.

        Parameters
        ----------
        pairs : sequence of (str, str or None)
            A text, and the second text of a pair.
        max_length, add_special_tokens
            As of :meth:`encode`.
        """
        ends = itertools.accumulate(len(text) + len(other or '') for text, other in pairs)
        parts = [(index // _TEXTS, end // _CHARACTERS) for index, end in enumerate(ends)]
        frames = self._around(add_special_tokens)
        for _, part in itertools.groupby(zip(parts, pairs), key=operator.itemgetter(0)):
            texts, others = map(list, zip(*(pair for _, pair in part)))
            if all(other is None for other in others):
                others = None
            else:  # a second text without a piece is left out
                others = [other or '' for other in others]
            yield from self._rows(texts, others, max_length, frames)

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
        texts = [ids] if pair_ids is None else [ids, pair_ids]
        frame = self._frames[len(texts) - 1]
        *before, after = frame.ids
        parts = [part for pair in zip(before, texts) for part in pair]
        joined = np.concatenate([*parts, after]).astype(np.int32)
        types = np.zeros_like(joined)
        frame.fill_types(types, list(map(len, texts)))
        return joined, types, sum(map(len, parts[:-1]))

    def pair_size(self):
        """Number of special tokens of a pair."""
        return self._frames[1].size

    def normalized(self, word):
        """A word in the spelling of its pieces."""
        return self.decode(self.encode(word, add_special_tokens=False)).strip()

    def spell(self, ids):
        """The text of pieces from the middle of a text, with single spaces between words."""
        return ' '.join(self.decode(ids).split())

    def _around(self, add_special_tokens):
        """The special tokens around a text and around a pair."""
        frames = self._frames
        if self._fields.get('truncation_side') == 'left':
            frames = tuple(frame._replace(cuts_left=True) for frame in frames)
        if add_special_tokens:
            return frames
        return tuple(frame.without_tokens() for frame in frames)

    @functools.cached_property
    def _frames(self):
        before, between, after = (
            tuple(self._roles[role] for role in roles) for roles in self.template
        )
        types = (0,) * len(before), (0,) * len(between), (self.pair_type,) * len(after)
        return (
            Frame.of((before, after), self._id_of),
            Frame.of((before, between, after), self._id_of, types, (0, self.pair_type)),
        )

    def _rows(self, texts, pairs, max_length, frames):
        """An Encoding for each text or pair."""
        if max_length is not None:
            needed = frames[0 if pairs is None else 1].size
            if max_length < needed:
                raise InputError(
                    f'max_length is {max_length}; {"a text" if pairs is None else "a pair"} needs '
                    f'at least {needed} for its special tokens'
                )
        pieces = self._pieces(texts if pairs is None else [*texts, *pairs])
        rows = []
        for number in range(len(texts)):
            parts = pieces[number :: len(texts)]
            ids = [part.ids() for part in parts]
            frame = frames[len(ids) - 1 if ids[-1] else 0]
            lengths = list(map(len, ids))
            if max_length is not None:
                room = max_length - frame.size
                if sum(lengths) > room:
                    lengths = _cut(lengths, room)
                    frame = frame if lengths[-1] else frames[0]
            rows.append(Encoding(frame, parts, ids, lengths))
        if max_length is None:
            warn_if_long(max(map(len, rows), default=0), self.max_len)
        return rows

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

    def with_settings(self, settings):
        """Keep a folder's `TokenizerSettings`, for saving; returns the tokenizer."""
        roles = {f'{role}_token': token for role, token in settings.roles.items()}
        self._fields = {**roles, **settings.fields}
        return self

    @classmethod
    def _released(cls, name, file, kwargs):
        """`kwargs` for the vocabulary of a model's name."""
        max_len = kwargs.get('max_len') or UNLIMITED
        return {**kwargs, 'max_len': min(max_len, cls.pretrained_max_len)}

    @classmethod
    @abc.abstractmethod
    def from_vocab_file(cls, file, **kwargs):
        """Make the tokenizer from a vocabulary that was found."""

    @abc.abstractmethod
    def save_vocabulary(self, path):
        """Write the vocabulary to a folder, or a file if it is a single one."""

    def save_pretrained(self, directory):
        """Write the vocabulary and ``tokenizer_config.json``, for :meth:`from_pretrained`."""
        directory = make_writable_dir(directory)
        settings = self._settings()
        with kept_sums(directory) as written:
            written += self._save_files(directory)
            if settings is not None:
                written.append(os.path.join(directory, TOKENIZER_CONFIG))
                write_json(written[-1], settings)
            for name in BESIDE_VOCAB:  # of another tokenizer that was here
                path = os.path.join(directory, name)
                if path not in written and os.path.exists(path):
                    os.remove(path)
        return tuple(written)

    def _save_files(self, directory):
        return (self.save_vocabulary(directory),)

    def _settings(self):
        """The content of tokenizer_config.json, or None not to write it."""
        fields = {name: value for name, value in self._fields.items() if name != 'max_len'}
        return fields if self.max_len == UNLIMITED else {**fields, 'model_max_length': self.max_len}

    def to_library(self):
        """The tokenizer in the library `tokenizers`, for a ``tokenizer.json``.

        It adds the same special tokens around texts, and keeps those in a text whole. Texts may be
        split differently where the library's Unicode tables differ.
        """
        rust = self._to_library()
        special = {token for token in self._library_tokens() if token is not None}
        rust.add_special_tokens(sorted(special))
        if any(self.template):
            rust.post_processor = self._template_processing()
        return rust

    def _to_library(self):
        raise InputError(f'a {type(self).__name__} cannot be written as a tokenizer.json')

    def _library_tokens(self):
        """Tokens that stay whole in a text."""
        return self._roles.values()

    def _template_processing(self):
        before, between, after = ([self._roles[role] for role in part] for part in self.template)
        end = f':{self.pair_type}'  # of the second text's pieces
        return processors.TemplateProcessing(
            single=[*before, '$A', *after],
            pair=[*before, '$A', *between, f'$B{end}', *(token + end for token in after)],
            special_tokens=[(token, self._id_of(token)) for token in {*before, *between, *after}],
        )


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
        Of one of `classes`, or a `FileTokenizer` where only that gives the ids.

    Raises
    ------
    InputError
        If the files ask for a tokenizer that there isn't.
    """
    file = file.for_classes(classes)
    library = Tokenizer.library
    if file.kind in library.kinds:
        return library.from_vocab_file(file, **kwargs).as_one_of(classes)
    name = file.settings.tokenizer_class
    for cls in classes:
        if file.kind in cls.kinds and (name is None or name in cls.names):
            tokenizer = cls.from_vocab_file(file, **kwargs)
            if isinstance(tokenizer, library):
                return tokenizer
            if file.settings.ask_more_of(tokenizer):
                rust, max_len = tokenizer.to_library(), tokenizer.max_len
                return library.of_settings(rust, file.settings, max_len=max_len)
            return tokenizer.with_settings(file.settings)
    asked = f' of the class {name}Tokenizer' if name else ''
    merges = ' or '.join(BPE_NAMES.values())
    hint = f'put {merges} beside it' if file.kind == 'words' else 'or save a tokenizer.json there'
    raise InputError(
        f'there is no tokenizer{asked} for {file.path!r}: give a vocabulary of another kind, {hint}'
    )


def spell_word_pieces(tokens, mark='##'):
    """The text of word pieces, with single spaces between words."""
    return ' '.join(' '.join(tokens).replace(f' {mark}', '').replace(mark, '').split())


def _as_id(value):
    """An id as an int; NDArrays have floats by default."""
    try:
        number = int(value)
        if number == value:
            return number
    except (OverflowError, TypeError, ValueError):
        pass
    raise InputError(f'{value!r:.80} is not a token id')


def _cut(sizes, room):
    """Lengths to which a text or a pair is cut to fit `room`, by BERT's ``_truncate_seq_pair``."""
    if len(sizes) == 1:
        return [min(sizes[0], room)]
    first, second = sizes
    while first + second > room:
        if first > second:
            first -= 1
        else:
            second -= 1
    return [first, second]
