"""Text to the ids of GPT-2 and back.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), section 2.2.
"""

from model_zoo.tokenization.bpe import ByteLevelTokenizer, bytes_to_unicode

__all__ = ['bytes_to_unicode']


class GPT2Tokenizer(ByteLevelTokenizer):
    """Byte pair encoding of a text's UTF-8 bytes: every text has ids, which decode to the same
    text.

    The arguments are those of the base. ``<|endoftext|>`` is one of the vocabulary's own tokens. As
    in the original, a text's ids never contain it, so put its id before or after them.
    """

    names = frozenset(['GPT2'])
    pretrained_max_len = 1024
