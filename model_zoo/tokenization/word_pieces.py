"""Words to the vocabulary's longest pieces."""

from tokenizers import Tokenizer, models

from .text import checked, encode_rust

__all__ = ['WordpieceTokenizer']


class WordpieceTokenizer:
    """Splits words from the left into the vocabulary's longest pieces.

    Parameters
    ----------
    vocab : gluonnlp.vocab.Vocab, dict of str to int, or iterable of str
    unk_token : str
        Token for a word that the vocabulary's pieces can't form.
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
