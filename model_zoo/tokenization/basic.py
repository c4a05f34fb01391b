"""BERT's tokenization: text to words, and words to the vocabulary's longest pieces.

Source: ``BasicTokenizer`` in ``tokenization.py`` of google-research/bert, in the form of
pytorch-pretrained-bert 0.6.2; the words are the same for every string.
"""

import re
import unicodedata

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from .encoding import checked, encode_rust
from .vocab import SPECIAL_TOKENS

__all__ = ['GluonBasicTokenizer', 'Splitter']


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
            ids = {token: index for index, token in enumerate(ids)}
        ids = dict(ids)
        self._outside = None
        if unk_token not in ids:
            # The library expects it in the vocabulary; with a space in it, no word matches.
            self._outside = ' ' + unk_token
            ids[self._outside] = max(ids.values(), default=-1) + 1
        options = {'max_input_chars_per_word': max_input_chars_per_word}
        self.model = models.WordPiece(ids, unk_token=self._outside or unk_token, **options)
        self._rust = Tokenizer(self.model)

    def tokenize(self, text):
        """List of the pieces of the words in `text`, which are separated by white space."""
        words = checked(text).split()
        if not words:
            return []
        pieces = encode_rust(self._rust, [words], is_pretokenized=True)[0].tokens
        if self._outside:
            pieces = [self.unk_token if piece == self._outside else piece for piece in pieces]
        return pieces


# The blocks of CJK ideographs that the original sets apart; not Kana, not Hangul.
_IDEOGRAPH = re.compile(
    '[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f'
    '\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\U0002f800-\U0002fa1f]'
)


def _is_punctuation(char):
    """Return whether the original splits at `char`: all ASCII symbols, and Unicode's category P."""
    if char < '\x80':
        return '!' <= char <= '~' and not char.isalnum()
    return unicodedata.category(char)[0] == 'P'


class _Kinds(dict):
    """Results of cleaning a character: '' (dropped), ' ' (white space), 'cjk' or 'text'."""

    def __init__(self, dropped):
        super().__init__()
        self._dropped = dropped

    def __missing__(self, char):
        if char in '\t\n\r':
            result = ' '
        elif char in '\0\ufffd' or unicodedata.category(char).startswith(self._dropped):
            result = ''
        elif char.isspace():  # category Zs, and U+2028 and U+2029, at which str.split splits
            result = ' '
        elif _IDEOGRAPH.match(char):
            result = 'cjk'
        else:
            result = 'text'
        self[char] = result
        return result


class Splitter:
    """Finds the words of texts, and knows in which texts the library finds the same ones.

    A subclass has ``tokenize(text)``, ``align(text)``, the words with the spans of their
    characters, and ``_agrees(char)``: whether the library treats a character in any context as the
    class does. `_same` and `_differing` are the sets of the characters that are known.
    """

    # words that aren't split, and the ones that lower-casing may produce
    _whole = _lower_whole = ()

    def suits_rust(self, text):
        """Return whether the library finds the same words in `text`."""
        for char in set(text) - self._same - self._differing:
            (self._same if self._agrees(char) else self._differing).add(char)
        if not self._same.issuperset(text) or any(word in text for word in self._whole):
            return False
        lower = self.normalizer.normalize_str(text) if self._lower_whole else text
        return not any(word in lower for word in self._lower_whole)


