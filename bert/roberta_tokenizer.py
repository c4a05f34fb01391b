"""Text to the ids of RoBERTa and of XLM-R, and back."""

import itertools
import re

from tokenizers import processors

from model_zoo.tokenization.bpe import ByteLevelTokenizer
from model_zoo.tokenization.chunks import Chunk, ChunkTokenizer, MarkTokenizer
from model_zoo.tokenization.library_files import (
    BYTE_SPACE,
    FAIRSEQ_NAME,
    PREFIX,
    SentencePieceText,
    fairseq_ids,
    open_model,
    save_model,
    segment,
    to_library,
)
from model_zoo.tokenization.vocab import make_vocab


class _Framed(MarkTokenizer):
    """``<s> text </s>`` and ``<s> text </s></s> pair </s>``, without token types."""

    template = (('cls',), ('sep', 'sep'), ('sep',))
    do_lower_case = False
    _stand_ins = {'cls': 'bos', 'sep': 'eos'}
    _needed = ('cls', 'sep', 'unk', 'pad')


class RobertaTokenizer(_Framed, ByteLevelTokenizer):
    """Byte pair encoding of a text's UTF-8 bytes, with RoBERTa's special tokens around it.

    Gives the ids of transformers' ``RobertaTokenizer``. The special tokens are in the vocabulary,
    and are recognized in texts. The arguments are those of the base.

    Examples
    --------
    ``RobertaTokenizer.from_pretrained('roberta-base').encode('Hello, <mask>!').tokens`` is
    ``['<s>', 'Hello', ',', '<mask>', '!', '</s>']``.
    """

    names = frozenset(('Roberta', 'Longformer', 'Bart'))
    begins_words = False
    pretrained_max_len = 512
    word_prefix = ' '

    def set_special_tokens(self, special_tokens):
        super().set_special_tokens(special_tokens)
        self._set_marks()

    def _special_ids(self):
        return {*super()._special_ids(), *map(self._id_of, self._marks)}

    def _align_chunk(self, text, chunk):
        if chunk.words is not None:
            return chunk
        chunk = super()._align_chunk(text, chunk)
        # a word's piece doesn't begin with the space before it
        blank = len(text) - len(text.lstrip())
        spans = tuple((min(max(start, blank), end), end) for start, end in chunk.spans)
        return chunk._replace(spans=spans, words=(text.strip(),))

    def _template_processing(self):
        ends = ((token, self._id_of(token)) for token in (self.sep_token, self.cls_token))
        return processors.RobertaProcessing(*ends, trim_offsets=True, add_prefix_space=False)

    @staticmethod
    def is_first_subword(token):
        """Whether `token` begins a word that isn't the text's first."""
        return token.startswith(BYTE_SPACE)

    def join(self, pieces):
        """The word that `pieces` are of."""
        return b''.join(map(self._bytes_of, pieces)).decode(errors=self.errors).strip()


class _Pieces(ChunkTokenizer):
    """Learns chunks by SentencePiece; `MarkTokenizer` asks it for those without marks."""

    def _learn(self, chunks):
        return [self._segment(chunk) for chunk in chunks]

    def _segment(self, chunk):
        tokens, spans = segment(self._sentencepiece, chunk)
        begins = [not n or token[0] == PREFIX for n, token in enumerate(tokens)]
        starts = [n for n, begin in enumerate(begins) if begin]
        numbers = [count - 1 for count in itertools.accumulate(begins)]
        ends = [*starts[1:], len(tokens)]
        words = (chunk[spans[a][0] : spans[b - 1][1]].strip() for a, b in zip(starts, ends))
        ids = (self._ids.get(token, self._ids['<unk>']) for token in tokens)
        return Chunk(*map(tuple, (ids, tokens, spans, numbers, words)))


class XLMRobertaTokenizer(SentencePieceText, _Framed, _Pieces):
    """Sentence pieces of a text in any language, with XLM-R's special tokens around it.

    Gives the ids of transformers' ``XLMRobertaTokenizer``: fairseq's, not SentencePiece's own.
    """

    kinds, names = ('fairseq', 'sentencepiece'), frozenset(['XLMRoberta'])
    _pattern = re.compile(r'(?s).+')  # SentencePiece itself looks for white space

    def __init__(self, vocab_file, max_len=None):
        super().__init__(max_len)
        self._sentencepiece = open_model(vocab_file)
        self._ids = fairseq_ids(self._sentencepiece)
        self.vocab = make_vocab(self._ids)
        self._set_marks()

    @classmethod
    def from_vocab_file(cls, file, **kwargs):
        return cls(file.path, **{'max_len': file.settings.max_len(), **kwargs})

    def save_vocabulary(self, path):
        """Write the SentencePiece model."""
        return save_model(self._sentencepiece, path, FAIRSEQ_NAME)

    def _to_library(self):
        return to_library(self._sentencepiece, self.vocab.idx_to_token, self.unk_token)

    @staticmethod
    def join(pieces):
        """The word that `pieces` are of."""
        return ''.join(pieces).replace(PREFIX, ' ').strip()
