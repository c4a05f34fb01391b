"""Byte pairs that are learned from a text."""

import os

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from ..errors import InputError
from ..pretrained.files import BPE_NAMES
from ..util.files import make_writable_dir
from ..util.reading import read_lines

__all__ = ['learn_byte_pairs']


def learn_byte_pairs(path, size, folder, special_tokens=('<|endoftext|>',)):
    """Learn a byte-level encoding such as GPT-2's from a text, and write its two files.

    Returns the path of ``vocab.json``; ``merges.txt`` is beside it.

    Parameters
    ----------
    path : str or os.PathLike
        The text, in UTF-8.
    size : int
        Maximum number of tokens: the 256 bytes, the special tokens and the merged pairs.
    folder : str or os.PathLike
        Created if it doesn't exist.
    special_tokens : sequence of str
        Tokens that never result from splitting a text.
    """
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    least = len(alphabet) + len(special_tokens) + 1
    if size < least:
        raise InputError(f'a vocabulary of {size} byte pairs is too small: use at least {least}')
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokens = {'initial_alphabet': alphabet, 'special_tokens': list(special_tokens)}
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, **tokens)
    tokenizer.train_from_iterator((line for _, line in read_lines(path)), trainer)
    tokenizer.model.save(make_writable_dir(folder))
    return os.path.join(folder, next(iter(BPE_NAMES)))
