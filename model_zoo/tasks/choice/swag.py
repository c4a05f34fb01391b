"""SWAG, and other tasks of its form: which of several endings continues a text.

Zellers et al., "SWAG: A Large-Scale Adversarial Dataset for Grounded Commonsense Inference", 2018.
The CSV files are read as their authors give them out.
"""

import itertools
import logging
import re
from typing import NamedTuple, Optional, Tuple

import numpy as np

from ...batches import Sample
from ...errors import InputError
from ...util.files import atomic_write
from ...util.lines import read_lines
from ..tables import read_records

__all__ = ['SwagExample', 'SwagFeatures', 'read_swag', 'write_swag_predictions']

logger = logging.getLogger(__name__)

CHUNK = 1024  # examples encoded at once: bounds what the tokenizer remembers of them
_ID, _CONTEXT, _START, _ENDING, _LABEL = 'fold-ind', 'sent1', 'sent2', 'ending', 'label'


class SwagExample(NamedTuple):
    """A text and its possible endings.

    Parameters
    ----------
    guid : str
        The file's ``fold-ind``; without one, the example's number, from 0.
    context : str
        The first sentence.
    start : str
        Beginning of the second sentence, shared by all endings; may be empty.
    endings : tuple of str
    label : int or None
        Number of the right ending, from 0; None in files without answers.
    """

    guid: str
    context: str
    start: str
    endings: Tuple[str, ...]
    label: Optional[int]


def read_swag(path):
    """Read a file of SWAG.

    Parameters
    ----------
    path : str or os.PathLike
        CSV whose first line names the columns (``sent1``, ``sent2``, ``ending0`` and so on, perhaps
        ``label`` and ``fold-ind``; others don't matter), or JSON lines with these fields.

    Returns
    -------
    list of SwagExample
        All with the same number of endings, and all with a label or all without.

    Raises
    ------
    InputError
        If the file can't be read or isn't such a file; the message names the line.
    """
    examples = []
    for place, fields in read_records(path, 'json' if _is_json(path) else 'csv', exact=True):
        place = f'{path}, {place}'
        example = _example(fields, place, str(len(examples)))
        first = examples[0] if examples else example
        if len(example.endings) != len(first.endings):
            raise InputError(
                f'{place}: {len(example.endings)} endings, where the first example has '
                f'{len(first.endings)}'
            )
        if (example.label is None) != (first.label is None):
            raise InputError(f'{place}: give all examples a label, or none')
        examples.append(example)
    if not examples:
        raise InputError(f'{str(path)!r} has no examples')
    return examples


def _is_json(path):
    """Whether the first line that isn't blank begins an object."""
    first = next((line for _, line in read_lines(path) if line.strip()), '')
    return first.lstrip().startswith('{')


def _example(fields, place, guid):
    endings = (f'{_ENDING}{number}' for number in itertools.count())
    names = (_CONTEXT, _START, *itertools.takewhile(fields.__contains__, endings))
    missing = [name for name in (_CONTEXT, _START, 'ending0', 'ending1') if name not in fields]
    if missing:
        raise InputError(
            f'{place}: there is no {", ".join(missing)}; give a file of SWAG as it was released: '
            'CSV with a first line that names the columns, or JSON lines'
        )
    wrong = [name for name in names if not isinstance(fields[name], str)]
    if wrong:
        raise InputError(f'{place}: {wrong[0]} is {fields[wrong[0]]!r}, and must be a text')
    context, start, *endings = (fields[name].strip() for name in names)
    if not context or not all(start or ending for ending in endings):
        raise InputError(f'{place}: {_CONTEXT}, or a continuation of it, is empty')
    label = fields.get(_LABEL)
    if label in (None, ''):
        label = None
    else:
        label = _number(label)
        if label is None or not 0 <= label < len(endings):
            raise InputError(
                f'{place}: {_LABEL} is {fields[_LABEL]!r}, and must be a number from 0 to '
                f'{len(endings) - 1}'
            )
    return SwagExample(str(fields.get(_ID, guid)), context, start, tuple(endings), label)


def _number(value):
    """An int from an int or its digits; None if it is neither."""
    if isinstance(value, str) and re.fullmatch('[0-9]{1,9}', value.strip()):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class SwagFeatures:
    """Turns examples into ``[CLS] context [SEP] start ending [SEP]``, one for each ending.

    Where that is longer than `max_len`, the longer one of the two texts loses tokens at its end
    until it fits.

    Parameters
    ----------
    tokenizer : object
        With ``encode_batch(texts, pairs, max_length=, pad=)``, as ``bert.BertTokenizer`` has it.
    max_len : int
        Largest number of tokens, the special ones counted.

    References
    ----------
    ``run_swag.py`` of pytorch-pretrained-bert 0.6.2.
    """

    def __init__(self, tokenizer, max_len=128):
        if max_len < 5:
            raise InputError(
                f'a length of {max_len} is too small: three special tokens and one of each text '
                'make 5'
            )
        self._tokenizer, self._max_len = tokenizer, max_len

    def __call__(self, examples):
        """Encode `examples`, and log how many had to be cut.

        Returns
        -------
        list of Sample
        """
        features, cut = [], 0
        for start in range(0, len(examples), CHUNK):
            chunk = examples[start : start + CHUNK]
            pairs = [
                (example.context, f'{example.start} {ending}')
                for example in chunk
                for ending in example.endings
            ]
            encoded = self._tokenizer.encode_batch(
                *map(list, zip(*pairs)), max_length=self._max_len, pad=False
            )
            first = 0
            for example in chunk:
                own = slice(first, first + len(example.endings))
                cut += bool((encoded.truncated[own] > 0).any())
                words, types = encoded.input_ids[own], encoded.token_types[own]
                features.append(Sample(tuple(words), tuple(types), example.label))
                first = own.stop
        if cut:
            total = len(examples)
            logger.warning(
                '%d of %d examples are longer than %d tokens: cut', cut, total, self._max_len
            )
        return features


def write_swag_predictions(path, examples, probabilities):
    """Write which ending was chosen for each example, as TSV; endings are counted from 0.

    Parameters
    ----------
    path : str
    examples : sequence of SwagExample
    probabilities : numpy.ndarray, shape (examples, endings)
    """
    names = [f'probability_{number}' for number in range(probabilities.shape[1])]
    with atomic_write(path) as file:
        file.write('\t'.join([_ID, 'prediction', *names, _LABEL]) + '\n')
        for example, row in zip(examples, probabilities):
            cells = [example.guid, str(np.argmax(row)), *(f'{value:.6f}' for value in row)]
            cells.append('' if example.label is None else str(example.label))
            file.write('\t'.join(cells) + '\n')
