"""Google's and pytorch-pretrained-bert's run_classifier.py: what its flags ask of a classifier."""

import os

from ..errors import InputError
from ..tasks.classification import ClassificationTask
from ..tasks.tables import write_table


class RunClassifierTask(ClassificationTask):
    """Classification with ``--do_eval`` and ``--do_predict``.

    Each needs its set; ``--do_predict`` alone uses no other set, and also writes Google's
    ``test_results.tsv``: without a header, a line per sample in the file's order, and a column per
    class with its probability, or one column with a number.
    """

    def __init__(self, settings, do_eval=False, do_predict=False):
        super().__init__(settings)
        self._evaluates, self._predicts = do_eval, do_predict

    def find_sets(self):
        sets, data_set = super().find_sets(), self.data_set
        tests = {name: name for name in sets if name in data_set.test_segments}
        if self._predicts and not tests:
            raise InputError('needs a test set', field='do_predict')
        if self._evaluates:
            for name in data_set.dev_segments:
                data_set.find(name, self.settings.data_dir)
        is_prediction = self._predicts and not self._evaluates and self.settings.only_inference
        return tests if is_prediction else sets

    def write(self, folder, segment, data, outputs):
        names = super().write(folder, segment, data, outputs)
        if not self._predicts or segment not in self.data_set.test_segments:
            return names
        name = f'{segment}_results.tsv'
        rows = [map('{:.9g}'.format, row) for row in self.target.probabilities(outputs)]
        write_table(os.path.join(folder, name), rows)
        return [name, *names]
