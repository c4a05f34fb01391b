"""Text to the ids of OpenAI GPT and back.

Source: Radford et al., "Improving Language Understanding by Generative Pre-Training" (2018);
``text_utils.py`` of openai/finetune-transformer-lm, in the form of pytorch-pretrained-bert 0.6.2,
which gives the same tokens and ids.
"""

import logging
import re

from tokenizers import Tokenizer as Library
from tokenizers import decoders, normalizers, pre_tokenizers

from model_zoo.errors import InputError
from model_zoo.tokenization import BasicTokenizer
from model_zoo.tokenization.basic import Splitter
from model_zoo.tokenization.bpe import BPETokenizer
from model_zoo.tokenization.encoding import AlignedPieces

__all__ = ['text_standardize']

_log = logging.getLogger(__name__)

_END = '</w>'

# What text_standardize does before white space is tidied: the dashes, dots and quotes that spaCy
# split oddly in the books of the training data, and runs of one symbol set apart.
_REPLACED = {'\u2014': '-', '\u2013': '-', '\u2015': '-', '\u2026': '...', '\u00b4': "'"}
_SPACES = re.compile(r'\s+')
_RUNS = re.compile(r"""(([-~!";?+,)(\\/*\[\]}{|_])\2*)""")

# In the original's order; the comma is there twice, for two spaces before it.
_CLEAN_UP = (
    ('<unk>', ''),
    *((f' {mark}', mark) for mark in '.?!,,'),
    (" ' ", "'"),
    *((f' {end}', end) for end in ("n't", "'m")),
    (' do not', " don't"),
    *((f' {end}', end) for end in ("'s", "'ve", "'re")),
)


def text_standardize(text):
    """Normalize dashes, dots and quotes, and separate symbols by single spaces, for spaCy."""
    for char, plain in _REPLACED.items():
        text = text.replace(char, plain)
    text = _RUNS.sub(r' \1 ', text)
    return _SPACES.sub(lambda run: ' \n ' if '\n' in run.group() else ' ', text).strip()


class _BasicWords(BasicTokenizer):
    """BERT's words; the library finds them in texts whose characters are in the vocabulary."""

    def __init__(self, encoder, never_split):
        super().__init__(do_lower_case=True, never_split=never_split)
        self._encoder = encoder

    def _agrees(self, char):
        symbols = ''.join(self.rust_words(char))
        return super()._agrees(char) and all({s, s + _END} <= self._encoder.keys() for s in symbols)


class _SpacyWords(Splitter):
    """The words that spaCy finds in what ftfy mends."""

    def __init__(self, nlp, fix_text):
        self._nlp, self._fix_text = nlp, fix_text

    def suits_rust(self, text):
        return False

    def tokenize(self, text):
        words = (token.text.lower() for token in self._nlp(text_standardize(self._fix_text(text))))
        # a line break with a space is the line break's token
        return ['\n' if word == '\n ' else word for word in words]

    def align(self, text):
        raise InputError("places in the text aren't known where ftfy and spaCy find the words")


class _Symbols(AlignedPieces):
    """Pieces whose unknown symbols stay themselves, as in the original."""

    __slots__ = ()

    @property
    def tokens(self):
        tokens, unknown = self.encoding.tokens, self.owner.unk_token
        if unknown not in tokens:
            return tokens
        words, places = self.words, zip(self.numbers, self.encoding.offsets)
        parts = ((words[number], start, end) for number, (start, end) in places)
        symbols = (word[start:end] + _END * (end == len(word)) for word, start, end in parts)
        return [s if token == unknown else token for s, token in zip(symbols, tokens)]


class OpenAIGPTTokenizer(BPETokenizer):
    """Words in lower case, then byte pair encoding with ``</w>`` at the end of each word.

    If ftfy and spaCy are installed (the extra ``gpt``), they split the words, as for the released
    model. Otherwise BERT's basic tokenizer does, with a warning; some ids may then differ.

    Parameters
    ----------
    vocab_file : str or os.PathLike
        ``vocab.json``, or the release's ``encoder_bpe_40000.json``.
    merges_file : str or os.PathLike
        ``merges.txt``, or the release's ``vocab_40000.bpe``.
    special_tokens : list of str, optional
        Such as ``['_start_', '_delimiter_', '_classify_']``; see :meth:`set_special_tokens`.
    max_len : int, optional
        Longer results log a warning; usually the number of the model's positions.

    Examples
    --------
    >>> tokenizer = OpenAIGPTTokenizer.from_pretrained('openai-gpt')
    >>> tokenizer.tokenize('Hello, world!')
    ['hello</w>', ',</w>', 'world</w>', '!</w>']
    >>> tokenizer.decode(tokenizer.encode('Hello, world!'))
    'hello, world!'
    """

    names = frozenset(['OpenAIGPT'])
    needs_python = True
    suffix = _END
    word_prefix = ''
    pretrained_max_len = 512
    _aligned = _Symbols
    _gap = re.compile('\n')  # ftfy looks at whole lines

    def __init__(self, vocab_file, merges_file, special_tokens=None, max_len=None):
        self.nlp, self.fix_text = _spacy_and_ftfy()
        super().__init__(vocab_file, merges_file, special_tokens, max_len)

    def set_special_tokens(self, special_tokens):
        super().set_special_tokens(special_tokens)
        if self.fix_text is None:
            # as in the original, they aren't split at punctuation, but into pieces all the same
            self.nlp = self.splitter = _BasicWords(self.encoder, self.special_tokens)
        else:
            self.splitter = _SpacyWords(self.nlp, self.fix_text)

    set_special_tokens.__doc__ = BPETokenizer.set_special_tokens.__doc__

    def decode(self, ids, skip_special_tokens=False, clean_up_tokenization_spaces=True):
        """Return the text of a sequence of ids, in lower case; the original spacing is lost.

        By default ``<unk>`` and the spaces before punctuation and contractions are dropped.
        """
        text = ''.join(self._tokens_to_decode(ids, skip_special_tokens))
        text = text.replace(_END, ' ').strip()
        if clean_up_tokenization_spaces:
            for spaced, clean in _CLEAN_UP:
                text = text.replace(spaced, clean)
        return text

    def _make_library(self, model):
        rust = Library(model)  # with BERT's words, as where spaCy is missing
        rust.normalizer = normalizers.BertNormalizer(lowercase=True)
        rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        rust.decoder = decoders.BPEDecoder(suffix=_END)
        return rust

    def _pieces(self, texts, fast=False):
        found, special = super()._pieces(texts), self.special_tokens
        if special:  # an unknown symbol may be one
            return [
                pieces._replace(ids=[special.get(t, i) for t, i in zip(pieces.tokens, pieces.ids)])
                for pieces in found
            ]
        return found


def _spacy_and_ftfy():
    """SpaCy's English tokenizer and ftfy's fix_text, or (None, None) if one is missing."""
    try:
        import ftfy
        import spacy
    except ImportError:
        _log.warning(
            'ftfy or spaCy is not installed: the basic tokenizer finds the words, which is not '
            "how the released model was trained; pip install 'gluon-transformer-zoo[gpt]'"
        )
        return None, None
    return spacy.blank('en').tokenizer, ftfy.fix_text
