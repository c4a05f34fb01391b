"""Text to the ids of GPT-2 and back.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), section 2.2.
"""

import functools

import regex
from tokenizers import pre_tokenizers

from model_zoo.tokenization.basic import Splitter
from model_zoo.tokenization.bpe import BPETokenizer, byte_level, bytes_to_unicode

__all__ = ['bytes_to_unicode']

# The model's definition: contractions, then letters, digits and symbols, each with a space before
# it where there is one, and spaces, of which the last belongs to what follows.
_WORD = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


class _Words(Splitter):
    """Words as `_WORD` has them; the library's Unicode tables lack 17 thousand characters."""

    def __init__(self):
        self._same, self._differing = set(), set()
        self._library = pre_tokenizers.ByteLevel(add_prefix_space=False)

    def tokenize(self, text):
        return _WORD.findall(text)

    def align(self, text):
        return [(m.group(), [(n, n + 1) for n in range(*m.span())]) for m in _WORD.finditer(text)]

    def _agrees(self, char):
        sample = f'a{char}1{char}.{char} {char}'  # another one for each kind of a character
        found = self._library.pre_tokenize_str(sample)
        return [sample[slice(*span)] for _, span in found] == self.tokenize(sample)


class GPT2Tokenizer(BPETokenizer):
    """Byte pair encoding of a text's UTF-8 bytes: every text has ids, which decode to the same
    text.

    ``<|endoftext|>`` is one of the vocabulary's own tokens. As in the original, `encode`
    never returns its id; `encode_text` does, where it is in the text. A lone surrogate, which no
    encoding can carry, is replaced by U+FFFD. The words are the same as in ``encoder.py`` of
    openai/gpt-2 (pytorch-pretrained-bert 0.6.2 takes a text's characters for its bytes, and agrees
    on ASCII only).

    Parameters
    ----------
    vocab_file : str or os.PathLike
        ``vocab.json``, or the release's ``encoder.json``.
    merges_file : str or os.PathLike
        ``merges.txt``, or the release's ``vocab.bpe``.
    errors : str
        How :meth:`decode` handles bytes that aren't UTF-8, as in `bytes.decode`.
    special_tokens, max_len
        As of the base.
    """

    names = frozenset(['GPT2'])
    pretrained_max_len = 1024
    word_prefix = ' '
    do_lower_case = False

    def __init__(
        self, vocab_file, merges_file, errors='replace', special_tokens=None, max_len=None
    ):
        self.errors = errors
        self.byte_encoder = bytes_to_unicode()
        self.byte_decoder = {char: byte for byte, char in self.byte_encoder.items()}
        self.splitter = _Words()
        super().__init__(vocab_file, merges_file, special_tokens, max_len)

    _make_library = staticmethod(byte_level)

    @functools.cached_property
    def _of_words(self):
        rust = byte_level(self._rust.model)
        rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        return rust

    def decode(self, ids, skip_special_tokens=False):
        """Return the text of a sequence of ids, which may end inside a character; see `errors`."""
        content = bytearray()
        for token in self._tokens_to_decode(ids, skip_special_tokens):
            chars = [self.byte_decoder.get(char) for char in token]
            # no bytes, but a token that someone added to the vocabulary
            whole = token in self.special_tokens or None in chars
            content += token.encode() if whole else bytes(chars)
        return content.decode('utf-8', errors=self.errors)
