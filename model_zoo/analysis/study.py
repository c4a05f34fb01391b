"""A study of a model's heads: measure, mask, prune."""

import logging
import time

import mxnet as mx
import numpy as np

from ..errors import InputError, UnknownNameError
from ..util.display import progress
from .heads import heads_left, heads_to_prune, mask_heads, measure_heads, normalize_importance

logger = logging.getLogger(__name__)


def rank_heads(importance):
    """Return the ranks of the heads: 0 is the most important one, NaN a missing one.

    Parameters
    ----------
    importance : numpy.ndarray, shape (layers, heads)

    Returns
    -------
    numpy.ndarray, shape (layers, heads)
    """
    order = np.argsort(np.where(np.isnan(importance), np.inf, -importance), axis=None)
    result = np.empty(importance.size)
    result[order] = np.arange(importance.size)
    return np.where(np.isnan(importance), np.nan, result.reshape(importance.shape))


class HeadStudy:
    """A series of measurements of a model's heads."""

    def __init__(self, subject, **normal):
        self._subject, self._normal = subject, normal

    def measure(self, mask=None, title='heads'):
        """Return the scores by name, normalized importance, and entropy."""
        subject = self._subject
        measures = measure_heads(subject.model, subject.forward, subject.loader, mask, title)
        importance = normalize_importance(measures.importance, **self._normal)
        return subject.scores(measures.outputs), importance, measures.entropy

    def prune(self, scores, importance, threshold, amount):
        """Mask heads, least important first, and prune those that the model doesn't need."""
        model, metric = self._subject.model, self._subject.metric

        def measure(mask):
            scores, importance, _ = self.measure(mask, 'masking')
            return scores[metric], importance

        existing = heads_left(model.config)
        mask, steps = mask_heads(measure, existing, scores[metric], importance, threshold, amount)
        masked, _, _ = self.measure(mask, 'masked')
        logger.info('before pruning:')
        before = self._facts(scores)
        pruned = heads_to_prune(mask, model.config)
        model.prune_heads(pruned)
        logger.info('after pruning:')
        after = self._facts(self.measure(title='pruned')[0])
        return {
            'metric': metric,
            'steps': [step._asdict() for step in steps],
            'head_mask': mask.astype(int).tolist(),
            'pruned_heads': pruned,
            'before': before,
            'masked': masked,
            'after': after,
            'speedup': after['sequences_per_second'] / before['sequences_per_second'],
        }

    def _facts(self, scores):
        """Return the figures to compare before and after pruning."""
        model = self._subject.model
        speed = self._sequences_per_second()
        count = sum(np.prod(parameter.shape) for parameter in model.collect_params().values())
        logger.info(
            '%s, %d parameters, %.1f sequences/s',
            ', '.join(f'{name} {value:.4f}' for name, value in scores.items()),
            count,
            speed,
        )
        return {
            **scores,
            'heads': int(heads_left(model.config).sum()),
            'parameters': int(count),
            'sequences_per_second': speed,
        }

    def _sequences_per_second(self):
        """Return the speed of prediction over the data: the best of three rounds."""
        speeds = []
        for _ in range(3):
            started, count = time.perf_counter(), 0
            for batch in progress(self._subject.loader, 'batches', 'speed'):
                self._subject.predict(batch).wait_to_read()
                count += batch.valid_length.shape[0]
            speeds.append(count / (time.perf_counter() - started))
        return max(speeds)


class SentencePair:
    """A BERT on a sentence or two, without scores."""

    def __init__(self, model, tokenizer):
        self.model, self.tokenizer = model, tokenizer

    def encode(self, sentences, max_length, ctx):
        """Return the model's inputs for a sentence or two, and its tokens."""
        encoded = self.tokenizer.encode(*sentences, max_length=max_length)
        inputs = encoded.input_ids, encoded.token_types
        return [mx.nd.array([ids], ctx=ctx, dtype='int32') for ids in inputs], encoded.tokens


class OneSentence(SentencePair):
    """A language model on a sentence, without scores."""

    def encode(self, sentences, max_length, ctx):
        """Return the model's inputs for a sentence, and its tokens as the vocabulary has them."""
        ids = self.tokenizer.encode(sentences[0])
        if not 0 < len(ids) <= self.model.context_length:
            raise InputError(
                f'`sentence` has {len(ids)} tokens: the model takes 1 to '
                f'{self.model.context_length}'
            )
        words = mx.nd.array([ids], ctx=ctx, dtype='int32')
        return [words], self.tokenizer.convert_ids_to_tokens(ids)


class ClassifierSubject(SentencePair):
    """A classifier on the examples of a task."""

    def __init__(self, task, model, tokenizer, loader, labels, metric=None):
        self.metric = metric or task.target.metrics[0]
        UnknownNameError.check(f'`metric_name` of {task.name}', self.metric, task.target.metrics)
        super().__init__(model, tokenizer)
        self.name, self.loader = task.name, loader
        self._task, self._labels = task, labels

    def predict(self, batch, head_mask=None):
        """Return the model's output for a batch."""
        return self.model(*batch.inputs, head_mask=head_mask)

    def forward(self, batch, head_mask):
        """See `measure_heads`."""
        scores, attentions = self.predict(batch, head_mask)
        if self._task.target.has_classes:
            losses = -mx.nd.pick(mx.nd.log_softmax(scores), batch.labels)
        else:
            losses = (scores.reshape((-1,)) - batch.labels) ** 2
        return losses.sum(), attentions, (batch.indices, scores)

    def scores(self, outputs):
        """Compute the task's metrics, by name, from the outputs of `forward`."""
        rows = np.concatenate([scores.asnumpy() for _, scores in outputs])
        order = np.argsort(np.concatenate([indices for indices, _ in outputs]))
        return self._task.target.scores(self._labels, rows[order])

    def baseline(self):
        """Compute the task's metrics, by name, of the best guess without the texts."""
        return self._task.target.baseline(self._labels)[1]


class LanguageModelSubject(OneSentence):
    """A language model on a text."""

    metric = 'likelihood'

    def __init__(self, name, model, tokenizer, loader, metric=None):
        if metric not in (None, self.metric):
            raise UnknownNameError.of('`metric_name` of a text', metric, [self.metric])
        super().__init__(model, tokenizer)
        self.name, self.loader = name, loader

    def predict(self, batch, head_mask=None):
        """Return the model's output for a batch."""
        return self.model(
            batch.words, valid_length=batch.valid_length, lm_labels=batch.words, head_mask=head_mask
        )

    def forward(self, batch, head_mask):
        """See `measure_heads`."""
        loss, attentions = self.predict(batch, head_mask)
        loss = loss * batch.count
        return loss, attentions, (batch.count, loss)

    def scores(self, outputs):
        """Return the perplexity and its inverse, of the outputs of `forward`."""
        counts, losses = zip(*outputs)
        loss = sum(float(loss.asscalar()) for loss in losses) / sum(counts)
        return {'likelihood': float(np.exp(-loss)), 'perplexity': float(np.exp(loss))}

    def baseline(self):
        """Return None: a text has no labels to guess."""
