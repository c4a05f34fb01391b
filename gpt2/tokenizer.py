"""Text to the ids of GPT-2 and back.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), section 2.2;
``encoder.py`` of openai/gpt-2, whose ids this gives. (pytorch-pretrained-bert 0.6.2 takes a text's
characters for its bytes, so that it agrees on ASCII only.)
"""

import regex

from model_zoo.tokenization.bpe import BPETokenizer
from model_zoo.tokenization.text import checked

__all__ = ['GPT2Tokenizer', 'bytes_to_unicode']

# The model's definition: contractions, then letters, digits and symbols, each with a space before
# it where there is one, and spaces, of which the last belongs to what follows.
_PATTERN = regex.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)


def bytes_to_unicode():
    """A printable character for each byte, by which the vocabulary's tokens are written.

    Returns
    -------
    dict of int to str
        The byte's own Latin-1 character where that is printable, and otherwise the next one from
        U+0100 on.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printable)
    shifted = {byte: chr(0x100 + number) for number, byte in enumerate(others)}
    return {byte: shifted.get(byte, chr(byte)) for byte in range(256)}


class GPT2Tokenizer(BPETokenizer):
    """Byte pair encoding of a text's UTF-8 bytes: every text has ids, and comes back from them.

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
    encoder, decoder : dict
        From tokens to ids, and back; without the special tokens. ``<|endoftext|>`` is one of the
        vocabulary's own; as in the original, a text's ids never hold it, so put its id before or
        after them.
    special_tokens, special_tokens_decoder : dict
        From special tokens to ids, and back.
    byte_encoder, byte_decoder : dict
        Of :func:`bytes_to_unicode`, and back.
    vocab : gluonnlp.vocab.Vocab
        All tokens.

    Raises
    ------
    InputError
        If a file can't be read, or the merges don't fit the vocabulary.

    Examples
    --------
    >>> tokenizer = GPT2Tokenizer.from_pretrained('gpt2')
    >>> tokenizer.tokenize('Hello, world!')
    ['Hello', ',', '\\u0120world', '!']
    >>> tokenizer.decode(tokenizer.encode('Hello, world!'))
    'Hello, world!'
    """

    pretrained_max_len = 1024

    def __init__(
        self, vocab_file, merges_file, errors='replace', special_tokens=None, max_len=None
    ):
        self.errors = errors
        self.byte_encoder = bytes_to_unicode()
        self.byte_decoder = {char: byte for byte, char in self.byte_encoder.items()}
        super().__init__(vocab_file, merges_file, special_tokens, max_len)

    def tokenize_with_offsets(self, text):
        """Pieces of `text` with the places that they come from.

        Parameters
        ----------
        text : str

        Returns
        -------
        list of (str, (int, int))
            The piece and its start and end in the text. A character whose bytes are in several
            pieces belongs to each of them.
        """
        text = checked(text)
        # the character that each byte belongs to
        places = [n for n, char in enumerate(text) for _ in range(len(char.encode()))]
        found, start = [], 0
        for token in self.tokenize(text):
            end = start + len(token)
            found.append((token, (places[start], places[end - 1] + 1)))
            start = end
        return found

    def decode(self, ids, skip_special_tokens=False):
        """Text of a sequence of ids.

        Parameters
        ----------
        ids : sequence of int
            Those of a part of a text can end within a character; `errors` says what becomes of it.
        skip_special_tokens : bool
            Whether to leave out those of :meth:`set_special_tokens`.

        Returns
        -------
        str

        Raises
        ------
        InputError
            If an id is unknown.
        """
        content = bytearray()
        for token in self.convert_ids_to_tokens(ids, skip_special_tokens):
            if token in self.special_tokens:
                content += token.encode()
            else:
                content += self._bytes_of(token)
        return content.decode('utf-8', errors=self.errors)

    def _bytes_of(self, token):
        try:
            return bytes([self.byte_decoder[char] for char in token])
        except KeyError:  # no bytes, but a token that someone added to the vocabulary
            return token.encode()

    def _chunks(self, text):
        return _PATTERN.findall(text)

    def _words(self, chunk):
        # Latin-1 has a character for each byte, which is translated by its number
        return [chunk.encode().decode('latin-1').translate(self.byte_encoder)]
