"""Text to BERT's ids and back: the originals' tokenizers, with offsets and batches.

Source: ``tokenization.py`` of google-research/bert, in the form of pytorch-pretrained-bert 0.6.2,
whose tokens these classes give for every string.

Texts are tokenized inside the Rust library `tokenizers`, a batch of them in parallel. That library
departs from the original on some input: characters that its Unicode tables don't know (or know
differently from Python's), the final sigma, special tokens in the text. Each character is therefore
checked once, when it is first seen. In a text with one on which the two may differ
:class:`BasicTokenizer` finds the words in Python, and the library only their pieces.

A lone surrogate, which no encoding can carry, is replaced by U+FFFD in every class here; the basic
tokenizer drops U+FFFD as the original does, and without it the word is unknown.
"""

import collections
import functools
import logging
import os

from gluonnlp.vocab import Vocab
from tokenizers import Tokenizer as Library
from tokenizers import decoders, pre_tokenizers, processors

from model_zoo.errors import InputError, reporting
from model_zoo.tokenization import BasicTokenizer, Tokenizer, WordpieceTokenizer
from model_zoo.tokenization.basic import GluonBasicTokenizer
from model_zoo.tokenization.encoding import UNLIMITED, Frame, ListedPieces, checked, cover
from model_zoo.tokenization.library_files import PREFIX, split_at_spaces, word_piece_options
from model_zoo.tokenization.settings import PYTHON_OPTIONS
from model_zoo.tokenization.vocab import SPECIAL_TOKENS, load_vocab, save_vocab

from .sentence_pieces import open_model, save_model, segment

__all__ = ['BasicTokenizer', 'BertSPTokenizer', 'BertTokenizer', 'WordpieceTokenizer']


class BertTokenizerBase(Tokenizer):
    """A vocabulary with BERT's special tokens, which stand around texts as BERT has them."""

    word_prefix = ''
    splits_at_spaces = True
    # as BERTSentenceTransform does for vocabularies without them
    _stand_ins = {'cls': 'bos', 'sep': 'eos'}
    _needed = ('unk', 'cls', 'sep')

    @functools.cached_property
    def _frames(self):
        cls, sep = (self.cls_token,), (self.sep_token,)
        pair = Frame.of((cls, sep, sep), self._id_of, ((0,), (0,), (1,)), (0, 1))
        return Frame.of((cls, sep), self._id_of), pair

    @functools.cached_property
    def ids_to_tokens(self):
        """Ids to tokens, a dict in the order of the ids."""
        return collections.OrderedDict(enumerate(self.vocab.idx_to_token))

    def normalized(self, word):
        return ' '.join(self.basic_tokenizer.tokenize(word))


class BertSPTokenizer(BertTokenizerBase):
    """Basic tokenization, then SentencePiece on each word, as GluonNLP's BERTSPTokenizer.

    The basic tokenizer is GluonNLP's here: it drops only control and format characters, keeps no
    special tokens whole, and strips accents even where `lower` is False.

    Parameters
    ----------
    path : str or os.PathLike
        SentencePiece model.
    vocab : gluonnlp.vocab.BERTVocab, optional
        By default ``BERTVocab.from_sentencepiece(path, padding_token='[PAD]')``, or with the
        model's own padding token if it has one.
    num_best : int
        0 and 1: the best segmentation. Above 1: sampled from this many best ones. Below 0: sampled
        from all.
    alpha : float
        Inverse temperature of the sampling.
    max_input_chars_per_word : int
        Only for GluonNLP's signature; SentencePiece takes words of any length.
    """

    kinds, names = ('sentencepiece',), frozenset(['BertSP'])
    _mark = True, PREFIX

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
        self._sentencepiece = open_model(path)
        if vocab is None:
            from gluonnlp.vocab import BERTVocab

            # these libraries check little of what they read
            with reporting(f'{os.fspath(path)!r} has no vocabulary', errors=Exception):
                pad_id = self._sentencepiece.pad_id()
                padding = '[PAD]' if pad_id < 0 else self._sentencepiece.IdToPiece(pad_id)
                vocab = BERTVocab.from_sentencepiece(os.fspath(path), padding_token=padding)
        self.vocab = vocab
        self.max_len = max_len or UNLIMITED
        self.do_lower_case = bool(lower)
        self.max_input_chars_per_word = max_input_chars_per_word
        self.basic_tokenizer = GluonBasicTokenizer(lower)
        self._options = {}
        if not 0 <= num_best <= 1:
            nbest_size = max(num_best, -1)
            self._options = {'enable_sampling': True, 'nbest_size': nbest_size, 'alpha': alpha}
            self.splits_at_spaces = False  # a word is parted in another way each time

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        return cls(file.path, **{'vocab': file.vocab, 'lower': file.do_lower_case, **kwargs})

    def save_vocabulary(self, path):
        """Write the SentencePiece model."""
        return save_model(self._sentencepiece, path, 'vocab.spiece')

    def _settings(self):
        return {'do_lower_case': self.do_lower_case, 'padding_token': self.vocab.padding_token}

    def to_library(self):
        raise InputError(f'a {type(self).__name__} cannot be written as a tokenizer.json')

    def _join(self, tokens, between):
        return ''.join(tokens).replace(PREFIX, ' ').strip()

    def _pieces(self, texts, fast=False):
        return [self._segment(self.basic_tokenizer.align(checked(text))) for text in texts]

    def _segment(self, words):
        """Return the pieces of words, each cut by SentencePiece."""
        tokens, spans, numbers = [], [], []
        for number, (word, chars) in enumerate(words):
            pieces, offsets = segment(self._sentencepiece, word, **self._options)
            tokens += pieces
            spans += [cover(chars, start, end) for start, end in offsets]
            numbers += [number] * len(pieces)
        return ListedPieces(self.vocab[tokens], tokens, spans, numbers, [word for word, _ in words])


