"""Text to BERT's ids and back: the originals' tokenizers, with offsets and batches.

Source: ``tokenization.py`` of google-research/bert, in the form of pytorch-pretrained-bert 0.6.2,
whose tokens these classes give for every string.

A text is first cut into chunks that can't influence one another: at white space and around CJK
ideographs. What has been made of a chunk is kept, since most chunks of a text were seen before.
New chunks are tokenized inside the Rust library `tokenizers`, a batch of them in parallel. That
library departs from the original on some input: characters that its Unicode tables don't know (or
know differently from Python's), the final sigma, special tokens in the text. Each character is
therefore checked once, when it is first seen, and of a chunk with one on which the two may differ
:class:`BasicTokenizer` finds the words in Python, and the library only their pieces.

A lone surrogate, which no encoding can carry, is replaced by U+FFFD in every class here; the basic
tokenizer drops U+FFFD as the original does, and without it the word is unknown.
"""

import collections
import itertools
import logging
import os

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from model_zoo.errors import InputError
from model_zoo.pretrained import resolve_alias
from model_zoo.tokenization import BasicTokenizer
from model_zoo.tokenization.text import (
    CHUNK,
    CONFIG_NAME,
    SPACED,
    UNLIMITED,
    ChunkCache,
    checked,
    cover,
    encode_rust,
    list_of_texts,
    read_max_len,
    warn_if_long,
)
from model_zoo.tokenization.vocab import SPECIAL_TOKENS, load_vocab, save_vocab
from model_zoo.tokenization.vocab_file import find_vocab_file
from model_zoo.util.files import atomic_write, make_writable_dir, write_json

__all__ = [
    'BasicTokenizer',
    'BatchEncoding',
    'BertSPTokenizer',
    'BertTokenizer',
    'Encoding',
    'WordpieceTokenizer',
    'open_tokenizer',
]

logger = logging.getLogger(__name__)

_SP_PREFIX = '\u2581'  # SentencePiece's sign for the space before a word
_BATCH = 1024  # texts whose new chunks are looked up together


class _GluonBasicTokenizer(BasicTokenizer):
    """GluonNLP's variant: drops fewer characters, and strips accents in cased text too."""

    _dropped = ('Cc', 'Cf')
    _strips_cased = True

    def __init__(self, do_lower_case):
        super().__init__(do_lower_case, never_split=())

    def suits_rust(self, text):
        return False


class WordpieceTokenizer:
    """Splits words into the longest pieces that the vocabulary has, from the left.

    Parameters
    ----------
    vocab : gluonnlp.vocab.Vocab, dict of str to int, or iterable of str
    unk_token : str
        Stands for a word that can't be put together from the vocabulary's pieces.
    max_input_chars_per_word : int
        Longer words are unknown.
    """

    def __init__(self, vocab, unk_token='[UNK]', max_input_chars_per_word=100):
        self.vocab = vocab
        self.unk_token = unk_token
        self.max_input_chars_per_word = max_input_chars_per_word
        ids = getattr(vocab, 'token_to_idx', vocab)
        if not isinstance(ids, dict):
            ids = {token: place for place, token in enumerate(ids)}
        ids = dict(ids)
        self._outside = None
        if unk_token not in ids:
            # The library wants to have it in the vocabulary; with a space in it, no word matches.
            self._outside = ' ' + unk_token
            ids[self._outside] = max(ids.values(), default=-1) + 1
        self.model = models.WordPiece(
            vocab=ids,
            unk_token=self._outside or unk_token,
            max_input_chars_per_word=max_input_chars_per_word,
        )
        self._rust = Tokenizer(self.model)

    def tokenize(self, text):
        """List of the pieces of the words of `text`, which white space separates."""
        words = checked(text).split()
        if not words:
            return []
        pieces = self.encode_words([words])[0].tokens
        if self._outside:
            pieces = [self.unk_token if piece == self._outside else piece for piece in pieces]
        return pieces

    def encode_words(self, batch):
        """Pieces of lists of words, as encodings of the library, offsets counted in each word."""
        return encode_rust(self._rust, batch, is_pretokenized=True)


