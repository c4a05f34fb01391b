"""Pre-training of BERT and the models like it: losses as an objective, evaluation, log."""

import itertools
import logging
import time

import numpy as np
from mxnet.gluon import HybridBlock

from ...layers.losses import cross_entropy
from ...training.callbacks import ProgressLogger
from ...training.objective import Objective
from ...training.workers import Workers
from ...util.display import new_figure, save_figure

logger = logging.getLogger(__name__)

TERMS = ('mlm', 'nsp')


class PretrainingLoss(HybridBlock):
    """The losses of the masked language model and, where there is one, of the next sentence.

    Inputs
    ------
    masked_lm : (batch, positions, vocab_size), float32
        Scores.
    masked_ids : (batch, positions)
        The words that were masked.
    masked_weights : (batch, positions)
        1, or 0 where `masked_ids` is padding.
    next_sentence : (batch, 2), float32, optional
        Scores.
    next_sentence_labels : (batch,), optional
        0: the second sentence follows the first; 1: it's a random one.

    Outputs
    -------
    A list of arrays of shape (1,): the mean over the masked words, the mean over the batch and,
    with `accuracies`, how many of each were predicted right.

    Source: Devlin et al., "BERT", section 3.1; run_pretraining.py of google-research/bert.
    """

    def __init__(self, accuracies=True, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        self._accuracies = accuracies

    def hybrid_forward(
        self, F, masked_lm, masked_ids, masked_weights, next_sentence=None,
        next_sentence_labels=None,
    ):  # fmt: skip
        words = F.cast(masked_ids, 'float32')
        words = F.where(masked_weights, words, -F.ones_like(words))  # -1 isn't counted
        pairs = [(masked_lm, words)]
        if next_sentence is not None:
            pairs.append((next_sentence, F.cast(next_sentence_labels, 'float32')))
        terms = [cross_entropy(F, scores, labels) for scores, labels in pairs]
        if self._accuracies:
            right = [F.argmax(F.BlockGrad(scores), axis=-1) == labels for scores, labels in pairs]
            terms += [F.reshape(F.sum(each), shape=(1,)) for each in right]
        return terms


def pretraining_objective(model, accuracies=True):
    """What pre-training minimizes: the sum of the terms 'mlm' and 'nsp', or 'mlm' alone."""
    names = model.pretraining_terms
    with_sentences = names == TERMS
    loss = PretrainingLoss(accuracies)
    loss.hybridize(static_alloc=True)

    def terms(batch):
        scores = model(*batch.inputs, batch.masked_positions)
        scores = scores if with_sentences else [scores]
        words, *pairs = (each.astype('float32', copy=False) for each in scores)
        labels = [batch.next_sentence_labels] if with_sentences else []
        return loss(words, batch.masked_ids, batch.masked_weights, *pairs, *labels)

    return Objective(
        terms,
        counts=lambda batch: (batch.num_masked, len(batch.indices))[: len(names)],
        names=names,
        accuracies=accuracies,
        tokens=lambda batch: batch.num_tokens,
        unit='samples' if with_sentences else 'words',
    )


def evaluate_pretraining(objective, loader, workers=None, guard=None, max_batches=None):
    """Losses and accuracies over a data set.

    Parameters
    ----------
    loader : object
        Its ``epoch(0)`` iterates over the batches; None stands for a batch without a part for this
        worker.

    Returns
    -------
    (float, dict)
        The score, which is the negative sum of the losses; and, under the name 'eval', 'mlm_loss'
        and 'nsp_loss', means over all masked words and over all samples, with 'mlm_acc' and
        'nsp_acc' where the objective has accuracies. What is of next sentences is missing where
        the objective hasn't got them.
    """
    started = time.perf_counter()
    names, sums = objective.names, np.zeros(objective.num_sums)
    counts = np.zeros(len(names))
    for batch in itertools.islice(loader.epoch(0), max_batches):
        if guard is not None:
            guard.check()
        if batch is None:
            continue
        batch_counts = np.array(objective.counts(batch))
        values = np.array([array.asscalar() for array in objective.terms(batch)], np.float64)
        values[: len(names)] *= batch_counts  # means, which become sums
        counts += batch_counts
        sums += values
    sums = (workers or Workers()).sum(np.concatenate([sums, counts]))
    means = sums[: objective.num_sums].reshape(-1, len(names)) / np.maximum(sums[-len(names) :], 1)
    report = {
        f'{term}_{metric}': float(value)
        for metric, row in zip(('loss', 'acc'), means)
        for term, value in zip(names, row)
    }
    logger.info('Eval %s', _formatted(report, losses='.3f', accuracies='.1f'))
    logger.info('Eval cost=%.1fs', time.perf_counter() - started)
    return -float(means[0].sum()), {'eval': report}


def _formatted(record, losses, accuracies):
    """The losses and accuracies of a record, in the form of GluonNLP's log."""
    parts = []
    for term in TERMS:
        if f'{term}_loss' in record:
            parts.append(f'{term}_loss={record[f"{term}_loss"]:{losses}}')
        if f'{term}_acc' in record:
            parts.append(f'{term}_acc={record[f"{term}_acc"] * 100:{accuracies}}')
    return '\t'.join(parts)


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
            f'[step {step}]\t{_formatted(record, losses="7.5f", accuracies="4.2f")}\t'
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
