"""``from bert import tokenization``, with the tokenizer that Google's README shows."""

from .tokenizer import BasicTokenizer, BertTokenizer, WordpieceTokenizer

__all__ = ['BasicTokenizer', 'FullTokenizer', 'WordpieceTokenizer']


class FullTokenizer(BertTokenizer):
    """`BertTokenizer` with the arguments of Google's ``tokenization.FullTokenizer``.

    As there, special tokens in a text are split as other words are, and words of more than 200
    letters are unknown.

    Parameters
    ----------
    vocab_file : str or os.PathLike
    do_lower_case : bool

    Attributes
    ----------
    inv_vocab : OrderedDict
        Ids to tokens.
    """

    def __init__(self, vocab_file, do_lower_case=True):
        super().__init__(
            vocab_file, do_lower_case, never_split=(), max_input_chars_per_word=200
        )
        self.inv_vocab = self.ids_to_tokens