logger = logging.getLogger(__name__)
_SWITCHES = ('do_basic_tokenize', 'strip_accents', 'tokenize_chinese_chars')


class BertTokenizer(BertTokenizerBase):
    """Basic and WordPiece tokenization, with the methods of the original and of GluonNLP.

    Gives the tokens of pytorch-pretrained-bert's ``BertTokenizer``, plus offsets and batches
    (:meth:`encode`, :meth:`encode_batch`). Works as the tokenizer of
    ``gluonnlp.data.BERTSentenceTransform``. Batches of a vocabulary without padding token are
    padded with id 0.

    Parameters
    ----------
    vocab_file : str or os.PathLike
        One token per line; see :func:`model_zoo.tokenization.vocab.load_vocab`. :meth:`from_vocab`
        takes a vocabulary object.
    do_lower_case : bool
        Lower-case and strip accents, for uncased models. Only in basic tokenization.
        :meth:`from_pretrained` takes it from ``tokenizer_config.json``; without that, it is True if
        all tokens are in lower case. For a model's name the vocabulary decides; another value is
        overridden with a warning, as in the original.
    max_len : int, optional
        As in `Tokenizer`; for a model's name it is at most 512.
    do_basic_tokenize : bool
        False for text that is already split by white space; then only WordPiece is run.
    max_input_chars_per_word : int
        Longer words are unknown. GluonNLP's BERTTokenizer has 200 here.
    never_split, strip_accents, tokenize_chinese_chars
        As of `BasicTokenizer`.

    Examples
    --------
    >>> tokenizer = BertTokenizer.from_pretrained('all-MiniLM-L6-v2')
    >>> encoding = tokenizer.encode('A caf\\u00e9.')
    >>> encoding.tokens
    ['[CLS]', 'a', 'cafe', '.', '[SEP]']
    >>> encoding.offsets
    [(0, 0), (0, 1), (2, 6), (6, 7), (0, 0)]
    """

    kinds = ('wordpiece', 'gluonnlp')
    names = frozenset(('Bert', 'DistilBert', 'Electra', 'MobileBert', 'ConvBert', 'LayoutLM'))
    pretrained_max_len = 512
    _mark = False, '##'
    _default_pad_id = 0  # as the originals' programs have it; the model doesn't look at it

    def __init__(
        self,
        vocab_file,
        do_lower_case=True,
        max_len=None,
        do_basic_tokenize=True,
        never_split=SPECIAL_TOKENS,
        max_input_chars_per_word=100,
        strip_accents=None,
        tokenize_chinese_chars=True,
    ):
        self.vocab = vocab_file if isinstance(vocab_file, Vocab) else load_vocab(vocab_file)
        self.do_lower_case = bool(do_lower_case)
        self.do_basic_tokenize = bool(do_basic_tokenize)
        basic = do_lower_case, never_split, strip_accents, tokenize_chinese_chars
        self.basic_tokenizer = BasicTokenizer(*basic)
        word_pieces = self.vocab, self._roles['unk'], max_input_chars_per_word
        self.wordpiece_tokenizer = WordpieceTokenizer(*word_pieces)
        rust = Library(self.wordpiece_tokenizer.model)
        if do_basic_tokenize:
            self.splitter = self.basic_tokenizer
            rust.normalizer = self.basic_tokenizer.normalizer
            rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        else:
            rust.pre_tokenizer = split_at_spaces()
        cls, sep = self._roles['cls'], self._roles['sep']
        single, ids = [cls, '$A', sep], [(token, self.vocab[token]) for token in {cls, sep}]
        pair = [*single, '$B:1', f'{sep}:1']
        rust.post_processor = processors.TemplateProcessing(single, pair, special_tokens=ids)
        rust.decoder = decoders.WordPiece()
        self._rust, self.max_len = rust, max_len or UNLIMITED

    @classmethod
    def from_vocab(cls, vocab, do_lower_case=True, **kwargs):
        """Make the tokenizer from a vocabulary object, with its ids and its special tokens.

        The vocabulary may be the one that comes with a model; [CLS] and [SEP] may be its bos and
        eos tokens.
        """
        return cls(vocab, do_lower_case, **kwargs)

    @classmethod
    def _released(cls, name, file, kwargs):
        lower = file.do_lower_case
        if kwargs.get('do_lower_case', lower) != lower:
            kind = 'uncased' if lower else 'cased'
            logger.warning('%s is %s: do_lower_case is set to %s', name, kind, lower)
        return {**super()._released(name, file, kwargs), 'do_lower_case': lower}

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        settings = file.settings
        fields = settings.fields
        given = {name: fields[name] for name in _SWITCHES if fields.get(name) is not None}
        given.update(do_lower_case=file.do_lower_case, max_len=settings.max_len)
        never_split = fields.get('never_split') or ()
        given['never_split'] = (*(settings.roles.values() or SPECIAL_TOKENS), *never_split)
        return cls(file.vocab, **{**given, **kwargs})

    @classmethod
    def exactly(cls, tokenizer):
        fields, roles = tokenizer._fields, {r: t for r, t in tokenizer._roles.items() if t}
        options = word_piece_options(tokenizer._rust)
        if options is None or not roles.keys() >= {*cls._needed}:
            return None
        if {*tokenizer.added_tokens.values()} - {*roles.values()}:
            return None
        options.update({name: fields[name] for name in PYTHON_OPTIONS if fields.get(name)})
        options['do_basic_tokenize'] = fields.get('do_basic_tokenize') is not False
        options['never_split'] = (*roles.values(), *options.get('never_split', ()))
        vocab = load_vocab(tokenizer.vocab.idx_to_token, roles)
        exact = cls.from_vocab(vocab, max_len=tokenizer.max_len, **options)
        if exact.do_basic_tokenize:  # its special tokens are found everywhere
            exact._rust, exact.added_tokens = tokenizer._rust, tokenizer.added_tokens
            exact._special = tokenizer._special
        exact._fields = fields
        return exact if exact._frames == tokenizer._frames else None

    def save_vocabulary(self, vocab_path):
        """Write the vocabulary in the order of its ids."""
        return save_vocab(self.vocab, vocab_path)

    def _settings(self):
        settings = {**self._kept_fields(), 'do_lower_case': self.do_lower_case}
        basic = self.basic_tokenizer
        for name, value, default in (
            ('do_basic_tokenize', self.do_basic_tokenize, True),
            ('strip_accents', basic.strip_accents, self.do_lower_case),
            ('tokenize_chinese_chars', basic.tokenize_chinese_chars, True),
        ):
            if value != default or name in settings:
                settings[name] = value
        return settings

    def _kept_whole(self):
        return sorted(token for token in self._roles.values() if token is not None)

    def _join(self, tokens, between):
        return decoders.WordPiece().decode(list(tokens))

    def _id_of(self, token):
        if token not in self.vocab:  # KeyError in the original
            raise InputError(f'token {token!r} is not in the vocabulary: tokenize the text first')
        return self.vocab[token]