# What a chunk of text becomes. One entry a piece in the first four, one a word in the last.
_Chunk = collections.namedtuple(
    '_Chunk',
    'ids tokens'
    ' spans'  # (start, end) in the chunk
    ' numbers'  # of the pieces' words in the chunk
    ' words',
)


class _Pieces:
    """One text's pieces, without special tokens."""

    __slots__ = ('chunks', 'ids', 'pattern', 'text')

    def __init__(self, text, pattern, chunks):
        self.text = text
        self.pattern = pattern  # that found the chunks in the text
        self.chunks = chunks
        self.ids = [i for chunk in chunks for i in chunk.ids]

    def tokens(self):
        return [token for chunk in self.chunks for token in chunk.tokens]

    def words(self):
        return [word for chunk in self.chunks for word in chunk.words]

    def offsets(self):
        offsets = []
        for match, chunk in zip(self.pattern.finditer(self.text), self.chunks):
            shift = match.start()
            offsets += [(start + shift, end + shift) for start, end in chunk.spans]
        return offsets

    def numbers(self):
        numbers, shift = [], 0
        for chunk in self.chunks:
            numbers += [number + shift for number in chunk.numbers]
            shift += len(chunk.words)
        return numbers


class Encoding:
    """Ids of one text or pair, with the way back to the text.

    Fields can be read as attributes or as items (``encoding['input_ids']``). Lists have one entry
    an id, special tokens included.

    Attributes
    ----------
    input_ids, token_types : np.ndarray
        int32, shape (length,). Token types are 0 up to the first [SEP] and 1 after it.
    valid_length : int
    truncated : int
        Number of pieces that `max_length` cut off; 0 where nothing was.
    tokens : list of str
    offsets : list of (int, int)
        Start and end in the text (in the pair's second text where the token type is 1), in Python's
        characters. An unknown word's token has the word's span. Special tokens have (0, 0).
    words : list of str
        Words of the basic tokenizer, of the whole text, cut or not; then those of the second text.
    word_ids : list of int or None
        Index into `words`; None for special tokens.
    """

    __slots__ = ('_head', '_ids', '_lengths', '_owner', '_parts', '_special', 'truncated')

    def __init__(self, owner, first, second, lengths, truncated, add_special_tokens):
        self._owner = owner
        self._parts = [part for part in (first, second) if part is not None]
        self._lengths = lengths
        self._special = add_special_tokens
        self.truncated = truncated
        self._ids = self._wrap(
            [part.ids for part in self._parts], owner.cls_token_id, owner.sep_token_id
        )
        self._head = lengths[0] + (2 if add_special_tokens else 0)

    def _wrap(self, parts, first, last):
        """Cut the lists to their lengths and put the special tokens' values around them."""
        result = [first] if self._special else []
        for number, (part, length) in enumerate(zip(parts, self._lengths)):
            if number == 1 and not length:
                break  # a second text without pieces has no [SEP] either
            result += part[:length]
            if self._special:
                result.append(last)
        return result

    @property
    def valid_length(self):
        return len(self._ids)

    @property
    def input_ids(self):
        return np.array(self._ids, dtype=np.int32)

    @property
    def token_types(self):
        types = np.zeros(self.valid_length, dtype=np.int32)
        types[self._head :] = 1
        return types

    @property
    def tokens(self):
        owner = self._owner
        return self._wrap([part.tokens() for part in self._parts], owner.cls_token, owner.sep_token)

    @property
    def offsets(self):
        return self._wrap([part.offsets() for part in self._parts], (0, 0), (0, 0))

    @property
    def words(self):
        return [word for part in self._parts for word in part.words()]

    @property
    def word_ids(self):
        numbers, shift = [], 0
        for part in self._parts:
            numbers.append([number + shift for number in part.numbers()])
            shift += len(part.words())
        return self._wrap(numbers, None, None)

    def __getitem__(self, name):
        return getattr(self, name)

    def __len__(self):
        return self.valid_length

    def __repr__(self):
        return f'Encoding(tokens={self.tokens}, truncated={self.truncated})'


