"""The pre-training of BERT, and of similar models: phases, updates, and GluonNLP's log."""

import logging
import os

import mxnet as mx

from ..errors import InputError
from ..optimizer import finetune_schedule
from ..tasks.masked_lm import TERMS, formatted_terms
from ..training.callbacks import Callback, Profiler, ProgressLogger, TensorBoardWriter
from ..training.job import checkpoints_of
from ..training.loop import TrainingLoop
from ..training.plan import Evaluation, Plan
from ..util.display import new_figure, save_figure
from .report import Curves
from .run import Run, make_updater
from .task_run import TaskRun

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


class Results(Callback):
    """results.json after each evaluation, and the curves at times."""

    def __init__(self, folder):
        self._folder = folder
        self._curves = Curves(self._draw)

    def on_epoch(self, loop, record):
        self._curves.update(loop.state)
        self._write_results(loop.state)

    def write(self, state, **more):
        self._curves.finish(state)
        self._write_results(state, **more)

    def _draw(self, state):
        model = os.path.basename(os.path.normpath(self._folder.args.model))
        plot_pretraining(self._folder.file('curves.png'), state, f'pre-training {model}')

    def _write_results(self, state, **more):
        self._folder.write('results.json', state, **more)
        if state.epochs:
            self._folder.write_eval_results(state.epochs[-1]['report'], state.epochs[-1])


class PretrainingRun(TaskRun):
    """A run with phases, which counts updates instead of epochs, and with GluonNLP's log."""

    def _begin(self, **options):
        args, workers = self.settings, self.task.workers
        if args.gpus is None and workers.size > 1 and mx.runtime.Features().is_enabled('CUDA'):
            args.gpus = ','.join(map(str, range(mx.context.num_gpus())))  # each has its own
        return Run(args, self.task.name, '', workers, trains=False, verbose=args.verbose, **options)

    def train(self):
        args, folder, workers = self.settings, self.run.folder, self.task.workers
        if args.mirror:
            self.model.mirror()
        loop, results = self._make_loop()
        self._go_back(loop)
        parts = self.run.accumulate * workers.size
        logger.info(
            'training: %d steps of %d x %d %s, by %d workers with %s',
            args.num_steps,
            parts,
            args.batch_size,
            'tokens' if args.use_avg_len else 'samples',
            workers.size,
            ', '.join(map(str, self.run.contexts)),
        )
        state = loop.run()
        if workers.rank > 0:
            return
        logger.info('Train cost=%.1fs', state.seconds)
        self.save(folder.file('model'))
        results.write(state, model='model')
        logger.info('the model is in %s', folder.file('model'))

    def _make_loop(self):
        args, folder, workers = self.settings, self.run.folder, self.task.workers
        results = Results(folder)
        callbacks = [PretrainingLogger(), results]
        if args.tensorboard and workers.rank == 0:
            callbacks.append(TensorBoardWriter(args.tensorboard))
        if args.profile and workers.rank == 0:
            callbacks.append(Profiler(args.profile))
        # as GluonNLP's: the first update isn't of rate 0, the last one is
        schedule = finetune_schedule(args.lr, args.num_steps, args.warmup_ratio, first_step=1)
        loop = TrainingLoop(
            make_updater(args, self.model, schedule),
            self.task.objective(self.model, self.training_set),
            self.training_set.loader,
            Plan(args.num_steps, self.run.accumulate, args.seed, args.log_interval),
            Evaluation(self.evaluator.evaluate if self.sets else None, args.eval_interval),
            checkpoints_of(
                args, self._store(args.phase2), self.job(), len(self.run.contexts), True
            ),
            callbacks,
            workers,
        )
        return loop, results

    def _store(self, phase2):
        """The checkpoints of a phase; each phase counts its own steps."""
        return self.run.folder.checkpoints('checkpoints_phase2' if phase2 else 'checkpoints')

    def _go_back(self, loop):
        """Go back to where an earlier run was, if the flags say so."""
        args, path = self.settings, None
        if args.resume:
            path = loop.resume()
        if path is None and args.phase2:
            checkpoint = self._store(phase2=False).at(args.start_step)
            checkpoint.restore(loop.block, loop.updater.trainer)
            loop.state.step = args.start_step - args.phase1_num_steps
            path = checkpoint.path
        elif path is None and args.start_step:
            path = loop.resume(args.start_step)
        elif path is None and not args.resume and self._store(args.phase2).paths():
            if not args.overwrite_output_dir:
                raise InputError(
                    f'{args.output_dir!r} has checkpoints of another training: add `resume` to '
                    'continue it, `overwrite_output_dir` to replace it, or name another folder',
                    field='output_dir',
                )
            if self.task.workers.rank == 0:
                self._store(args.phase2).clear()
        if path is not None:
            logger.info('continuing from %s', path)

    def infer(self):
        report = self.evaluator.evaluate()[1]
        if self.task.workers.rank == 0:
            self.run.folder.write('evaluation.json', **report)
            self.run.folder.write_eval_results(report)
