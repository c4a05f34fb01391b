"""Masks of the masked language model, for many sequences at once.

Source: Devlin et al. 2018, section 3.1; ``create_masked_lm_predictions`` of google-research/bert.
"""

import numpy as np

__all__ = ['draw_positions', 'replace_masked']


def draw_positions(candidates, counts, most, rng, begins_word=None):
    """Draw the positions that are to be predicted.

    Parameters
    ----------
    candidates : numpy.ndarray, shape (samples, length), bool
        Where a mask may be.
    counts : numpy.ndarray, shape (samples,)
        How many to draw in each sample; fewer where there aren't so many candidates.
    most : int
        Not below any of `counts`.
    rng : numpy.random.Generator
    begins_word : numpy.ndarray, shape (samples, length), bool, optional
        Draw whole words: their candidates are taken together, and a word that has more than are
        still wanted is passed over.

    Returns
    -------
    numpy.ndarray, shape (samples, most), int64
        Each row rises, and ends with the length where there are no more.
    """
    length = candidates.shape[1]
    if begins_word is None:
        drawn = _draw_tokens(candidates, counts, min(most, length), rng)
    else:
        drawn = _draw_words(candidates, counts, begins_word, rng)
    positions = np.sort(drawn, axis=1)[:, :most]
    return np.pad(positions, ((0, 0), (0, most - positions.shape[1])), constant_values=length)


def _draw_tokens(candidates, counts, most, rng):
    length = candidates.shape[1]
    keys = rng.random(candidates.shape, dtype=np.float32)
    keys[~candidates] = 2
    # those of the smallest keys, found by the quicker half of sorting
    drawn = np.argpartition(keys, most - 1, axis=1)[:, :most]
    keys = np.take_along_axis(keys, drawn, axis=1)
    order = np.argsort(keys, axis=1)
    keys = np.take_along_axis(keys, order, axis=1)
    drawn = np.take_along_axis(drawn, order, axis=1)
    drawn[(np.arange(most) >= counts[:, None]) | (keys > 1)] = length
    return drawn


def _draw_words(candidates, counts, begins_word, rng):
    rows, length = np.arange(len(candidates)), candidates.shape[1]
    places = np.arange(length)
    # the first candidate after something else begins a word, whatever it is
    after_other = np.pad(~candidates[:, :-1], ((0, 0), (1, 0)), constant_values=True)
    first = candidates & (begins_word | after_other)
    word_of = np.maximum.accumulate(np.where(first, places, 0), axis=1)
    flat = (word_of + rows[:, None] * length)[candidates]
    sizes = np.bincount(flat, minlength=candidates.size).reshape(candidates.shape)
    keys = rng.random(candidates.shape, dtype=np.float32)
    keys[~first] = 2
    order = np.argsort(keys, axis=1)
    left, taken = np.array(counts), np.zeros(candidates.shape, bool)
    for words in order.T[: first.sum(axis=1).max(initial=0)]:  # of each row one, in drawn order
        size = sizes[rows, words]
        fits = first[rows, words] & (size <= left)
        taken[rows[fits], words[fits]] = True
        left[fits] -= size[fits]
        if not left.any():
            break
    return np.where(candidates & np.take_along_axis(taken, word_of, axis=1), places, length)


def replace_masked(input_ids, positions, mask_id, vocab_size, rng):
    """Hide what is to be predicted: 80 % become [MASK], 10 % stay, 10 % become any token.

    Parameters
    ----------
    input_ids : numpy.ndarray, shape (samples, length), int32
        Changed in place.
    positions : numpy.ndarray, shape (samples, most)
        As `draw_positions` gives them.
    mask_id, vocab_size : int
    rng : numpy.random.Generator

    Returns
    -------
    masked_ids : numpy.ndarray, shape (samples, most), int32
        What was there; 0 where a row has no more positions.
    drawn : numpy.ndarray, shape (samples, most), bool
        Where it has some.
    """
    drawn = positions < input_ids.shape[1]
    places = np.where(drawn, positions, 0)
    masked_ids = np.take_along_axis(input_ids, places, axis=1)
    chance = rng.random(positions.shape, dtype=np.float32)
    tokens = rng.integers(vocab_size, size=positions.shape, dtype=np.int32)
    tokens[chance < 0.9] = masked_ids[chance < 0.9]
    tokens[chance < 0.8] = mask_id
    input_ids[np.nonzero(drawn)[0], places[drawn]] = tokens[drawn]
    masked_ids[~drawn] = 0
    return masked_ids, drawn
