"""Labels of words, and how well they are predicted."""

import re

from ...errors import MissingExtraError

__all__ = ['entity_scorer', 'has_entities', 'labels_of_sentences', 'score_tags']

OUTSIDE = 'O'
# Schemes of entities: B(egin), I(nside), O; and for a last and a single word E, S or L, U.
_ENTITY = re.compile('[BIESLU]-.')
_AS_IOBES = {'L': 'E', 'U': 'S'}


def labels_of_sentences(sentences):
    """The labels that sentences have, sorted, O the first.

    Parameters
    ----------
    sentences : iterable of Sentence

    Returns
    -------
    list of str
    """
    labels = {label for sentence in sentences for label in sentence.labels}
    return sorted(labels, key=lambda label: (label != OUTSIDE, label))


def has_entities(labels):
    """Whether labels mark entities (as ``B-PER`` does), rather than single words.

    Parameters
    ----------
    labels : sequence of str
    """
    marks = [label for label in labels if label != OUTSIDE]
    return bool(marks) and all(_ENTITY.match(label) for label in marks)


def score_tags(right, predicted, entities=None):
    """How well labels were predicted.

    Parameters
    ----------
    right, predicted : sequence of sequence of str
        The labels of each sentence.
    entities : bool, optional
        Whether the labels mark entities, in any of the schemes IOB1, IOB2, IOBES and BILOU; by
        default `has_entities` of those that there are.

    Returns
    -------
    dict of str to float
        ``accuracy`` of the words; with `entities` also ``precision``, ``recall`` and ``f1`` of
        these, of all types together, by seqeval, which counts as CoNLL's ``conlleval`` does.

    Raises
    ------
    MissingExtraError
        If seqeval is needed and not installed.
    """
    pairs = [pair for sentences in zip(right, predicted) for pair in zip(*sentences)]
    metrics = {'accuracy': sum(one == other for one, other in pairs) / len(pairs)}
    if entities is None:
        entities = has_entities({label for pair in pairs for label in pair})
    if entities:
        scores = entity_scorer()(
            _as_iobes(right), _as_iobes(predicted), average='micro', zero_division=0
        )
        metrics.update(zip(('precision', 'recall', 'f1'), map(float, scores)))
    return metrics


def entity_scorer():
    """seqeval's function for precision, recall, F1 and support.

    Raises
    ------
    MissingExtraError
        If seqeval isn't installed.
    """
    try:
        from seqeval.metrics.sequence_labeling import precision_recall_fscore_support
    except ImportError as error:
        raise MissingExtraError.of('seqeval', 'tagging') from error
    return precision_recall_fscore_support


def _as_iobes(sentences):
    """The labels with the letters that seqeval knows."""
    return [
        [_AS_IOBES.get(label[0], label[0]) + label[1:] for label in labels] for labels in sentences
    ]
