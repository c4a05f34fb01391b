"""The evaluation of a model on the sets of a task."""

import itertools
import logging
import time

import numpy as np

from ..tasks.scores import check_finite
from ..util.display import short

logger = logging.getLogger(__name__)


class Evaluator:
    """Scores, predictions and mistakes of a model on the sets of a task."""

    def __init__(self, task, forward, sets, metrics=None):
        self._task, self.forward, self.sets, self._metrics = task, forward, sets, metrics
        self._kept = None  # segment -> outputs of the trained model

    def labelled(self, *segments):
        """Return the segments that have labels and so can be scored."""
        known = filter(self.sets.__contains__, segments)
        return [name for name in known if self._task.is_labelled(self.sets[name].rows)]

    @property
    def dev_sets(self):
        """The labelled sets that are scored after each epoch."""
        return self.labelled(*(name for name in self.sets if name.startswith('dev')))

    def keep(self):
        """Compute the outputs of a set only once from now on, since the model no longer changes."""
        self._kept = {}

    def outputs(self, segment, guard=None):
        """Return the model's outputs on a set."""
        kept = {} if self._kept is None else self._kept
        if segment not in kept:
            outputs = self._task.predict(self.forward, self.sets[segment], guard)
            if isinstance(outputs, np.ndarray):
                check_finite(outputs, segment)
            kept[segment] = outputs
        return kept[segment]

    def evaluate(self, guard=None, segments=None):
        """Score the dev sets, or those named.

        Returns
        -------
        (float, dict)
            The mean of the sets' scores that compare epochs (0 if there are no sets), and what
            `Task.measure` reports of all sets.
        """
        values, report = [], {}
        for segment in self.dev_sets if segments is None else self.labelled(*segments):
            value, part = self._task.measure(self, segment, guard)
            values.append(value)
            report.update(part)
        return float(np.mean(values)) if values else 0.0, report

    def scores(self, segment, guard=None):
        """Return the scores of a set, and samples per second."""
        data, started = self.sets[segment], time.perf_counter()
        outputs = self.outputs(segment, guard)
        speed = data.loader.num_samples / max(time.perf_counter() - started, 1e-9)
        scores = self._task.score(data, outputs)
        if self._metrics is not None:
            labels = [row.label for row in data.rows]
            predictions = self._task.decode(data, outputs)
            given = ([self._task.as_given(each) for each in part] for part in (predictions, labels))
            scores.update(self._metrics(*given))
        return scores, speed

    def predict(self, folder):
        """Write the predictions; returns the files' names."""
        names, kinds = [], self._task.predicted or ()
        for segment in (name for name in self.sets if name.partition('_')[0] in kinds):
            outputs = self.outputs(segment)
            names += self._task.write(folder, segment, self.sets[segment], outputs)
        if names:
            logger.info('predictions: %s', ', '.join(names))
        return names

    def examine(self, folder, report):
        """Write the predictions; returns these files, the scores and the mistakes for the results.

        `report` has the scores of the dev sets.
        """
        self.keep()
        others = [name for name in self.sets if name not in self.dev_sets]
        scores = {**report, **self.evaluate(segments=others)[1]}
        found = {'best_model': scores, 'predictions': self.predict(folder)}
        if 'test' in scores:
            found['test'] = scores['test']
        analysis = self.analyze()
        return {**found, 'examination': analysis} if analysis else found

    def compare(self, model, train):
        """Return the scores of simpler models on the first dev set, as the results' `baselines`."""
        segments = self.dev_sets[:1]
        found = {name: self._task.compare(model, train, self.sets[name]) for name in segments}
        for other, scores in itertools.chain(*map(dict.items, found.values())):
            shown = ', '.join(f'{name} {short(value)}' for name, value in scores.items())
            logger.info('%s, for comparison: %s', other, shown)
        return {'baselines': found} if any(found.values()) else {}

    def analyze(self):
        """Return the `error_analysis` of the first labelled dev set by its name; may be empty."""
        segments = self.dev_sets[:1]
        found = {name: self._task.analyze(self.sets[name], self.outputs(name)) for name in segments}
        return {name: analysis for name, analysis in found.items() if analysis is not None}
