"""Text to the ids of RoBERTa, XLM-R, MPNet, ALBERT, DeBERTa and ModernBERT, and back."""

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Library

from model_zoo.errors import InputError
from model_zoo.tokenization import Tokenizer
from model_zoo.tokenization.bpe import byte_level, read_pairs
from model_zoo.tokenization.library_files import PREFIX
from model_zoo.tokenization.vocab import load_vocab

from .sentence_pieces import open_model, pieces_of, unigrams

__all__ = [
    'AlbertTokenizer',
    'DebertaV2Tokenizer',
    'MPNetTokenizer',
    'ModernBertTokenizer',
    'RobertaTokenizer',
    'XLMRobertaTokenizer',
]


class _Made(Tokenizer):
    """A tokenizer that the library has whole.

    A subclass has ``_make(vocab_file, ...)``, which makes the library's object of the vocabulary's
    files, and of options.
    """

    pretrained_max_len = 512
    #: options of `_make` that a folder's settings may have
    _options = ()

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        given = {**file.settings.fields, **kwargs}
        options = {name: given[name] for name in cls._options if given.get(name) is not None}
        files = (file.path, file.merges_path) if cls.kinds == ('bpe',) else (file.path,)
        rust = cls._make(*files, **options)
        own = {*cls._options} - {'do_lower_case'}  # which any tokenizer takes
        others = {name: value for name, value in kwargs.items() if name not in own}
        return cls.of_settings(rust, file.settings, **others)


class RobertaTokenizer(_Made):
    """Byte pair encoding of a text's UTF-8 bytes, with RoBERTa's special tokens around it.

    Gives the ids of transformers' ``RobertaTokenizer``: ``<s> text </s>``, and ``<s> text </s></s>
    pair </s>``, without token types. The special tokens are recognized in texts.

    Parameters
    ----------
    vocab_file, merges_file : str or os.PathLike
        ``vocab.json`` and ``merges.txt``.
    max_len : int, optional
        As of `Tokenizer`.

    Examples
    --------
    ``RobertaTokenizer.from_pretrained('roberta-base').encode('Hello, <mask>!').tokens`` is
    ``['<s>', 'Hello', ',', '<mask>', '!', '</s>']``.
    """

    kinds, names = ('bpe',), frozenset(('Roberta', 'Longformer', 'Bart'))

    def __init__(self, vocab_file, merges_file, max_len=None):
        self._set_up(self._make(vocab_file, merges_file), max_len=max_len)

    @staticmethod
    def _make(vocab_file, merges_file):
        rust = byte_level(read_pairs(vocab_file, merges_file)[-1])
        _add_special_tokens(rust, '<s>', '<pad>', '</s>', '<unk>', '<mask>')
        _surround_as_roberta(rust)
        return rust


class XLMRobertaTokenizer(_Made):
    """Sentence pieces of a text in any language, with XLM-R's special tokens around it.

    Gives the ids of transformers' ``XLMRobertaTokenizer``: fairseq's, not SentencePiece's own.

    Parameters
    ----------
    vocab_file : str or os.PathLike
        SentencePiece model.
    max_len : int, optional
        As of `Tokenizer`.
    """

    kinds, names = ('fairseq', 'sentencepiece'), frozenset(['XLMRoberta'])

    def __init__(self, vocab_file, max_len=None):
        self._set_up(self._make(vocab_file), max_len=max_len)

    @staticmethod
    def _make(vocab_file):
        processor, special = open_model(vocab_file), ('<s>', '<pad>', '</s>', '<unk>', '<mask>')
        tokens = [*special[:-1], *pieces_of(processor)[3:], special[-1]]  # fairseq's order
        strip = normalizers.Strip(left=False, right=True)
        rust = unigrams(processor, tokens, after=[strip, _joining_spaces(PREFIX)])
        _add_special_tokens(rust, *special)
        _surround(rust, '<s> $A </s>', '</s> $B </s>')
        return rust


class MPNetTokenizer(_Made):
    """Word pieces, as `BertTokenizer` makes them, with RoBERTa's special tokens around them.

    Gives the ids of transformers' ``MPNetTokenizer``: ``<s> text </s>``, and ``<s> text </s></s>
    pair </s>``, without token types. Unknown words are ``[UNK]``.

    Parameters
    ----------
    vocab_file : str or os.PathLike
        ``vocab.txt``.
    do_lower_case : bool
        Lower-case, and strip accents.
    max_len : int, optional
        As of `Tokenizer`.
    """

    kinds, names = ('wordpiece',), frozenset(['MPNet'])

    def __init__(self, vocab_file, do_lower_case=True, max_len=None):
        self._set_up(self._make(vocab_file, do_lower_case), max_len=max_len)

    @staticmethod
    def _make(vocab_file, do_lower_case=True):
        roles = {'cls': '<s>', 'pad': '<pad>', 'sep': '</s>', 'mask': '<mask>'}
        ids = load_vocab(vocab_file, roles).token_to_idx
        rust = Library(models.WordPiece(dict(ids), unk_token='[UNK]'))
        rust.normalizer = normalizers.BertNormalizer(lowercase=do_lower_case)
        rust.pre_tokenizer, rust.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
        _add_special_tokens(rust, '<s>', '<pad>', '</s>', '[UNK]', '<mask>')
        _surround_as_roberta(rust)
        return rust


