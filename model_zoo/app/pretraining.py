"""The pre-training of BERT, and of similar models: phases, updates, and GluonNLP's log."""

import logging
import os

from ..errors import InputError
from ..tasks.masked_lm import TERMS, formatted_terms
from ..training.callbacks import Profiler, ProgressLogger
from ..util.display import in_number, new_figure, save_figure
from .report import is_picture_due
from .trainer import Trainer

logger = logging.getLogger(__name__)


class PretrainingLogger(ProgressLogger):
    """`ProgressLogger` with the lines of GluonNLP's pre-training scripts."""

    _last = (0, 0.0)

    def on_start(self, loop):
        super().on_start(loop)
        self._last = (loop.state.step, loop.state.seconds)

    def line(self, loop, record):
        step, seconds = record['step'], record['seconds']
        steps, passed = step - self._last[0], seconds - self._last[1]
        self._last = (step, seconds)
        line = (
            f'[step {step}]\t{formatted_terms(record, losses="7.5f", accuracies="4.2f")}\t'
            f'throughput={record["tokens_per_second"] / 1000:.1f}K tks/s\tlr={record["lr"]:.7f} '
            f'time={passed:.2f}, latency={passed * 1000 / steps:.1f} ms/step'
        )
        if 'loss_scale' in record:
            line += f'\tloss_scale={record["loss_scale"]:.0f} skipped={record["skipped"]}'
        return line


def plot_pretraining(path, state, title=''):
    """Draw the losses and accuracies of training and evaluation, by updates, to a PNG file."""
    evaluations = [
        {'step': record['step'], **record['report']['eval']}
        for record in state.epochs
        if record['report']
    ]
    figure = new_figure(10, 4, layout=None)
    for axes, metric, label in zip(figure.subplots(1, 2), ('loss', 'acc'), ('loss', 'accuracy')):
        for color, term in enumerate(TERMS):
            for records, name, style in (
                (state.log, f'{term}, training', '-'),
                (evaluations, f'{term}, evaluation', 'o'),
            ):
                points = [
                    (record['step'], record[f'{term}_{metric}'])
                    for record in records
                    if f'{term}_{metric}' in record
                ]
                if points:
                    axes.plot(*zip(*points), style, color=f'C{color}', label=name)
        axes.set(xlabel='updates', ylabel=label)
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend()
    figure.suptitle(title)
    save_figure(path, figure)


class PretrainingTrainer(Trainer):
    """A training with phases, which counts updates instead of epochs, and with GluonNLP's log."""

    logger_class = PretrainingLogger

    def open_folder(self):
        return super().open_folder(trains=False, verbose=self.settings.verbose)

    def train(self):
        settings, folder, workers = self.settings, self.folder, self.task.workers
        store = self._store(settings.phase2)
        callbacks = [self]
        if settings.profile and workers.rank == 0:
            callbacks.append(Profiler(settings.profile))
        loop = self.make_loop(
            settings.training_steps, store, callbacks, evaluate_interval=settings.eval_interval
        )
        self._resume(loop, store)
        logger.info(
            'training: %s of %d x %d %s, by %s with %s',
            in_number(settings.training_steps, 'steps'),
            self.accumulate * workers.size,
            settings.batch_size,
            'tokens' if settings.use_avg_len else 'samples',
            in_number(workers.size, 'workers'),
            ', '.join(map(str, self.contexts)),
        )
        loop.run()
        if workers.rank == 0:
            logger.info('Train cost=%.1fs', self.state.seconds)
            self.save(folder.file('model'))
            self._results['model'] = 'model'
            self.write_results(is_final=True)
            logger.info('the model is in %s', folder.file('model'))

    def on_epoch(self, loop, record):
        self.write_results()

    def write_results(self, is_final=False):
        curves = self.folder.file('curves.png')
        if is_final or is_picture_due(curves):
            model = os.path.basename(os.path.normpath(self.settings.model))
            plot_pretraining(curves, self.state, f'pre-training {model}')
        self.folder.write('results.json', self.settings, self.state, **self._results)
        if self.state.epochs:
            record = self.state.epochs[-1]
            self.folder.write_eval_results(record['report'], record)

    def _store(self, phase2):
        """The checkpoints of a phase; each phase counts its own steps."""
        name = 'checkpoints_phase2' if phase2 else 'checkpoints'
        return self.folder.checkpoints(self.settings.keep_checkpoints, name)

    def _resume(self, loop, store):
        """Restore what an earlier run has saved, if the flags say so."""
        settings, path = self.settings, None
        if settings.resume:
            path = loop.resume()
        if path is None and settings.phase2:
            checkpoint = self._store(phase2=False).at(settings.start_step)
            checkpoint.restore(loop.block, loop.updater.trainer)
            loop.state.step = settings.start_step - settings.phase1_num_steps
            path = checkpoint.path
        elif path is None and settings.start_step:
            path = loop.resume(settings.start_step)
        elif path is None and not settings.resume and store.paths():
            if not settings.overwrite_output_dir:
                raise InputError(
                    f'{settings.output_dir!r} has checkpoints of another training: add `resume` to '
                    'continue it, `overwrite_output_dir` to replace it, or name another folder',
                    field='output_dir',
                )
            if self.task.workers.rank == 0:
                store.clear()
        if path is not None:
            logger.info('continuing from %s', path)

    def infer(self):
        report = self.evaluator.evaluate()[1]
        if self.task.workers.rank == 0:
            self.folder.write('evaluation.json', self.settings, **report)
            self.folder.write_eval_results(report)
