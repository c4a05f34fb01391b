"""Text to the ids of DeBERTa and of ModernBERT, and back."""

from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers, processors

from model_zoo.errors import InputError
from model_zoo.tokenization import Tokenizer
from model_zoo.tokenization.bpe import byte_level, read_pairs

from .sentence_pieces import open_model, pieces_of, unigrams

__all__ = ['DebertaV2Tokenizer', 'ModernBertTokenizer']


class DebertaV2Tokenizer(Tokenizer):
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
    pretrained_max_len = 512

    def __init__(self, vocab_file, do_lower_case=False, split_by_punct=False, max_len=None):
        rust = _pieces_of(vocab_file, do_lower_case, split_by_punct)
        self._set_up(rust, max_len=max_len)

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        fields = {**file.settings.fields, **kwargs}
        options = [fields.get(name) is True for name in ('do_lower_case', 'split_by_punct')]
        kwargs.pop('split_by_punct', None)
        return cls.of_settings(_pieces_of(file.path, *options), file.settings, **kwargs)


class ModernBertTokenizer(Tokenizer):
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
        self._set_up(_byte_pairs(vocab_file, merges_file), max_len=max_len)

    @classmethod
    def library_of(cls, file):
        return _byte_pairs(file.path, file.merges_path)


def _pieces_of(path, do_lower_case, split_by_punct):
    """Make DeBERTa's tokenizer in the library."""
    processor = open_model(path)
    tokens, special = pieces_of(processor), ['[PAD]', '[CLS]', '[SEP]', '[UNK]', '[MASK]']
    missing = [token for token in special[:-1] if token not in tokens]
    if missing:
        raise InputError(f'the vocabulary has no {missing[0]}: is it of a DeBERTa?')
    before = [*([normalizers.Lowercase()] if do_lower_case else []), normalizers.Strip()]
    rust = unigrams(processor, tokens, before, [normalizers.Replace(Regex(' {2,}'), ' ')])
    if split_by_punct:
        steps = [pre_tokenizers.Punctuation('isolated'), rust.pre_tokenizer]
        rust.pre_tokenizer = pre_tokenizers.Sequence(steps)
    rust.add_special_tokens(special)
    rust.post_processor = processors.TemplateProcessing(
        single='[CLS] $A [SEP]',
        pair='[CLS] $A [SEP] $B:1 [SEP]:1',
        special_tokens=[(token, rust.token_to_id(token)) for token in special[1:3]],
    )
    return rust


def _byte_pairs(vocab_file, merges_file):
    """Make ModernBERT's tokenizer in the library."""
    ids, _, model = read_pairs(vocab_file, merges_file)
    tokens = '[UNK]', '[CLS]', '[SEP]', '[PAD]', '[MASK]'
    for token in tokens:
        if token not in ids:
            raise InputError(f'the vocabulary has no {token}: is it of a ModernBERT?')
    rust = byte_level(model)
    rust.normalizer = normalizers.NFC()
    rust.add_special_tokens([AddedToken(token, lstrip=token == '[MASK]') for token in tokens])
    ends = [(token, ids[token]) for token in ('[CLS]', '[SEP]')]
    rust.post_processor = processors.TemplateProcessing(
        single='[CLS] $A [SEP]', pair='[CLS] $A [SEP] $B [SEP]', special_tokens=ends
    )
    return rust
