"""The two files of a byte pair encoding: tokens with their ids, and pairs to be merged."""

import json
import os

from ..errors import InputError
from ..util.lines import read_lines

__all__ = ['read_bpe_vocab', 'read_merges']


def read_bpe_vocab(path):
    """Read a JSON object of tokens and their ids.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    dict of str to int
        In the order of the ids, which go from 0 on.

    Raises
    ------
    InputError
        If the file can't be read or is something else.
    """
    path = os.fspath(path)
    text = ''.join(line for _, line in read_lines(path))
    try:
        ids = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f'vocabulary {path!r} is not readable JSON: {error}') from None
    if not isinstance(ids, dict) or not ids or any(type(i) is not int for i in ids.values()):
        raise InputError(f'vocabulary {path!r} must be a JSON object of tokens and ids')
    ids = dict(sorted(ids.items(), key=lambda item: item[1]))
    for wanted, (token, found) in enumerate(ids.items()):
        if found != wanted:
            raise InputError(
                f'vocabulary {path!r}: {len(ids)} tokens must have the ids 0 to {len(ids) - 1}, '
                f'each once; token {token!r} has {found} where {wanted} is expected'
            )
    return ids


def read_merges(path):
    """Read pairs of symbols, one pair a line, the first to be merged at the top.

    A first line that begins with ``#version`` is passed over. (The original passes over the first
    line whatever it is, and over what follows the last line break.)

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    dict of (str, str) to int
        Rank of each pair.

    Raises
    ------
    InputError
        If the file can't be read, holds no pairs, or a line isn't one.
    """
    path, ranks = os.fspath(path), {}
    for number, line in read_lines(path):
        pair = tuple(line.split())
        if (number == 1 and line.startswith('#version')) or not pair:
            continue
        if len(pair) != 2:
            raise InputError(
                f'merges {path!r}, line {number}: {line.strip()!r:.80} must be two symbols with a '
                'space between; is the file whole?'
            )
        ranks[pair] = number
    if not ranks:
        raise InputError(f'merges {path!r} holds no pairs of symbols')
    return {pair: rank for rank, pair in enumerate(sorted(ranks, key=ranks.get))}