class BasicTokenizer(Splitter):
    """Splits a text into words: at white space, around punctuation, around CJK ideographs.

    Control, unassigned and private-use characters are dropped. With `do_lower_case`, words are
    lower-cased and their accents (Unicode's category Mn) stripped.

    Parameters
    ----------
    do_lower_case : bool
    never_split : iterable of str
        Words that aren't split if white space (or an ideograph) is on both sides. As in the
        original, this includes words that equal one of them after lower-casing.
    strip_accents : bool, optional
        Default: as `do_lower_case`.
    tokenize_chinese_chars : bool
        Whether each CJK ideograph is a word.
    """

    _kinds = _Kinds('C')

    def __init__(
        self,
        do_lower_case=True,
        never_split=SPECIAL_TOKENS,
        strip_accents=None,
        tokenize_chinese_chars=True,
    ):
        self._same, self._differing = set(), set()
        self.do_lower_case = bool(do_lower_case)
        self.strip_accents = self.do_lower_case if strip_accents is None else bool(strip_accents)
        self.tokenize_chinese_chars = bool(tokenize_chinese_chars)
        self.never_split = tuple(never_split)
        self.normalizer = normalizers.BertNormalizer(
            lowercase=self.do_lower_case,
            strip_accents=self.strip_accents,
            handle_chinese_chars=self.tokenize_chinese_chars,
        )
        self._splitter = pre_tokenizers.BertPreTokenizer()
        self._whole = [word for word in self.never_split if word]
        # Words that something else in the text might be lower-cased to; none by default.
        self._lower_whole = [
            word
            for word in self._whole
            if self.do_lower_case
            and not any('A' <= char <= 'Z' for char in word)
            and any(_is_punctuation(char) for char in word)
        ]

    def tokenize(self, text):
        """Return the list of the words of `text`."""
        text = checked(text)
        if self.suits_rust(text):
            return self.rust_words(text)
        return [word for word, _ in self.align(text)]

    def rust_words(self, text):
        """Return the words of a `text` that :meth:`suits_rust`."""
        text = self.normalizer.normalize_str(text)
        return [word for word, _ in self._splitter.pre_tokenize_str(text)]

    def _agrees(self, char):
        """Return whether the library treats `char` as this class does in any context.

        Not the case for dropped characters, which could join a special token; the capital sigma,
        which Python lower-cases differently at the end of a word; stripped accents, whose place
        belongs to the letter before; and marks with a combining class, which are sorted.
        """
        if not self._kinds[char]:
            return False
        if self.do_lower_case and char == '\u03a3':
            return False
        if self.strip_accents:
            parts = unicodedata.normalize('NFD', char.lower() if self.do_lower_case else char)
            kept = [part for part in parts if unicodedata.category(part) != 'Mn']
            if not kept or any(map(unicodedata.combining, kept)):
                return False
        sample = f'a{char}b'
        return self.rust_words(sample) == [word for word, _ in self.align(sample)]

    def align(self, text):
        """Return the words of `text`, each with the places (start, end) of its characters."""
        words = []
        for chars, spans in self._clean(text):
            word = ''.join(chars)
            if word not in self.never_split:
                if self.do_lower_case:
                    word, spans = _lower(word, spans)
                if self.strip_accents:
                    word, spans = _strip_accents(word, spans)
                if word not in self.never_split:
                    words += _split_punctuation(word, spans)
                    continue
            if word:
                words.append((word, spans))
        return words

    def _clean(self, text):
        """Yield (characters, their spans) of each run between white space and ideographs."""
        chars, spans = [], []
        for position, char in enumerate(text):
            result = self._kinds[char]
            if result == 'text' or (result == 'cjk' and not self.tokenize_chinese_chars):
                chars.append(char)
                spans.append((position, position + 1))
            elif result:
                if chars:
                    yield chars, spans
                    chars, spans = [], []
                if result == 'cjk':
                    yield [char], [(position, position + 1)]
        if chars:
            yield chars, spans


class GluonBasicTokenizer(BasicTokenizer):
    """GluonNLP's variant: drops fewer characters, and also strips accents in cased text."""

    _kinds = _Kinds(('Cc', 'Cf'))

    def __init__(self, do_lower_case=True):
        super().__init__(do_lower_case, never_split=(), strip_accents=True)

    def suits_rust(self, text):
        return False


def _lower(word, spans):
    lower = word.lower()
    if len(lower) != len(word):  # U+0130 becomes two characters
        spans = [s for char, s in zip(word, spans) for _ in char.lower()]
    return lower, spans


def _strip_accents(word, spans):
    """Decompose a word, and drop the nonspacing marks."""
    if word.isascii():
        return word, spans
    kept = []
    for char, (start, end) in zip(word, spans):
        for part in unicodedata.normalize('NFD', char):
            if unicodedata.category(part) != 'Mn':
                kept.append((start, end))
            elif kept:  # the accent lies where its letter does
                kept[-1] = kept[-1][0], max(kept[-1][1], end)
    # of the whole word, since this sorts the marks that follow a letter
    parts = unicodedata.normalize('NFD', word)
    return ''.join(part for part in parts if unicodedata.category(part) != 'Mn'), kept


def _split_punctuation(word, spans):
    """Return each punctuation character, and each run between them, with its spans."""
    words, start = [], 0
    for position, char in enumerate(word):
        if _is_punctuation(char):
            if start < position:
                words.append((word[start:position], spans[start:position]))
            words.append((char, spans[position : position + 1]))
            start = position + 1
    if start < len(word):
        words.append((word[start:], spans[start:]))
    return words
