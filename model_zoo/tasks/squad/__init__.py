"""SQuAD, question answering by a span of a text: from its JSON to answers and their scores.

``read_squad`` -> ``encode_squad`` (kept on disk) -> ``SquadFeatures`` -> the model ->
``find_answers`` -> ``score_v1`` or ``score_v2``.
"""

from .answers import Answers, find_answers, write_answers
from .encode import SquadEncoding, encode_squad
from .evaluate import SquadSettings, SquadTask
from .features import SquadFeatures
from .metrics import best_thresholds, score_v1, score_v2
from .reader import Question, SquadSet, find_squad, read_squad

__all__ = [
    'Answers',
    'Question',
    'SquadEncoding',
    'SquadFeatures',
    'SquadSet',
    'SquadSettings',
    'SquadTask',
    'best_thresholds',
    'encode_squad',
    'find_answers',
    'find_squad',
    'read_squad',
    'score_v1',
    'score_v2',
    'write_answers',
]
