"""Text to the ids of RoBERTa and of XLM-R, and back."""

from tokenizers import AddedToken, processors

from model_zoo.errors import InputError
from model_zoo.tokenization import Tokenizer
from model_zoo.tokenization.bpe import byte_level, read_pairs

from .sentence_pieces import open_model, unigrams

__all__ = ['RobertaTokenizer', 'XLMRobertaTokenizer']

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


def _add_special_tokens(rust):
    """Keep the special tokens whole; the mask takes the space before it."""
    for token in _TOKENS:
        if rust.token_to_id(token) is None:
            raise InputError(f'the vocabulary has no {token}: is it of RoBERTa or XLM-R?')
    rust.add_special_tokens([AddedToken(token, lstrip=token == '<mask>') for token in _TOKENS])


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
    rust = unigrams(open_model(path))
    _add_special_tokens(rust)
    rust.post_processor = processors.TemplateProcessing(
        single='<s> $A </s>',
        pair='<s> $A </s> </s> $B </s>',
        special_tokens=[(token, rust.token_to_id(token)) for token in ('<s>', '</s>')],
    )
    return rust
