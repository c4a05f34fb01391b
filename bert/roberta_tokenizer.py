"""Text to the ids of RoBERTa and back."""

from model_zoo.errors import InputError
from model_zoo.tokenization.byte_level import ByteLevelTokenizer
from model_zoo.tokenization.marks import MarkTokenizer

__all__ = ['RobertaTokenizer']

SPACE = '\u0120'  # as the vocabulary writes it


class _Framed(MarkTokenizer):
    """``<s> text </s>`` and ``<s> text </s></s> pair </s>``, without token types."""

    template = (('cls',), ('sep', 'sep'), ('sep',))
    do_lower_case = False

    def _find_roles(self):
        roles = super()._find_roles()
        roles.update({role: roles.get(role) or roles.get(other) for role, other in
                      (('cls', 'bos'), ('sep', 'eos'))})  # fmt: skip
        for role in ('cls', 'sep', 'unk', 'pad'):
            if roles.get(role) is None:
                raise InputError(
                    f'the vocabulary ({len(self)} tokens) names no {role} token: is it RoBERTa\'s?'
                )
        return roles


class RobertaTokenizer(_Framed, ByteLevelTokenizer):
    """Byte pair encoding of a text's UTF-8 bytes, with RoBERTa's special tokens around it.

    Gives the ids of transformers' ``RobertaTokenizer``. The special tokens are in the vocabulary,
    and stand for themselves in texts. The arguments are those of the base.

    Examples
    --------
    >>> tokenizer = RobertaTokenizer.from_pretrained('roberta-base')  # doctest: +SKIP
    >>> tokenizer.encode('Hello, <mask>!').tokens  # doctest: +SKIP
    ['<s>', 'Hello', ',', '<mask>', '!', '</s>']
    """

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

    @staticmethod
    def is_first_subword(token):
        """Whether `token` begins a word that isn't the text's first."""
        return token.startswith(SPACE)

    def join(self, pieces):
        """The word that `pieces` are of."""
        return b''.join(map(self._bytes_of, pieces)).decode(errors=self.errors).strip()
