"""A byte pair encoding that is learned from a text."""

import os

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from ..errors import InputError
from ..pretrained.files import BPE_NAMES
from ..util.files import make_writable_dir
from ..util.lines import read_lines

__all__ = ['learn_byte_pairs']


def learn_byte_pairs(path, size, folder, special_tokens=('<|endoftext|>',)):
    """Learn a byte-level encoding as GPT-2's from a text, and write its two files.

    Parameters
    ----------
    path : str or os.PathLike
        The text, in UTF-8.
    size : int
        Most tokens: those of the 256 bytes, the special ones, and what is merged.
    folder : str or os.PathLike
        Made where it is missing.
    special_tokens : sequence of str
        Tokens of no text.

    Returns
    -------
    str
        Path of ``vocab.json``; ``merges.txt`` is beside it.

    Raises
    ------
    InputError
        If the size is too small, the text can't be read or has nothing to merge, or the folder
        can't be written to.
    """
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    least = len(alphabet) + len(special_tokens) + 1
    if size < least:
        raise InputError(f'a vocabulary of {size} byte pairs is too small: give {least} or more')
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(special_tokens),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator((line for _, line in read_lines(path)), trainer)
    if tokenizer.get_vocab_size() < least:
        raise InputError(f'{str(path)!r} has nothing to learn byte pairs from')
    tokenizer.model.save(make_writable_dir(folder))
    return os.path.join(folder, next(iter(BPE_NAMES)))
