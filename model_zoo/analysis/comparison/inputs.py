"""What both programs of a comparison read."""

from typing import NamedTuple

import numpy as np

from ...errors import InputError
from ...util.padding import pad_rows

__all__ = ['Inputs', 'make_inputs']

MASKED = 0.15  # of the words, as in BERT's training


class Inputs(NamedTuple):
    """A batch, and the random parts that a task adds to it.

    Attributes
    ----------
    words, token_types : numpy.ndarray, shape (batch, length), int32
    valid_length : numpy.ndarray, shape (batch,), int32
    mask : numpy.ndarray, shape (batch, length), bool
        True where there is no padding.
    answers : numpy.ndarray, shape (2, batch), int32
        First and last token of each row's answer. All are within the shortest row: the originals
        let padding take part in the loss, so that rows are cut to the shortest one for it.
    span_weight : numpy.ndarray, shape (2, units), float32
        The last layer for answers, where a checkpoint has none.
    """

    words: np.ndarray
    token_types: np.ndarray
    valid_length: np.ndarray
    mask: np.ndarray
    answers: np.ndarray
    span_weight: np.ndarray


def make_inputs(config, num_examples, max_length, seed=0, texts=None, tokenizer=None):
    """Make the inputs of a comparison.

    Parameters
    ----------
    config : Config
        The model's.
    num_examples : int
    max_length : int
        In tokens; rows are never longer than the model's context.
    seed : int
    texts : list of str, optional
        The first `num_examples` are read; those for BERT may be pairs, ``'first ||| second'``, and
        15 % of their tokens are masked. Default: random tokens.
    tokenizer : Tokenizer, optional
        Needed for `texts`.

    Returns
    -------
    Inputs
    """
    random = np.random.RandomState(seed)
    limit = getattr(config, 'position_rows', getattr(config, 'n_positions', 1 << 30))
    length = min(max_length, limit)
    if texts is None:
        shape = (num_examples, length)
        valid = random.randint(min(4, length), length + 1, num_examples)
        valid[0] = length
        # RoBERTa's counts positions by the ids that aren't padding's
        words = random.randint(getattr(config, 'first_position', 0), config.vocab_size, shape)
        types = random.randint(0, getattr(config, 'type_vocab_size', 1), shape)
    else:
        words, types, valid = _encode(config, texts[:num_examples], tokenizer, length, seed)
    answers = np.sort(random.randint(0, valid.min(), (2, len(words))), axis=0)
    span_weight = 0.02 * random.randn(2, getattr(config, 'hidden_size', 1))
    words, types, valid, answers = (each.astype('int32') for each in (words, types, valid, answers))
    mask = np.arange(words.shape[1]) < valid[:, None]
    return Inputs(words, types, valid, mask, answers, span_weight.astype('float32'))


def _encode(config, texts, tokenizer, length, seed):
    if hasattr(config, 'position_rows'):  # BERT, or a model like it
        firsts, seconds = zip(*((text.split(' ||| ') + [''])[:2] for text in texts))
        batch = tokenizer.encode_batch(list(firsts), list(seconds), max_length=length)
        special = [tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id]
        drawn = np.random.RandomState(seed).rand(*batch.input_ids.shape) < MASKED
        masked = drawn & ~np.isin(batch.input_ids, special)
        words = np.where(masked, tokenizer.mask_token_id, batch.input_ids)
        return words, batch.token_types, batch.valid_length
    rows = [row for row in (tokenizer.encode(text)[:length] for text in texts) if len(row)]
    if not rows:
        raise InputError('the texts have no tokens')
    words = pad_rows(rows)
    return words, np.zeros_like(words), np.array([len(row) for row in rows])