class BatchEncoding:
    """Ids of a batch of texts or pairs.

    Fields can be read as attributes or as items; ``batch[i]`` is the :class:`Encoding` of row `i`.

    Attributes
    ----------
    input_ids, token_types : np.ndarray, or list of np.ndarray where the batch isn't padded
        int32, shape (batch, length). Padding has the id of the padding token and token type 0.
    valid_length, truncated : np.ndarray
        int32, shape (batch,). Length without padding; number of pieces that `max_length` cut off.
    tokens, offsets, words, word_ids : list of list
        Those of the rows (without padding), see :class:`Encoding`; made when asked for.
    """

    def __init__(self, rows, length, pad_id):
        self.rows = rows
        self.valid_length = np.array([row.valid_length for row in rows], dtype=np.int32)
        self.truncated = np.array([row.truncated for row in rows], dtype=np.int32)
        if length is None:
            self.input_ids = [row.input_ids for row in rows]
            self.token_types = [row.token_types for row in rows]
        else:
            self.input_ids = np.full((len(rows), length), pad_id, dtype=np.int32)
            self.token_types = np.zeros((len(rows), length), dtype=np.int32)
            for number, row in enumerate(rows):
                self.input_ids[number, : row.valid_length] = row._ids
                self.token_types[number, row._head : row.valid_length] = 1

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


def _cut_pair(first, second, room):
    """Lengths to which two texts are cut to fit `room`: the longer one loses a piece at a time.

    At equal lengths the second one does (``_truncate_seq_pair`` of the original
    ``run_classifier.py``, and of GluonNLP's BERTSentenceTransform).
    """
    while first + second > room:
        if first > second:
            first -= 1
        else:
            second -= 1
    return first, second


