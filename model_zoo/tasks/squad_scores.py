"""The metrics of SQuAD, in percent, as the web site's scripts compute them."""

import collections
import re
import string

__all__ = ['score_v1', 'score_v2']

_ARTICLES = re.compile(r'\b(a|an|the)\b')
_PUNCTUATION = str.maketrans('', '', string.punctuation)
_QUOTES = str.maketrans(dict.fromkeys('\'"()<>〈〉《》‘’', ' '))


def normalize_answer(text, characters=False):
    """Return the text in lower case, without ASCII punctuation, articles and extra white space.

    With `characters` as in KorQuAD's script: without quotes and brackets, with articles.
    """
    if characters:
        return ' '.join(text.translate(_QUOTES).lower().translate(_PUNCTUATION).split())
    return ' '.join(_ARTICLES.sub(' ', text.lower().translate(_PUNCTUATION)).split())


def score_v1(questions, predictions, characters=False):
    """Compute the metrics of SQuAD 1.1.

    Parameters
    ----------
    characters : bool
        Whether F1 is over characters, as for KorQuAD and DRCD, not over words.

    Returns
    -------
    dict
        ``exact_match`` and ``f1``: means over the questions, with the best of the right answers
        for each.
    """
    exact, f1 = _scores(questions, predictions, False, characters)
    return {'exact_match': _percent(exact, questions), 'f1': _percent(f1, questions)}


def _scores(questions, predictions, version_2, characters):
    """Return id -> 0 or 1 for an exact match, and id -> F1; the best right answer counts."""
    exact, f1 = {}, {}

    def overlap(predicted, answer):
        texts = predicted, answer
        parts = [[*text.replace(' ', '')] if characters else text.split() for text in texts]
        common = (collections.Counter(parts[0]) & collections.Counter(parts[1])).total()
        if not common:  # of two empty ones 1 in SQuAD 2.0, and 0 in 1.1
            return float(version_2 and parts[0] == parts[1])
        precision, recall = (common / len(part) for part in parts)
        return 2 * precision * recall / (precision + recall)

    for question in questions:
        predicted = normalize_answer(predictions[question.id], characters)
        answers = [normalize_answer(answer, characters) for answer in question.answers]
        if version_2:
            answers = [answer for answer in answers if answer] or ['']
        exact[question.id] = int(predicted in answers)
        f1[question.id] = max(overlap(predicted, answer) for answer in answers)
    return exact, f1


def _percent(scores, questions):
    return 100 * sum(scores[question.id] for question in questions) / len(questions)


def score_v2(questions, predictions, characters=False, null_odds=None):
    """Compute the metrics of SQuAD 2.0.

    Parameters
    ----------
    predictions : dict
        Question's id -> text, '' for no answer.
    characters : bool
        As of `score_v1`.
    null_odds : dict, optional
        Question's id -> score of no answer minus the best answer's.

    Returns
    -------
    dict
        ``exact``, ``f1`` and ``total``, the number of questions; the same with ``HasAns_`` and
        ``NoAns_`` before for the questions with and without an answer, if there are any. With
        `null_odds`, ``best_exact`` and ``best_f1`` of the same predictions with other thresholds
        for no answer, and ``best_exact_thresh`` and ``best_f1_thresh``.
    """
    exact, f1 = _scores(questions, predictions, True, characters)
    groups = {'': questions, 'HasAns_': [each for each in questions if each.answers]}
    groups['NoAns_'] = [each for each in questions if not each.answers]
    metrics = {}
    for prefix, group in groups.items():
        if group:
            metrics[f'{prefix}exact'] = _percent(exact, group)
            metrics[f'{prefix}f1'] = _percent(f1, group)
            metrics[f'{prefix}total'] = len(group)
    for name, scores in (('exact', exact), ('f1', f1)) if null_odds is not None else ():
        # From a threshold below all, with which only the questions without an answer are right,
        # upwards: each question in turn gets its prediction.
        total = best = len(groups['NoAns_'])
        threshold, known = 0.0, {question.id for question in groups['HasAns_']}
        for key in sorted(null_odds, key=null_odds.get):
            if key in known:
                total += scores[key]
            elif predictions[key]:
                total -= 1
            if total > best:
                best, threshold = total, null_odds[key]
        metrics[f'best_{name}'] = 100 * best / len(questions)
        metrics[f'best_{name}_thresh'] = threshold
    return metrics
