"""Texts and their labels."""

from ..errors import InputError
from ..inference import pipeline
from ..util.files import state_of
from .records import write_records

__all__ = ['Labeller']

_classifier = None  # of this process: (options, pipeline)


class Labeller:
    """Labels texts, or a file of them; for a worker.

    Parameters
    ----------
    options : dict
        Of `pipeline`, with ``model``.
    pairs : bool
        Whether a text is two, with a tab between them.
    all_scores : bool
        Whether the scores of all labels are wanted.
    """

    def __init__(self, options, pairs=False, all_scores=False):
        self._options, self._pairs, self._all_scores = options, pairs, all_scores

    @property
    def settings(self):
        """What the records depend on, plain JSON."""
        model = sorted(state_of(self._options['model']))
        return [self._options, self._pairs, self._all_scores, model]

    def records(self, texts):
        """A dict for each text."""
        global _classifier
        if _classifier is None or _classifier[0] != self._options:
            options = dict(self._options)
            made = pipeline('text-classification', options.pop('model'), **options)
            _classifier = self._options, made
        shown = []  # texts that wait for their results

        def items():
            for text in texts:
                shown.append(text)
                yield _split_pair(text) if self._pairs else text

        for result in _classifier[1](items(), top_k=None if self._all_scores else 1):
            best = {'label': result[0]['label'], 'score': result[0]['score']}
            if self._all_scores:
                best = {'scores': {each['label']: each['score'] for each in result}}
            yield {**best, 'text': shown.pop(0)}

    def __call__(self, task):
        """Write the records of a `FileTask`; returns their number."""
        texts = (line for line in task.lines() if line.strip())
        return write_records(self.records(texts), task.output.rpartition('.')[2], task.output)


def _split_pair(line):
    """The two texts of a line."""
    texts = tuple(line.split('\t'))
    if len(texts) != 2:
        raise InputError(f'--pairs: a line has {len(texts)} texts with tabs between: {line!r:.80}')
    return texts