class _SubwordTokenizer(ChunkCache):
    """What tokenizers share once they can find the pieces of texts: ids, pairs, batches.

    Subclasses give ``_learn(chunks)``, a :data:`_Chunk` for each chunk of text.
    """

    _pattern = CHUNK

    def __init__(self, vocab, max_len=None):
        super().__init__()
        self.vocab = vocab
        self.max_len = UNLIMITED if max_len is None else max_len
        self.ids_to_tokens = collections.OrderedDict(enumerate(vocab.idx_to_token))
        self.unk_token = vocab.unknown_token
        self.pad_token = getattr(vocab, 'padding_token', None)
        self.mask_token = getattr(vocab, 'mask_token', None)
        # as BERTSentenceTransform does for vocabularies without them
        self.cls_token = getattr(vocab, 'cls_token', None) or getattr(vocab, 'bos_token', None)
        self.sep_token = getattr(vocab, 'sep_token', None) or getattr(vocab, 'eos_token', None)
        for name in ('unk', 'cls', 'sep', 'pad', 'mask'):
            token = getattr(self, f'{name}_token')
            if token is None and name in ('unk', 'cls', 'sep'):
                raise InputError(
                    f'the vocabulary ({len(vocab)} tokens) names no {name} token; give it one, '
                    f'for example by gluonnlp.vocab.BERTVocab'
                )
            setattr(self, f'{name}_token_id', None if token is None else vocab[token])

    def __call__(self, text):
        """Tokens of `text`, as GluonNLP's tokenizers are called."""
        return self.tokenize(text)

    def __len__(self):
        return len(self.vocab)

    def tokenize(self, text):
        """List of the pieces of `text`, without special tokens.

        Raises
        ------
        InputError
            If `text` isn't a str.
        """
        return self._pieces([text])[0].tokens()

    def convert_tokens_to_ids(self, tokens):
        """Ids of a list of tokens, or the id of one; more than `max_len` of them log a warning."""
        if isinstance(tokens, str):
            return self.vocab[tokens]
        ids = self.vocab[list(tokens)]
        warn_if_long(len(ids), self.max_len)
        return ids

    def convert_ids_to_tokens(self, ids):
        """Tokens of a sequence of ids, or the token of one.

        Raises
        ------
        InputError
            If an id isn't in the vocabulary.
        """
        if np.ndim(ids) == 0:
            return self.convert_ids_to_tokens([ids])[0]
        try:
            return [self.ids_to_tokens[int(i)] for i in ids]
        except KeyError as error:
            raise InputError(
                f'id {error.args[0]} is not in the vocabulary; its ids are 0 to {len(self) - 1}'
            ) from None

    def encode(self, text, pair=None, max_length=None, add_special_tokens=True):
        """Ids of ``[CLS] text [SEP]`` or ``[CLS] text [SEP] pair [SEP]``.

        A pair without any piece (an empty string) is left out together with its [SEP], as
        GluonNLP's BERTSentenceTransform and the original ``run_classifier.py`` do.

        Parameters
        ----------
        text : str
        pair : str, optional
        max_length : int, optional
            Most ids that the result may have, special tokens included. A text is cut at its end;
            of a pair the longer one loses its last piece until both fit, the second one at equal
            lengths. ``truncated`` of the result says how many pieces were lost.
            Without it nothing is cut, and more than `max_len` ids log a warning.
        add_special_tokens : bool

        Returns
        -------
        Encoding

        Raises
        ------
        InputError
            If a text isn't a str, or `max_length` has no room for the special tokens.
        """
        return self._rows([text], None if pair is None else [pair], max_length, add_special_tokens)[
            0
        ]

    def encode_batch(
        self,
        texts,
        pairs=None,
        max_length=None,
        pad=True,
        round_to=None,
        add_special_tokens=True,
    ):
        """Ids of many texts or pairs, see :meth:`encode`.

        Parameters
        ----------
        texts : list of str
        pairs : list of str, optional
            As many as `texts`.
        max_length : int, optional
            Most ids a row, special tokens included.
        pad : bool
            Whether to pad all rows to the length of the longest one.
        round_to : int, optional
            Round the padded length up to a multiple of this, but not over `max_length`; with
            ``round_to=max_length`` every batch has the same length.
        add_special_tokens : bool

        Returns
        -------
        BatchEncoding

        Raises
        ------
        InputError
            As :meth:`encode`; also if `texts` is one str, or `pairs` has another length, or
            `round_to` isn't positive, or padding is needed and the vocabulary has no padding token.
        """
        texts = list_of_texts(texts, 'texts')
        if pairs is not None:
            pairs = list_of_texts(pairs, 'pairs')
            if len(pairs) != len(texts):
                raise InputError(f'{len(texts)} texts but {len(pairs)} pairs; give as many of both')
        if round_to is not None and round_to < 1:
            raise InputError(f'round_to is {round_to}; it must be at least 1')
        rows = self._rows(texts, pairs, max_length, add_special_tokens)
        length = None
        if pad:
            length = max((row.valid_length for row in rows), default=0)
            if round_to is not None:
                length = -(-length // round_to) * round_to
                if max_length is not None:
                    length = min(length, max_length)
            if self.pad_token is None and any(row.valid_length < length for row in rows):
                raise InputError(
                    'the vocabulary names no padding token, so a batch of different lengths '
                    "can't be padded; make the vocabulary with padding_token=..., or use pad=False"
                )
        return BatchEncoding(rows, length, self.pad_token_id)

    def ids_of_chunks(self, chunks):
        """Ids of texts without white space in them; the quickest way to them, for large corpora.

        Those of a text are those of its chunks, one after the other. Nothing is kept of them.

        Parameters
        ----------
        chunks : list of str

        Returns
        -------
        list of sequence of int
        """
        return [made.ids for made in self._learn(chunks)]

    def _rows(self, texts, pairs, max_length, add_special_tokens):
        """An Encoding for each text or pair."""
        special = (2 if pairs is None else 3) if add_special_tokens else 0
        if max_length is not None and max_length < special:
            raise InputError(
                f'max_length is {max_length}; {"a text" if pairs is None else "a pair"} needs at '
                f'least {special} for its special tokens'
            )
        pieces = self._pieces(texts if pairs is None else [*texts, *pairs])
        rows = []
        for number in range(len(texts)):
            first = pieces[number]
            second = None if pairs is None else pieces[len(texts) + number]
            sizes = (len(first.ids), 0 if second is None else len(second.ids))
            lengths = sizes
            if max_length is not None:
                special = (3 if sizes[1] else 2) if add_special_tokens else 0
                lengths = _cut_pair(*sizes, max_length - special)
            truncated = sum(sizes) - sum(lengths)
            row = Encoding(self, first, second, lengths, truncated, add_special_tokens)
            if max_length is None:
                warn_if_long(row.valid_length, self.max_len)
            rows.append(row)
        return rows

    def _pieces(self, texts):
        """The _Pieces of each text."""
        pieces = []
        for start in range(0, len(texts), _BATCH):
            batch = [checked(text) for text in texts[start : start + _BATCH]]
            found = [self._pattern.findall(text) for text in batch]
            for text, chunks in zip(batch, self._look_up(found)):
                pieces.append(_Pieces(text, self._pattern, chunks))
        return pieces


class BertTokenizer(_SubwordTokenizer):
    """Basic and WordPiece tokenization, with the methods of the original and of GluonNLP.

    Gives the tokens of pytorch-pretrained-bert's ``BertTokenizer``, plus offsets and batches
    (:meth:`encode`, :meth:`encode_batch`). Works as the tokenizer of
    ``gluonnlp.data.BERTSentenceTransform``.

    Parameters
    ----------
    vocab_file : str or os.PathLike
        One token a line; see :func:`model_zoo.tokenization.vocab.load_vocab`.
        :meth:`from_vocab` takes a
        vocabulary object.
    do_lower_case : bool
        Lower-case and strip accents, for uncased models. Only in basic tokenization.
    max_len : int, optional
        Length from which a warning is logged; usually the number of the model's positions.
    do_basic_tokenize : bool
        False for text that is already split by white space; then only WordPiece is run.
    never_split : iterable of str
        See :class:`BasicTokenizer`.
    max_input_chars_per_word : int
        Longer words are unknown. GluonNLP's BERTTokenizer has 200 here.

    Attributes
    ----------
    vocab : gluonnlp.vocab.BERTVocab
        ``vocab[token]`` is an id.
    ids_to_tokens : OrderedDict
    cls_token, sep_token, pad_token, unk_token, mask_token : str or None
    cls_token_id, sep_token_id, pad_token_id, unk_token_id, mask_token_id : int or None

    Raises
    ------
    InputError
        If the file isn't a vocabulary of BERT.

    Examples
    --------
    >>> tokenizer = BertTokenizer.from_pretrained('all-MiniLM-L6-v2')
    >>> encoding = tokenizer.encode('A caf\\u00e9.')
    >>> encoding.tokens
    ['[CLS]', 'a', 'cafe', '.', '[SEP]']
    >>> encoding.offsets
    [(0, 0), (0, 1), (2, 6), (6, 7), (0, 0)]
    """

    def __init__(
        self,
        vocab_file,
        do_lower_case=True,
        max_len=None,
        do_basic_tokenize=True,
        never_split=SPECIAL_TOKENS,
        max_input_chars_per_word=100,
    ):
        vocab = load_vocab(vocab_file)
        self._set_up(
            vocab, do_lower_case, max_len, do_basic_tokenize, never_split, max_input_chars_per_word
        )

    def _set_up(
        self,
        vocab,
        do_lower_case=True,
        max_len=None,
        do_basic_tokenize=True,
        never_split=SPECIAL_TOKENS,
        max_input_chars_per_word=100,
    ):
        super().__init__(vocab, max_len)
        self.do_lower_case = bool(do_lower_case)
        self.do_basic_tokenize = bool(do_basic_tokenize)
        if not do_basic_tokenize:
            self._pattern = SPACED
        self.basic_tokenizer = BasicTokenizer(do_lower_case, never_split)
        self.wordpiece_tokenizer = WordpieceTokenizer(
            vocab, self.unk_token, max_input_chars_per_word
        )
        self._rust = Tokenizer(self.wordpiece_tokenizer.model)
        self._rust.normalizer = normalizers.BertNormalizer(lowercase=self.do_lower_case)
        self._rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    @classmethod
    def from_vocab(cls, vocab, do_lower_case=True, **kwargs):
        """Make the tokenizer from a vocabulary object, with its ids and its special tokens.

        Parameters
        ----------
        vocab : gluonnlp.vocab.Vocab
            Such as the one that comes with a model; [CLS] and [SEP] may be its bos and eos tokens.
        do_lower_case : bool
        **kwargs
            Further arguments of the class.

        Returns
        -------
        BertTokenizer

        Raises
        ------
        InputError
            If the vocabulary has no unknown, first or separating token.
        """
        tokenizer = cls.__new__(cls)
        tokenizer._set_up(vocab, do_lower_case, **kwargs)
        return tokenizer

    @classmethod
    def from_pretrained(cls, name_or_dir, dataset_name=None, root=None, **kwargs):
        """Make the tokenizer of a saved or of a released model.

        Parameters
        ----------
        name_or_dir : str or os.PathLike
            A directory with ``vocab.txt`` (or GluonNLP's vocabulary) and perhaps
            ``tokenizer_config.json``, of which `do_lower_case` and `max_len` (or
            `model_max_length`) are read; a vocabulary file; or a model's name, such as
            ``bert-base-uncased`` or ``bert_12_768_12``.
        dataset_name : str, optional
            Data set of the pretrained weights, where a name is given.
        root : str, optional
            Where pretrained files are kept.
        **kwargs
            Further arguments of the class, which win over ``tokenizer_config.json``. Where neither
            says `do_lower_case`, it is True if all tokens are in lower case. For a name it is what
            the vocabulary was made with; another value is overruled with a warning, as the
            original does.

        Returns
        -------
        BertTokenizer

        Raises
        ------
        InputError
            If the files aren't those of a tokenizer.
        UnknownNameError
            If there's no such model.
        PretrainedNotFoundError
            If no source has the vocabulary.
        """
        name = os.fspath(name_or_dir)
        if os.path.exists(name) or os.path.isabs(name) or name.endswith('.txt'):
            found = find_vocab_file(None, path=name)
            folder = name if os.path.isdir(name) else os.path.dirname(name)
            kwargs = {**read_max_len(folder), **kwargs}
            do_lower_case = kwargs.pop('do_lower_case', found.do_lower_case)
        else:
            model_name, default_dataset = resolve_alias(name)
            found = find_vocab_file(model_name, dataset_name or default_dataset, root=root)
            do_lower_case = found.do_lower_case
            if kwargs.pop('do_lower_case', do_lower_case) != do_lower_case:
                logger.warning(
                    '%s is %s: do_lower_case is set to %s',
                    name,
                    'uncased' if do_lower_case else 'cased',
                    do_lower_case,
                )
        if found.is_sentencepiece:
            raise InputError(
                f'{found.path!r} is a SentencePiece model; open it with BertSPTokenizer'
            )
        return cls.from_vocab(found.load(), do_lower_case, **kwargs)

    def save_vocabulary(self, vocab_path):
        """Write the vocabulary in the order of its ids.

        Parameters
        ----------
        vocab_path : str or os.PathLike
            A file, or a directory in which ``vocab.txt`` is written.

        Returns
        -------
        str
            Path of the file.
        """
        return save_vocab(self.vocab, vocab_path)

    def save_pretrained(self, directory):
        """Write ``vocab.txt`` and ``tokenizer_config.json``, for :meth:`from_pretrained`.

        Parameters
        ----------
        directory : str or os.PathLike
            Made where it is missing.

        Returns
        -------
        tuple of str
            Paths of both files.
        """
        directory = make_writable_dir(directory)
        config = {'do_lower_case': self.do_lower_case}
        if self.max_len != UNLIMITED:
            config['max_len'] = self.max_len
        config_path = os.path.join(directory, CONFIG_NAME)
        vocab_path = self.save_vocabulary(directory)
        write_json(config_path, config)
        return vocab_path, config_path

    def convert_tokens_to_ids(self, tokens):
        """Ids of a list of tokens, or the id of one.

        Raises
        ------
        InputError
            If a token isn't in the vocabulary (the original raises KeyError).
        """
        for token in [tokens] if isinstance(tokens, str) else tokens:
            if token not in self.vocab:
                raise InputError(
                    f'token {token!r} is not in the vocabulary; '
                    f'tokenize the text first, or use {self.unk_token}'
                )
        return super().convert_tokens_to_ids(tokens)

    @staticmethod
    def is_first_subword(token):
        """Whether `token` begins a word (doesn't start with ``##``)."""
        return not token.startswith('##')

    def ids_of_chunks(self, chunks):
        if not self.do_basic_tokenize:
            return super().ids_of_chunks(chunks)
        suits = list(map(self.basic_tokenizer.suits_rust, chunks))
        encode = getattr(self._rust, 'encode_batch_fast', self._rust.encode_batch)
        quick = encode(list(itertools.compress(chunks, suits)), add_special_tokens=False)
        slow = super().ids_of_chunks([c for c, suited in zip(chunks, suits) if not suited])
        quick, slow = iter(quick), iter(slow)
        return [next(quick).ids if suited else next(slow) for suited in suits]

    def _learn(self, chunks):
        learned = [None] * len(chunks)
        if self.do_basic_tokenize:
            suits = self.basic_tokenizer.suits_rust
            quick = [n for n, chunk in enumerate(chunks) if suits(chunk)]
            for n, encoding in zip(quick, encode_rust(self._rust, [chunks[n] for n in quick])):
                tokens = encoding.tokens
                if self.unk_token in tokens:
                    words = self.basic_tokenizer.rust_words(chunks[n])
                else:
                    words = _joined(tokens, encoding.word_ids)
                learned[n] = _chunk_of(encoding, encoding.offsets, words)
        left = [n for n, made in enumerate(learned) if made is None]
        aligned = [self._align(chunks[n]) for n in left]
        words = [[word for word, _ in pairs] for pairs in aligned]
        for n, pairs, encoding in zip(left, aligned, self.wordpiece_tokenizer.encode_words(words)):
            offsets = [
                cover(pairs[number][1], start, end)
                for number, (start, end) in zip(encoding.word_ids, encoding.offsets)
            ]
            learned[n] = _chunk_of(encoding, offsets, [word for word, _ in pairs])
        return learned

    def _align(self, chunk):
        if self.do_basic_tokenize:
            return self.basic_tokenizer.align(chunk)
        return [(chunk, [(place, place + 1) for place in range(len(chunk))])]


def _joined(tokens, numbers):
    """Words that the tokens are pieces of."""
    words = []
    for token, number in zip(tokens, numbers):
        if number == len(words):
            words.append(token)
        else:
            words[number] += token[2:]  # without ##
    return words


def _chunk_of(encoding, offsets, words):
    """_Chunk from an encoding of the library."""
    return _Chunk(
        tuple(encoding.ids),
        tuple(encoding.tokens),
        tuple(offsets),
        tuple(encoding.word_ids),
        tuple(words),
    )


class BertSPTokenizer(_SubwordTokenizer):
    """Basic tokenization, then SentencePiece on each word, as GluonNLP's BERTSPTokenizer.

    The basic tokenizer is GluonNLP's here: it drops only control and format characters, keeps no
    special tokens whole, and strips accents even where `lower` is False.

    Parameters
    ----------
    path : str or os.PathLike
        SentencePiece model.
    vocab : gluonnlp.vocab.BERTVocab, optional
        By default ``BERTVocab.from_sentencepiece(path, padding_token='[PAD]')``, or with the
        model's own padding token where it has one.
    num_best : int
        0 and 1: the best segmentation. Above 1: one drawn from so many best ones. Below 0: one
        drawn from all.
    alpha : float
        Inverse temperature of the draw.
    lower : bool
    max_input_chars_per_word : int
        There for GluonNLP's signature; SentencePiece takes words of any length, there and here.
    max_len : int, optional
        Length from which a warning is logged.

    Raises
    ------
    InputError
        If the model can't be read.
    """

    def __init__(
        self,
        path,
        vocab=None,
        num_best=0,
        alpha=1.0,
        lower=True,
        max_input_chars_per_word=200,
        max_len=None,
    ):
        import sentencepiece

        path = os.fspath(path)
        self._sentencepiece = sentencepiece.SentencePieceProcessor()
        try:
            self._sentencepiece.Load(path)
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError(f'{path!r} is not a readable SentencePiece model: {error}') from error
        if vocab is None:
            from gluonnlp.vocab import BERTVocab

            own = self._sentencepiece.pad_id()
            padding = '[PAD]' if own < 0 else self._sentencepiece.IdToPiece(own)
            vocab = BERTVocab.from_sentencepiece(path, padding_token=padding)
        super().__init__(vocab, max_len)
        self.do_lower_case = bool(lower)
        self.max_input_chars_per_word = max_input_chars_per_word
        self.basic_tokenizer = _GluonBasicTokenizer(lower)
        self._options = {}
        if not 0 <= num_best <= 1:
            nbest_size = max(num_best, -1)
            self._options = {'enable_sampling': True, 'nbest_size': nbest_size, 'alpha': alpha}

    @classmethod
    def from_pretrained(cls, name_or_dir, root=None, **kwargs):
        """Make the tokenizer of a directory of `save_pretrained`, or of a model's name.

        Parameters
        ----------
        name_or_dir : str or os.PathLike
        root : str, optional
            Where pretrained files are kept.
        **kwargs
            Further arguments of the class.

        Raises
        ------
        InputError
            If its vocabulary isn't a SentencePiece model.
        """
        name = os.fspath(name_or_dir)
        if os.path.exists(name):
            found = find_vocab_file(None, path=name)
        else:
            found = find_vocab_file(*resolve_alias(name), root=root)
        if not found.is_sentencepiece:
            raise InputError(f'{found.path!r} is a list of tokens; open it with BertTokenizer')
        return cls(found.path, **{'vocab': found.load(), 'lower': found.do_lower_case, **kwargs})

    def save_pretrained(self, directory):
        """Write ``vocab.spiece`` and ``tokenizer_config.json``, for :meth:`from_pretrained`.

        Parameters
        ----------
        directory : str or os.PathLike
            Made where it is missing.

        Returns
        -------
        tuple of str
            Paths of both files.
        """
        directory = make_writable_dir(directory)
        path = os.path.join(directory, 'vocab.spiece')
        with atomic_write(path, 'wb') as file:
            file.write(self._sentencepiece.serialized_model_proto())
        config_path = os.path.join(directory, CONFIG_NAME)
        config = {'do_lower_case': self.do_lower_case, 'padding_token': self.vocab.padding_token}
        write_json(config_path, config)
        return path, config_path

    @staticmethod
    def is_first_subword(token):
        """Whether `token` begins a word (starts with U+2581)."""
        return token.startswith(_SP_PREFIX)

    def _look_up(self, found):
        if self._options:  # each occurrence has its own draw
            return [self._learn(chunks) for chunks in found]
        return super()._look_up(found)

    def _learn(self, chunks):
        return [self._segment(self.basic_tokenizer.align(chunk)) for chunk in chunks]

    def _segment(self, words):
        """Pieces of words, each cut by SentencePiece."""
        tokens, spans, numbers = [], [], []
        for number, (word, places) in enumerate(words):
            pieces, offsets = _sentencepiece_offsets(self._sentencepiece, word, self._options)
            tokens += pieces
            spans += [cover(places, start, end) for start, end in offsets]
            numbers += [number] * len(pieces)
        return _Chunk(
            tuple(self.vocab[tokens]),
            tuple(tokens),
            tuple(spans),
            tuple(numbers),
            tuple(word for word, _ in words),
        )


def _sentencepiece_offsets(processor, word, options):
    """Pieces of `word` and their spans in its characters.

    A piece of nothing but the prefix has an empty span. Where one character became several pieces
    (a ligature), the library gives it to the last of them; here all of them have it.
    """
    if hasattr(processor, 'EncodeAsOffsetMapping'):
        result = processor.Encode(word, out_type='offset_mapping', **options)
        pieces, offsets = result['pieces'], list(result['offsets'])
    else:  # older versions of the library, which have this instead
        result = processor.Encode(word, out_type='immutable_proto', **options).pieces
        pieces = [piece.piece for piece in result]
        offsets = [(piece.begin, piece.end) for piece in result]
    for place in range(len(pieces) - 2, -1, -1):
        start, end = offsets[place]
        if start == end and pieces[place] != _SP_PREFIX:
            offsets[place] = start, offsets[place + 1][1]
    return pieces, offsets


def open_tokenizer(file, vocab=None, do_lower_case=None):
    """The tokenizer for a vocabulary's file, of the class that the file asks for.

    Parameters
    ----------
    file : model_zoo.tokenization.vocab_file.VocabFile
    vocab : gluonnlp.vocab.BERTVocab, optional
        What the file holds, where it has been loaded already.
    do_lower_case : bool, optional
        Default: what the vocabulary is for.

    Returns
    -------
    BertTokenizer or BertSPTokenizer
    """
    vocab = vocab or file.load()
    file = file.lowered(do_lower_case)
    if file.is_sentencepiece:
        return BertSPTokenizer(file.path, vocab, lower=file.do_lower_case)
    return BertTokenizer.from_vocab(vocab, do_lower_case=file.do_lower_case)
