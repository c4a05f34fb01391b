"""The two files of a byte pair encoding: tokens with their ids, and pairs to merge."""

import logging
import os

from tokenizers import models

from ..errors import InputError, reporting
from ..util.reading import read_json, read_lines
from .vocab import check_tokens

__all__ = ['has_word_ends', 'read_bpe_vocab', 'read_merges', 'read_pairs']

_log = logging.getLogger(__name__)


def read_bpe_vocab(path):
    """Read a JSON object of tokens and their ids, from 0 on; a gap is logged as a warning."""
    path = os.fspath(path)
    ids = read_json(path, 'vocabulary', dict[str, int])
    if not ids:
        raise InputError(f'vocabulary {path!r} has no tokens')
    check_tokens(ids, f'vocabulary {path!r}')
    ids = dict(sorted(ids.items(), key=lambda item: item[1]))
    owners = {}
    for token, token_id in ids.items():
        if token_id < 0 or token_id in owners:
            other = f', as {owners[token_id]!r} has' if token_id in owners else ''
            raise InputError(
                f'vocabulary {path!r}: tokens must have ids from 0 on, each one of its own; token '
                f'{token!r} has {token_id}{other}'
            )
        owners[token_id] = token
    gaps = max(owners) + 1 - len(ids)
    if gaps:
        _log.warning(
            'vocabulary %r: no token has %d of the ids up to %d; is it whole?',
            path,
            gaps,
            max(owners),
        )
    return ids


def read_merges(path):
    """Read pairs of symbols, one per line, in order; a first line ``#version`` is skipped."""
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


def read_pairs(vocab_file, merges_file, **options):
    """Read the ids and ranks of two files, and make the library's model of them."""
    ids, ranks = read_bpe_vocab(vocab_file), read_merges(merges_file)
    with reporting(f'{merges_file!r} does not fit {vocab_file!r}', errors=Exception):
        # a symbol that the vocabulary lacks is an error where that lacks <unk>, too
        return ids, ranks, models.BPE(ids, list(ranks), unk_token='<unk>', **options)


def has_word_ends(path):
    """Whether the merges in a file mark the ends of words, as those of OpenAI GPT do."""
    return any(line.rstrip().endswith('</w>') for _, line in read_lines(os.fspath(path)))
