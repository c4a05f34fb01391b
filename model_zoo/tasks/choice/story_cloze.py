"""The Story Cloze Test: which of two sentences ends a story of four sentences.

Mostafazadeh et al., "A Corpus and Cloze Evaluation for Deeper Understanding of Commonsense
Stories", 2016. The files are read as their authors give them out.
"""

import logging
from typing import NamedTuple, Optional, Tuple

import numpy as np

from ...batches import Sample
from ...errors import InputError
from ...util.files import atomic_write
from ..tables import name_fields, read_rows

__all__ = [
    'Story',
    'StoryClozeFeatures',
    'hold_out',
    'read_story_cloze',
    'write_story_cloze_predictions',
]

logger = logging.getLogger(__name__)

_ID, _LABEL = 'InputStoryid', 'AnswerRightEnding'
_SENTENCES = tuple(f'InputSentence{number}' for number in (1, 2, 3, 4))
_ENDINGS = ('RandomFifthSentenceQuiz1', 'RandomFifthSentenceQuiz2')


class Story(NamedTuple):
    """A story and its possible endings.

    Parameters
    ----------
    guid : str
    context : str
        The four sentences, a space between them.
    endings : tuple of str
        Two.
    label : int or None
        0 or 1 for the right ending; None in files without answers.
    """

    guid: str
    context: str
    endings: Tuple[str, str]
    label: Optional[int]


def read_story_cloze(path):
    """Read a CSV file of the Story Cloze Test.

    Parameters
    ----------
    path : str or os.PathLike
        Its first line names the columns: InputStoryid, InputSentence1 to 4,
        RandomFifthSentenceQuiz1 and 2, and AnswerRightEnding (1 or 2), which may be missing.

    Returns
    -------
    list of Story

    Raises
    ------
    InputError
        If the file can't be read or isn't such a file; the message names the line.
    """
    rows = read_rows(path, 'csv')
    _, header = next(rows, (None, []))
    missing = [name for name in (_ID, *_SENTENCES, *_ENDINGS) if name not in header]
    if missing:
        raise InputError(
            f'{str(path)!r}: its first line lacks {", ".join(missing)}; give a CSV file of the '
            'Story Cloze Test as it was released'
        )
    stories = [
        _story(fields, f'{path}, {place}')
        for place, fields in name_fields(path, header, rows, exact=True)
    ]
    if not stories:
        raise InputError(f'{str(path)!r} has no stories')
    return stories


def _story(fields, place):
    texts = [' '.join(fields[name].strip() for name in _SENTENCES)]
    texts += [fields[name].strip() for name in _ENDINGS]
    if not all(text.strip() for text in texts):
        raise InputError(f'{place}: a story or an ending is empty')
    label = fields.get(_LABEL)
    if label not in (None, '1', '2'):
        raise InputError(f'{place}: {_LABEL} is {label!r}, and must be 1 or 2')
    label = None if label is None else int(label) - 1
    return Story(fields[_ID], texts[0], (texts[1], texts[2]), label)


def hold_out(examples, count):
    """Split examples at random, but always in the same way.

    Parameters
    ----------
    examples : sequence
    count : int
        How many to hold out.

    Returns
    -------
    (list, list)
        The others and those held out, both in the order of `examples`.

    Raises
    ------
    InputError
        If that leaves nothing on one side.
    """
    if not 0 < count < len(examples):
        raise InputError(
            f'{count} of {len(examples)} examples cannot be held out: give a number from 1 to '
            f'{len(examples) - 1}'
        )
    chosen = set(np.random.RandomState(0).permutation(len(examples))[:count].tolist())
    kept = [example for place, example in enumerate(examples) if place not in chosen]
    return kept, [examples[place] for place in sorted(chosen)]


class StoryClozeFeatures:
    """Turns stories into ``start story delimiter ending classify``, one for each ending.

    Where that is longer than the model takes, the longer one of story and ending loses tokens at
    its end until it fits.

    Parameters
    ----------
    encode : callable
        Text -> list of token ids.
    start, delimiter, classify : int
        Ids of the special tokens.
    max_len : int
        Largest number of tokens, the special ones counted.

    References
    ----------
    Radford et al., "Improving Language Understanding by Generative Pre-Training", section 3.3.
    """

    def __init__(self, encode, start, delimiter, classify, max_len):
        if max_len < 5:
            raise InputError(
                f'a length of {max_len} is too small: three special tokens and one of each text '
                'make 5'
            )
        self._encode = encode
        self._start, self._delimiter, self._classify = start, delimiter, classify
        self._room = max_len - 3

    def __call__(self, stories):
        """Encode `stories`, and log how many had to be cut.

        Returns
        -------
        list of Sample
        """
        features, cut = [], 0
        for story in stories:
            context = self._encode(story.context)
            endings = [self._encode(ending) for ending in story.endings]
            cut += any(len(context) + len(ending) > self._room for ending in endings)
            choices = tuple(self._join(context, ending) for ending in endings)
            features.append(Sample(choices, label=story.label))
        if cut:
            logger.warning(
                '%d of %d stories are longer than %d tokens: cut', cut, len(stories), self._room + 3
            )
        return features

    def _join(self, context, ending):
        # of two long texts half of the room each; what one of them doesn't need is the other's
        for_ending = min(len(ending), max(self._room // 2, self._room - len(context)))
        context, ending = context[: self._room - for_ending], ending[:for_ending]
        return np.array([self._start, *context, self._delimiter, *ending, self._classify], np.int32)


def write_story_cloze_predictions(path, stories, probabilities):
    """Write which ending was chosen for each story, as TSV.

    Parameters
    ----------
    path : str
    stories : sequence of Story
    probabilities : numpy.ndarray, shape (stories, 2)
    """
    with atomic_write(path) as file:
        file.write(f'{_ID}\tprediction\tprobability_1\tprobability_2\t{_LABEL}\n')
        for story, row in zip(stories, probabilities):
            label = '' if story.label is None else story.label + 1
            file.write(f'{story.guid}\t{row.argmax() + 1}\t{row[0]:.6f}\t{row[1]:.6f}\t{label}\n')
