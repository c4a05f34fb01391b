"""The files of a training that are written after each epoch, and at its end."""

import os
import re

from ..training.callbacks import Callback
from .report import Curves, log_summary, next_command, plot_curves, write_card, write_report_page

__all__ = ['EpochFiles']


class EpochFiles(Callback):
    """After each epoch: its parameters, and results so far; the curves at times.

    Parameters
    ----------
    folder : RunFolder
    name : str
        Of the model, in the names of the files with parameters.
    title : str
    metric : str, optional
        What the score is; None if nothing is evaluated.
    results : dict
        Further entries of results.json.
    """

    def __init__(self, folder, name, title, metric, results):
        self._folder, self._name = folder, name
        self._title, self._metric, self._results = title, metric, results
        label = 'updates' if metric is None else f'dev {metric}'
        path = folder.file('curves.png')
        self._curves = Curves(lambda state: plot_curves(path, state, title, label))
        self._pattern = re.compile(rf'model_{re.escape(name)}_\d+\.params')

    def path(self, epoch):
        """The file of an epoch, which a record counts from 1 and the name of the file from 0."""
        return self._folder.file(f'model_{self._name}_{epoch - 1}.params')

    def on_epoch(self, loop, record):
        state, epoch = loop.state, record['epoch']
        loop.block.save_parameters(self.path(epoch))
        loop.weights = self.path(epoch)
        last = range(epoch + 1 - self._folder.args.keep_checkpoints, epoch + 1)
        kept = {os.path.basename(self.path(epoch)) for epoch in (*last, state.best['epoch'])}
        for name in os.listdir(self._folder.path):
            if self._pattern.fullmatch(name) and name not in kept:
                os.remove(self._folder.file(name))
        self._curves.update(state)
        self._write(state)

    def _write(self, state, command=None, **more):
        epoch = state.best['epoch']
        parameters = os.path.basename(self.path(epoch))
        best = {'epoch': epoch, 'parameters': parameters, **state.best['report']}
        results = self._folder.write(
            'results.json', state, **{**self._results, 'best': best, **more}
        )
        record = state.epochs[-1] if self._folder.args.save_last else state.best
        self._folder.write_eval_results(record['report'], record)
        path = self._folder.file('report.html')
        write_report_page(path, self._title, results, self._metric, command)
        return results

    def finish(self, state, about, examination=None, **more):
        """Write the files of the whole training, and log where they are.

        Parameters
        ----------
        state : TrainingState
        about : About
        examination : Examination, optional
        **more
            Further entries of results.json.
        """
        model = self._folder.file('best_model')
        command = next_command(about, self._folder.place('best_model'))
        if examination is not None:
            more['examination'] = {examination.segment: examination.to_dict()}
        self._curves.finish(state)
        results = self._write(state, command, **more)
        curves = self._folder.file('curves.png')
        write_card(model, self._title, about, results, self._metric, curves)
        log_summary(results, self._folder.path, command, self._folder.place())
