"""SQuAD's metrics, in percent, equal to those of its official scripts on the same predictions.

Source: ``evaluate-v1.1.py`` and ``evaluate-v2.0.py`` of the SQuAD web site.
"""

import collections
import re
import string

from ...errors import InputError

__all__ = ['best_thresholds', 'normalize_answer', 'score_v1', 'score_v2']

_ARTICLES = re.compile(r'\b(a|an|the)\b')
_PUNCTUATION = str.maketrans('', '', string.punctuation)


def normalize_answer(text):
    """The text in lower case, without ASCII punctuation, articles and superfluous white space."""
    return ' '.join(_ARTICLES.sub(' ', text.lower().translate(_PUNCTUATION)).split())


def _overlap_f1(words, right):
    """F1 of two lists of words."""
    common = sum((collections.Counter(words) & collections.Counter(right)).values())
    if not common:
        return 0.0
    precision, recall = common / len(words), common / len(right)
    return 2 * precision * recall / (precision + recall)


def _check(questions, predictions):
    """Raise InputError unless there are right answers and predictions for all questions."""
    if not questions:
        raise InputError('no questions to evaluate predictions on')
    for question in questions:
        if question.answers is None:
            raise InputError(f'there are no right answers to question {question.id!r}')
        if question.id not in predictions:
            raise InputError(f'there is no prediction for question {question.id!r}')


def score_v1(questions, predictions):
    """Metrics of SQuAD 1.1.

    Parameters
    ----------
    questions : sequence of Question
        Each with a right answer at least.
    predictions : dict
        Question's id -> text.

    Returns
    -------
    OrderedDict
        ``exact_match`` and ``f1``: means over the questions, with the best of the right answers
        for each.
    """
    _check(questions, predictions)
    exact = f1 = 0.0
    for question in questions:
        if not question.answers:
            raise InputError(f'question {question.id!r} has no answer: SQuAD 1.1 has none of these')
        found = normalize_answer(predictions[question.id])
        right = [normalize_answer(answer) for answer in question.answers]
        exact += found in right
        f1 += max(_overlap_f1(found.split(), answer.split()) for answer in right)
    count = len(questions)
    return collections.OrderedDict(exact_match=100 * exact / count, f1=100 * f1 / count)


def _scores_v2(questions, predictions):
    """Id -> 0 or 1 for an exact match, and id -> F1."""
    _check(questions, predictions)
    exact, f1 = {}, {}
    for question in questions:
        found = normalize_answer(predictions[question.id])
        right = [normalize_answer(answer) for answer in question.answers]
        right = [answer for answer in right if answer] or ['']
        exact[question.id] = int(found in right)
        # if one text is empty, the F1 is 1 if the other one is, too
        f1[question.id] = max(
            _overlap_f1(found.split(), answer.split()) if found and answer else found == answer
            for answer in right
        )
    return exact, f1


def score_v2(questions, predictions):
    """Metrics of SQuAD 2.0.

    Parameters
    ----------
    questions : sequence of Question
    predictions : dict
        Question's id -> text, '' for no answer.

    Returns
    -------
    OrderedDict
        ``exact``, ``f1`` and ``total``, the number of questions; the same with ``HasAns_`` and
        ``NoAns_`` before for the questions with and without an answer, where there are any.

    Raises
    ------
    InputError
        If right answers or a prediction are missing.
    """
    exact, f1 = _scores_v2(questions, predictions)
    groups = {
        '': questions,
        'HasAns_': [question for question in questions if question.answers],
        'NoAns_': [question for question in questions if not question.answers],
    }
    metrics = collections.OrderedDict()
    for prefix, group in groups.items():
        if group:
            metrics[f'{prefix}exact'] = 100 * sum(exact[each.id] for each in group) / len(group)
            metrics[f'{prefix}f1'] = 100 * sum(f1[each.id] for each in group) / len(group)
            metrics[f'{prefix}total'] = len(group)
    return metrics


def best_thresholds(questions, predictions, null_odds):
    """The best metrics that another threshold for no answer would give to the same predictions.

    Parameters
    ----------
    questions, predictions
        See `score_v2`.
    null_odds : dict
        Question's id -> score of no answer minus the best answer's. Questions over the threshold
        have no answer.

    Returns
    -------
    OrderedDict
        ``best_exact``, ``best_exact_thresh``, ``best_f1``, ``best_f1_thresh``.
    """
    metrics = collections.OrderedDict()
    answers = {question.id: question.answers for question in questions}
    for name, scores in zip(('exact', 'f1'), _scores_v2(questions, predictions)):
        # From a threshold below all, with which only the questions without an answer are right,
        # upwards: each question in turn gets its prediction.
        total = best = sum(not right for right in answers.values())
        threshold = 0.0
        for key in sorted(null_odds, key=null_odds.get):
            if answers[key]:
                total += scores[key]
            elif predictions[key]:
                total -= 1
            if total > best:
                best, threshold = total, null_odds[key]
        metrics[f'best_{name}'] = 100 * best / len(questions)
        metrics[f'best_{name}_thresh'] = threshold
    return metrics
