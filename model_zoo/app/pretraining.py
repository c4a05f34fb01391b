"""The pre-training of BERT, and of similar models: phases, updates, and GluonNLP's log."""

import logging

from ..tasks.masked_lm import formatted_terms
from ..training.callbacks import ProgressLogger
from ..util.display import in_number
from .report import plot_curves, write_eval_results
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


class PretrainingTrainer(Trainer):
    """A training with phases, which counts updates instead of epochs, and with GluonNLP's log."""

    logger_class, keeps_epochs = PretrainingLogger, False

    def restore(self):
        """Restore what an earlier run, or the first phase, has saved, if the flags say so."""
        settings, loop = self.settings, self.loop
        path = loop.resume() if settings.resume else None
        if path is None and settings.phase2:
            checkpoint = self.folder.checkpoints().at(settings.start_step)
            checkpoint.restore(loop.block, loop.updater.trainer)
            loop.state.step = settings.start_step - settings.phase1_num_steps
            path = checkpoint.path
        elif path is None and settings.start_step:
            path = loop.resume(settings.start_step)
        elif settings.overwrite_output_dir and self.task.workers.rank == 0:
            loop.store.clear()
        return path

    def extent(self):
        settings, workers = self.settings, self.task.workers
        unit, devices = 'tokens' if settings.use_avg_len else 'samples', self.contexts
        size = f'{self.accumulate * workers.size} x {settings.batch_size} {unit}'
        by = f'{in_number(workers.size, "workers")} with {", ".join(map(str, devices))}'
        return f'{in_number(self.loop.num_steps, "steps")} of {size}, by {by}'

    def write(self):
        logger.info('Train cost=%.1fs', self.state.seconds)
        self.save(self.folder.file('model'))
        self._results['model'] = 'model'
        self.write_results()
        logger.info('the model is in %s', self.folder.file('model'))

    def write_so_far(self):
        """Write the model as it is, and how far an interrupted training came."""
        self.write()

    def on_epoch(self, loop, record):
        self.write_results()

    def write_results(self):
        results = self.folder.write('results.json', self.settings, self.state, **self._results)
        plot_curves(self.folder.file('curves.png'), results)
        if self.state.epochs:
            record = self.state.epochs[-1]
            write_eval_results(self.folder.path, record['report'], record)

    def infer(self):
        report = self.evaluator.evaluate()[1]
        if self.task.workers.rank == 0:
            self.folder.write('evaluation.json', self.settings, **report)
            write_eval_results(self.folder.path, report)