class AlbertTokenizer(_Made):
    """Sentence pieces of a lowered text without accents, with BERT's special tokens around it.

    Gives the ids of the ``tokenizer.json`` of the released models, which are SentencePiece's own.

    Parameters
    ----------
    vocab_file : str or os.PathLike
        SentencePiece model.
    do_lower_case, keep_accents : bool
        Whether texts are lowered, and keep their accents.
    max_len : int, optional
        As of `Tokenizer`.
    """

    kinds, names = ('sentencepiece',), frozenset(['Albert'])
    _options = ('do_lower_case', 'keep_accents')

    def __init__(self, vocab_file, do_lower_case=True, keep_accents=False, max_len=None):
        self._set_up(self._make(vocab_file, do_lower_case, keep_accents), max_len=max_len)

    @staticmethod
    def _make(vocab_file, do_lower_case=True, keep_accents=False):
        processor = open_model(vocab_file)
        before = [normalizers.Replace(each, '"') for each in ('``', "''")]
        if not keep_accents:
            before += normalizers.NFKD(), normalizers.StripAccents()
        if do_lower_case:
            before.append(normalizers.Lowercase())
        rust = unigrams(processor, pieces_of(processor), before)
        _split_before(rust, pre_tokenizers.WhitespaceSplit())
        _add_special_tokens(rust, '<pad>', '<unk>', '[CLS]', '[SEP]', '[MASK]')
        _surround(rust, '[CLS] $A [SEP]', '$B:1 [SEP]:1')
        return rust


class DebertaV2Tokenizer(_Made):
    """Sentence pieces, with BERT's special tokens around a text.

    Gives SentencePiece's own ids, as the ``tokenizer.json`` of released models does; [MASK] comes
    last. The second text of a pair has the token type 1.

    Parameters
    ----------
    vocab_file : str or os.PathLike
        SentencePiece model.
    do_lower_case, split_by_punct : bool
        Whether texts are lowered, and split at punctuation.
    max_len : int, optional
        As of `Tokenizer`.
    """

    kinds, names = ('sentencepiece',), frozenset(['DebertaV2'])
    _options = ('do_lower_case', 'split_by_punct')

    def __init__(self, vocab_file, do_lower_case=False, split_by_punct=False, max_len=None):
        self._set_up(self._make(vocab_file, do_lower_case, split_by_punct), max_len=max_len)

    @staticmethod
    def _make(vocab_file, do_lower_case=False, split_by_punct=False):
        processor, special = open_model(vocab_file), ('[PAD]', '[CLS]', '[SEP]', '[UNK]')
        before = [*([normalizers.Lowercase()] if do_lower_case else []), normalizers.Strip()]
        rust = unigrams(processor, pieces_of(processor), before, [_joining_spaces(' ')])
        if split_by_punct:
            _split_before(rust, pre_tokenizers.Punctuation('isolated'))
        _check_tokens(rust, special)
        rust.add_special_tokens([*special, '[MASK]'])
        _surround(rust, '[CLS] $A [SEP]', '$B:1 [SEP]:1')
        return rust


class ModernBertTokenizer(_Made):
    """Byte pairs of a text in Unicode's NFC, with BERT's special tokens around it.

    Gives the ids of the ``tokenizer.json`` of the released models. There are no token types.

    Parameters
    ----------
    vocab_file, merges_file : str or os.PathLike
        ``vocab.json`` and ``merges.txt``.
    max_len : int, optional
        As of `Tokenizer`.
    """

    kinds, names = ('bpe',), frozenset(['ModernBert'])
    pretrained_max_len = 8192

    def __init__(self, vocab_file, merges_file, max_len=None):
        self._set_up(self._make(vocab_file, merges_file), max_len=max_len)

    @staticmethod
    def _make(vocab_file, merges_file):
        rust = byte_level(read_pairs(vocab_file, merges_file)[-1])
        rust.normalizer = normalizers.NFC()
        _add_special_tokens(rust, '[UNK]', '[CLS]', '[SEP]', '[PAD]', '[MASK]')
        _surround(rust, '[CLS] $A [SEP]', '$B [SEP]')
        return rust


def _check_tokens(rust, tokens):
    for token in tokens:
        if rust.token_to_id(token) is None:
            raise InputError(f'the vocabulary has no {token}: is it of this kind of model?')


def _add_special_tokens(rust, *tokens):
    """Keep the special tokens whole; the mask, the last one, takes the space before it."""
    _check_tokens(rust, tokens)
    rust.add_special_tokens([AddedToken(token, lstrip=token == tokens[-1]) for token in tokens])


def _surround(rust, single, second):
    """Put special tokens around a text, and around the second one of a pair."""
    ends = [(token, rust.token_to_id(token)) for token in single.split(' $A ')]
    pair = f'{single} {second}'
    rust.post_processor = processors.TemplateProcessing(single, pair, special_tokens=ends)


def _surround_as_roberta(rust):
    ends = [(token, rust.token_to_id(token)) for token in ('</s>', '<s>')]
    rust.post_processor = processors.RobertaProcessing(*ends, add_prefix_space=False)


def _split_before(rust, step):
    rust.pre_tokenizer = pre_tokenizers.Sequence([step, rust.pre_tokenizer])


def _joining_spaces(joined):
    return normalizers.Replace(Regex(' {2,}'), joined)
