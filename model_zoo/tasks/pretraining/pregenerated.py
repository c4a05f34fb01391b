"""Samples in pytorch-pretrained-bert's files: ``epoch_N.json``, and their ``epoch_N_metrics.json``.

Each line is a sample, with tokens instead of ids.
"""

import json
import os
import re

import numpy as np

from ...errors import InputError
from ...util.files import atomic_write, parse_json, read_json, write_json
from ...util.lines import read_lines
from .samples import Samples, padded_rows

__all__ = ['epoch_of', 'read_epoch', 'read_epoch_lengths', 'write_epoch']

_NAME = re.compile(r'epoch_(\d+)\.json')
_COUNT, _LENGTH = 'num_training_examples', 'max_seq_len'
_FIELDS = ('tokens', 'segment_ids', 'masked_lm_positions', 'masked_lm_labels', 'is_random_next')


def epoch_of(path):
    """The number of the epoch in a file's name.

    Parameters
    ----------
    path : str

    Returns
    -------
    int or None
        None if the file isn't one of these.
    """
    match = _NAME.fullmatch(os.path.basename(path))
    return None if match is None else int(match[1])


def read_epoch(path, vocab):
    """Read a file of samples.

    Parameters
    ----------
    path : str
    vocab : gluonnlp.vocab.BERTVocab
        That they were made with.

    Returns
    -------
    Samples
    """
    rows = [_row(path, number, line, vocab) for number, line in read_lines(path) if line.strip()]
    metrics = _read_metrics(path)
    if len(rows) != metrics[_COUNT]:
        raise InputError(
            f'{path!r} has {len(rows)} samples, and its metrics say {metrics[_COUNT]}: it was cut '
            'off; make it anew, or leave it out'
        )
    if not rows:
        return Samples.none()
    tokens, types, places, labels, is_random = zip(*rows)
    lengths = np.array(list(map(len, tokens)), np.int32)
    width, masks = int(lengths.max()), max(map(len, places))
    if width > metrics[_LENGTH]:
        raise InputError(
            f'{path!r} has a sample of {width} tokens, and its metrics say {metrics[_LENGTH]} at '
            'most'
        )
    return Samples(
        padded_rows(tokens, width),
        padded_rows(types, width),
        padded_rows(places, masks),
        padded_rows(labels, masks),
        padded_rows([[1] * len(each) for each in places], masks).astype(np.float32),
        np.array(is_random, np.int32),
        lengths,
    )


def read_epoch_lengths(path):
    """The lengths of a file's samples; quicker than reading them all.

    Parameters
    ----------
    path : str

    Returns
    -------
    numpy.ndarray, shape (samples,), int32
    """
    lines = ((number, line) for number, line in read_lines(path) if line.strip())
    lengths = [len(_fields(path, number, line)['tokens']) for number, line in lines]
    if not lengths:
        raise InputError(f'{path} has no samples: leave it out')
    return np.array(lengths, np.int32)


def _fields(path, number, line):
    try:
        fields = parse_json(line)
        if not all(isinstance(fields[name], list) for name in _FIELDS[:-1]):
            raise ValueError('a field is no list')
        if not isinstance(fields['is_random_next'], (bool, int)):
            raise ValueError('is_random_next is neither true nor false')
        return fields
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f'{path!r}, line {number}: it is no sample as pregenerate_training_data.py writes it '
            f'({error})'
        ) from error


def _row(path, number, line, vocab):
    """The fields of a sample, with ids in the place of tokens."""
    fields = _fields(path, number, line)
    known = vocab.token_to_idx
    for token in (*fields['tokens'], *fields['masked_lm_labels']):
        if not isinstance(token, str) or token not in known:
            raise InputError(
                f'{path!r}, line {number}: the model has no token {token!r:.40}; the samples are '
                'of another vocabulary'
            )
    names = 'tokens', 'masked_lm_labels'
    tokens, labels = ([known[each] for each in fields[name]] for name in names)
    types, places = fields['segment_ids'], fields['masked_lm_positions']
    if not all(isinstance(each, int) and 0 <= each < 2**31 for each in (*types, *places)):
        raise InputError(f'{path!r}, line {number}: segment_ids or positions are no whole numbers')
    if not tokens or len(types) != len(tokens) or len(places) != len(labels):
        raise InputError(
            f'{path!r}, line {number}: it has {len(tokens)} tokens with {len(types)} segment_ids, '
            f'and {len(places)} masks with {len(labels)} labels'
        )
    return tokens, types, places, labels, bool(fields['is_random_next'])


def _metrics_path(path):
    return f'{os.path.splitext(path)[0]}_metrics.json'


def _read_metrics(path):
    place = _metrics_path(path)
    metrics = read_json(place, 'the metrics of the samples,')
    if not isinstance(metrics, dict) or not all(
        isinstance(metrics.get(name), int) for name in (_COUNT, _LENGTH)
    ):
        raise InputError(f'{place!r} lacks the number {_COUNT} or {_LENGTH}')
    return metrics


def write_epoch(path, parts, vocab, max_seq_length):
    """Write samples as ``epoch_N.json``, and their number beside it.

    Parameters
    ----------
    path : str
    parts : iterable of Samples
    vocab : gluonnlp.vocab.BERTVocab
        That they were made with.
    max_seq_length : int
    """
    count, tokens = 0, vocab.idx_to_token
    with atomic_write(path) as file:
        for samples in parts:
            masks = samples.masked_lm_weights.sum(axis=1).astype(int)
            for row, (length, most) in enumerate(zip(samples.valid_lengths, masks)):
                values = (
                    [tokens[i] for i in samples.input_ids[row, :length]],
                    samples.segment_ids[row, :length].tolist(),
                    samples.masked_lm_positions[row, :most].tolist(),
                    [tokens[i] for i in samples.masked_lm_ids[row, :most]],
                    bool(samples.next_sentence_labels[row]),
                )
                fields = dict(zip(_FIELDS, values))
                order = ('tokens', 'segment_ids', 'is_random_next', *_FIELDS[2:4])
                file.write(json.dumps({name: fields[name] for name in order}) + '\n')
                count += 1
    write_json(_metrics_path(path), {_COUNT: count, _LENGTH: max_seq_length})
