"""Byte pair encoding of a text's UTF-8 bytes, as GPT-2 and RoBERTa have it.

Source: ``encoder.py`` of openai/gpt-2, whose ids this gives. (pytorch-pretrained-bert 0.6.2 takes a
text's characters for its bytes, so that it agrees on ASCII only.)

The module `regex` finds the words, as in the original: the Rust library's ``ByteLevel`` would cut
differently beside 17 thousand characters that its Unicode tables lack.
"""

import regex
from tokenizers import decoders, pre_tokenizers

from .bpe import BPETokenizer

__all__ = ['ByteLevelTokenizer', 'bytes_to_unicode']

# The models' definition: contractions, then letters, digits and symbols, each with a space before
# it where there is one, and spaces, of which the last belongs to what follows.
_PATTERN = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)


def bytes_to_unicode():
    """A printable character for each byte, as in the vocabulary's tokens.

    Returns
    -------
    dict of int to str
        The byte's own Latin-1 character where that is printable, and otherwise the next one from
        U+0100 on.
    """
    alphabet = set(pre_tokenizers.ByteLevel.alphabet())
    others = iter(sorted(char for char in alphabet if ord(char) > 255))
    return {byte: chr(byte) if chr(byte) in alphabet else next(others) for byte in range(256)}


class ByteLevelTokenizer(BPETokenizer):
    """Byte pair encoding of a text's UTF-8 bytes: every text has ids, and can be decoded.

    A lone surrogate, which no encoding can carry, is replaced by U+FFFD.

    Parameters
    ----------
    vocab_file : str or os.PathLike
        ``vocab.json``, or the release's ``encoder.json``.
    merges_file : str or os.PathLike
        ``merges.txt``, or the release's ``vocab.bpe``.
    errors : str
        What :meth:`decode` does with bytes that aren't UTF-8, as in `bytes.decode`.
    special_tokens : list of str, optional
        See :meth:`set_special_tokens`.
    max_len : int, optional
        Length from which a warning is logged; usually the number of the model's positions.

    Attributes
    ----------
    byte_encoder, byte_decoder : dict
        Of :func:`bytes_to_unicode`, and back.
    """

    _pattern = _PATTERN

    def __init__(
        self, vocab_file, merges_file, errors='replace', special_tokens=None, max_len=None
    ):
        self.errors = errors
        self.byte_encoder = bytes_to_unicode()
        self.byte_decoder = {char: byte for byte, char in self.byte_encoder.items()}
        super().__init__(vocab_file, merges_file, special_tokens, max_len)

    def decode(self, ids, skip_special_tokens=False):
        """Text of a sequence of ids.

        Parameters
        ----------
        ids : sequence of int
            Ids of a part of a text may end within a character; see `errors`.
        skip_special_tokens : bool
            Whether to leave out the tokens of :meth:`set_special_tokens`.

        Returns
        -------
        str
        """
        content = bytearray()
        for token in self.convert_ids_to_tokens(ids, skip_special_tokens):
            if token in self.special_tokens:
                content += token.encode()
            else:
                content += self._bytes_of(token)
        return content.decode('utf-8', errors=self.errors)

    def _to_library(self):
        rust = super()._to_library()
        rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        rust.decoder = decoders.ByteLevel()
        return rust

    def _bytes_of(self, token):
        try:
            return bytes([self.byte_decoder[char] for char in token])
        except KeyError:  # no bytes, but a token that someone added to the vocabulary
            return token.encode()

    def _words(self, chunk):
        # Latin-1 has a character for each byte, which is translated by its number
        return [chunk.encode().decode('latin-1').translate(self.byte_encoder)]

    def _align_chunk(self, text, chunk):
        # the character that each byte belongs to
        places = [n for n, char in enumerate(text) for _ in range(len(char.encode()))]
        spans, start = [], 0
        for token in chunk.tokens:
            end = start + len(token)
            spans.append((places[start], places[end - 1] + 1))
            start = end
        return chunk._replace(spans=tuple(spans), numbers=(0,) * len(spans), words=(text,))
