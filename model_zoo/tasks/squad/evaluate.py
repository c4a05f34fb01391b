"""Answers of a model to the questions of a set, and their scores."""

import math
import time

from ..evaluate import evaluate_segments
from ..examination import Examination
from .answers import find_answers, write_answers
from .metrics import best_thresholds, normalize_answer, score_v1, score_v2

__all__ = ['SquadEvaluator']


class SquadEvaluator:
    """Finds answers to the questions of a dev set, and scores them.

    Parameters
    ----------
    forward : callable
        ``forward(batch) -> (starts, ends)``, each an NDArray of shape (batch, length).
    loader : BucketedLoader
        Of `SquadFeatures`.
    version_2 : bool
        Whether there may be no answer.
    **options
        The others of `find_answers`.
    """

    def __init__(self, forward, loader, version_2=False, **options):
        self._forward, self._loader = forward, loader
        self._version_2, self._options = version_2, options
        self._squad, self._found = loader.samples.squad, None

    @property
    def num_questions(self):
        return len(self._squad.questions)

    def find_answers(self, guard=None):
        """The answers, and the number of windows per second."""
        started = time.perf_counter()
        scores = [None] * self._loader.num_samples
        for batch in self._loader:
            if guard is not None:
                guard.check()
            starts, ends = (
                each.astype('float32').asnumpy() for each in self._forward(batch)
            )
            sizes = batch.valid_length.asnumpy().astype(int)
            for index, start, end, size in zip(batch.indices, starts, ends, sizes):
                scores[index] = start[:size], end[:size]
        speed = len(scores) / (time.perf_counter() - started)
        answers = find_answers(
            self._loader.samples, scores, version_2=self._version_2, **self._options
        )
        return answers, speed

    def _score(self, answers):
        """The official metrics."""
        questions = self._squad.questions
        metrics = self._score_predictions(answers.predictions)
        if not self._version_2:
            return metrics
        metrics.update(best_thresholds(questions, answers.predictions, answers.null_odds))
        return metrics

    def _score_predictions(self, predictions):
        score = score_v2 if self._version_2 else score_v1
        return score(self._squad.questions, predictions)

    def evaluate(self, guard=None):
        """See `evaluate_segments`; epochs are compared by F1 with the threshold given."""

        def measure(segment, guard):
            answers, speed = self.find_answers(guard)
            return self._score(answers), speed

        return evaluate_segments(measure, ['dev'], 'f1', guard)

    def predict(self, folder):
        """Write the answers; returns the files' names."""
        self._found, _ = self.find_answers()
        return write_answers(folder, self._found)

    def examine(self):
        """The `Examination` of what `predict` has found; None for a set without right answers.

        The loss of a question is that of the probabilities of its right answers among the best.
        """
        questions = self._squad.questions
        if questions[0].answers is None:
            return None
        right = [{normalize_answer(each) for each in q.answers} or {''} for q in questions]
        found = [self._found.predictions[question.id] for question in questions]
        labels = [next(iter(question.answers), '') for question in questions]
        return Examination(
            'dev',
            [f'{q.text} — {self._squad.paragraphs[q.paragraph]}' for q in questions],
            labels,
            # another right answer is none of the mistakes
            [
                label if normalize_answer(answer) in answers else answer
                for label, answer, answers in zip(labels, found, right)
            ],
            [self._loss(question, answers) for question, answers in zip(questions, right)],
            self._score_predictions({question.id: '' for question in questions}),
            'no answer',
        )

    def _loss(self, question, answers):
        total = sum(
            each['probability'] for each in self._found.nbest[question.id]
            if normalize_answer(each['text']) in answers
        )  # fmt: skip
        return -math.log(min(max(total, 1e-6), 1))

    def evaluate_and_predict(self, folder):
        """Evaluate and write predictions of a trained model, finding the answers once.

        Returns
        -------
        ((float, dict), list of str)
            As `evaluate`, or (0, {}) for a set without right answers; and the files' names.
        """
        answers, speed = self.find_answers()
        scored = evaluate_segments(
            lambda segment, guard: (self._score(answers), speed),
            ['dev'] if self._squad.questions[0].answers is not None else [],
            'f1',
        )
        return scored, write_answers(folder, answers)
