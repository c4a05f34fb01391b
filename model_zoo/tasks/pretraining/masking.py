"""Masks of the masked language model, for many sequences at once.

Source: Devlin et al. 2018, section 3.1; ``create_masked_lm_predictions`` of google-research/bert.
"""

import numpy as np

__all__ = ['draw_positions', 'replace_masked']


def draw_positions(candidates, counts, most, rng, begins_word=None):
    """Draw the positions to predict.

    Parameters
    ----------
    candidates : numpy.ndarray, shape (samples, length), bool
        Where a mask may be.
    counts : numpy.ndarray, shape (samples,)
        How many to draw in each sample, or all candidates if these are fewer.
    most : int
        Not below any of `counts`.
    rng : numpy.random.Generator
    begins_word : numpy.ndarray, shape (samples, length), bool, optional
        Draw whole words: their candidates are taken together, and a word that has more than are
        still wanted is passed over.

    Returns
    -------
    numpy.ndarray, shape (samples, most)
        Each row rises, and ends with the length where there are no more.
    """
    length = candidates.shape[1]
    if begins_word is None:
        places, allowed = _in_random_order(candidates, rng)
        drawn = places[:, :most]
        drawn[np.arange(drawn.shape[1]) >= np.minimum(counts, allowed)[:, None]] = length
    else:
        drawn = np.where(
            _draw_words(candidates, counts, begins_word, rng), np.arange(length), length
        )
    positions = np.sort(drawn, axis=1)[:, :most]
    return np.pad(positions, ((0, 0), (0, most - positions.shape[1])), constant_values=length)


def _in_random_order(chosen, rng):
    """The true places of each row in random order, with the others behind; how many are true."""
    length = chosen.shape[1]
    columns = np.arange(length, dtype=np.uint32)
    low_bits = np.uint32((1 << length.bit_length()) - 1)
    # random high bits over the place: sorting numbers is quicker than finding out their order
    keys = rng.integers(2**32, size=chosen.shape, dtype=np.uint32)
    keys |= low_bits
    keys ^= low_bits ^ columns
    np.putmask(keys, ~chosen, np.uint32(2**32 - 1))
    keys.sort(axis=1)
    keys &= low_bits
    return keys, chosen.sum(axis=1)


def _draw_words(candidates, counts, begins_word, rng):
    rows, length = np.arange(len(candidates)), candidates.shape[1]
    first = candidates & begins_word
    first[rows, candidates.argmax(axis=1)] |= candidates.any(axis=1)  # whatever it is
    begin = np.maximum.accumulate(np.where(first, np.arange(length), 0), axis=1)
    flat = (begin + rows[:, None] * length)[candidates]
    sizes = np.bincount(flat, minlength=candidates.size).reshape(candidates.shape)
    places, numbers = _in_random_order(first, rng)
    left, taken = np.array(counts), np.zeros(candidates.shape, bool)
    for number, words in enumerate(places.T[: numbers.max(initial=0)]):  # one of each row
        words = np.minimum(words, length - 1)  # rows with fewer words have no place here
        size = sizes[rows, words]
        fits = (number < numbers) & (size <= left)
        taken[rows[fits], words[fits]] = True
        left[fits] -= size[fits]
        if not left.any():
            break
    return candidates & np.take_along_axis(taken, begin, axis=1)


def replace_masked(input_ids, positions, mask_id, vocab_size, rng):
    """Hide the tokens to predict: 80 % become [MASK], 10 % stay, 10 % become any token.

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
