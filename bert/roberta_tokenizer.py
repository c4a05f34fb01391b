"""Text to the ids of RoBERTa, XLM-R, MPNet and ALBERT, and back."""

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Library

from model_zoo.errors import InputError
from model_zoo.tokenization import Tokenizer
from model_zoo.tokenization.bpe import byte_level, read_pairs
from model_zoo.tokenization.library_files import PREFIX
from model_zoo.tokenization.vocab import load_vocab

from .sentence_pieces import open_model, pieces_of, unigrams

__all__ = ['AlbertTokenizer', 'MPNetTokenizer', 'RobertaTokenizer', 'XLMRobertaTokenizer']

_TOKENS = ('<s>', '<pad>', '</s>', '<unk>', '<mask>')


class RobertaTokenizer(Tokenizer):
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
    pretrained_max_len = 512

    def __init__(self, vocab_file, merges_file, max_len=None):
        self._set_up(_byte_pairs(vocab_file, merges_file), max_len=max_len)

    @classmethod
    def library_of(cls, file):
        return _byte_pairs(file.path, file.merges_path)


class XLMRobertaTokenizer(Tokenizer):
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
    pretrained_max_len = 512

    def __init__(self, vocab_file, max_len=None):
        self._set_up(_pieces_of(vocab_file), max_len=max_len)

    @classmethod
    def library_of(cls, file):
        return _pieces_of(file.path)


class MPNetTokenizer(Tokenizer):
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
    pretrained_max_len = 512

    def __init__(self, vocab_file, do_lower_case=True, max_len=None):
        self._set_up(_word_pieces(vocab_file, do_lower_case), max_len=max_len)

    @classmethod
    def library_of(cls, file):
        return _word_pieces(file.path)


class AlbertTokenizer(Tokenizer):
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
    pretrained_max_len = 512

    def __init__(self, vocab_file, do_lower_case=True, keep_accents=False, max_len=None):
        rust = _lowered_pieces(vocab_file, do_lower_case, keep_accents)
        self._set_up(rust, max_len=max_len)

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        fields = {**file.settings.fields, **kwargs}
        keeps = bool(fields.get('keep_accents'))
        rust = _lowered_pieces(file.path, fields.get('do_lower_case') is not False, keeps)
        kwargs.pop('keep_accents', None)
        return cls.of_settings(rust, file.settings, **kwargs)


def _add_special_tokens(rust, tokens=_TOKENS):
    """Keep the special tokens whole; the mask, the last one, takes the space before it."""
    for token in tokens:
        if rust.token_to_id(token) is None:
            raise InputError(f'the vocabulary has no {token}: is it of this kind of model?')
    rust.add_special_tokens([AddedToken(token, lstrip=token == tokens[-1]) for token in tokens])


def _byte_pairs(vocab_file, merges_file):
    """Make RoBERTa's tokenizer in the library."""
    ids, _, model = read_pairs(vocab_file, merges_file)
    rust = byte_level(model)
    _add_special_tokens(rust)
    ends = [(token, ids[token]) for token in ('</s>', '<s>')]
    rust.post_processor = processors.RobertaProcessing(*ends, add_prefix_space=False)
    return rust


def _pieces_of(path):
    """Make XLM-R's tokenizer in the library."""
    processor = open_model(path)
    # fairseq's order
    tokens = ['<s>', '<pad>', '</s>', '<unk>', *pieces_of(processor)[3:], '<mask>']
    ends = normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(' {2,}'), PREFIX)
    rust = unigrams(processor, tokens, after=ends)
    _add_special_tokens(rust)
    rust.post_processor = processors.TemplateProcessing(
        single='<s> $A </s>',
        pair='<s> $A </s> </s> $B </s>',
        special_tokens=[(token, rust.token_to_id(token)) for token in ('<s>', '</s>')],
    )
    return rust


def _word_pieces(path, do_lower_case=True):
    """Make MPNet's tokenizer in the library."""
    tokens = '<s>', '<pad>', '</s>', '[UNK]', '<mask>'
    roles = {'cls': '<s>', 'pad': '<pad>', 'sep': '</s>', 'mask': '<mask>'}
    ids = load_vocab(path, roles).token_to_idx
    rust = Library(models.WordPiece(dict(ids), unk_token='[UNK]'))
    rust.normalizer = normalizers.BertNormalizer(lowercase=do_lower_case)
    rust.pre_tokenizer, rust.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    _add_special_tokens(rust, tokens)
    ends = [(token, ids[token]) for token in ('</s>', '<s>')]
    rust.post_processor = processors.RobertaProcessing(*ends, add_prefix_space=False)
    return rust


def _lowered_pieces(path, do_lower_case, keep_accents):
    """Make ALBERT's tokenizer in the library."""
    processor, before = open_model(path), [normalizers.Replace(each, '"') for each in ('``', "''")]
    if not keep_accents:
        before += normalizers.NFKD(), normalizers.StripAccents()
    if do_lower_case:
        before.append(normalizers.Lowercase())
    rust = unigrams(processor, pieces_of(processor), before)
    steps = [pre_tokenizers.WhitespaceSplit(), rust.pre_tokenizer]
    rust.pre_tokenizer = pre_tokenizers.Sequence(steps)
    _add_special_tokens(rust, ('<pad>', '<unk>', '[CLS]', '[SEP]', '[MASK]'))
    rust.post_processor = processors.TemplateProcessing(
        single='[CLS] $A [SEP]',
        pair='[CLS] $A [SEP] $B:1 [SEP]:1',
        special_tokens=[(token, rust.token_to_id(token)) for token in ('[CLS]', '[SEP]')],
    )
    return rust
