"""The data for a study of heads: a task's examples, or a text."""

import mxnet as mx
import numpy as np

from ..errors import InputError, UnknownNameError
from ..tasks.classification import compute_baseline, compute_metrics

__all__ = ['ClassifierSubject', 'LanguageModelSubject', 'OneSentence', 'SentencePair']


class SentencePair:
    """A BERT on a sentence or two, of which no score is known.

    Parameters
    ----------
    model : ZooBlock
    tokenizer : model_zoo.tokenization.base.Tokenizer
    """

    def __init__(self, model, tokenizer):
        self.model, self.tokenizer = model, tokenizer

    def encode(self, sentences, max_length, ctx):
        """The model's inputs for a sentence or two, and its tokens."""
        encoded = self.tokenizer.encode(*sentences, max_length=max_length)
        inputs = encoded.input_ids, encoded.token_types
        return [mx.nd.array([ids], ctx=ctx, dtype='int32') for ids in inputs], encoded.tokens


class OneSentence(SentencePair):
    """A language model on a sentence, of which no score is known."""

    def encode(self, sentences, max_length, ctx):
        """The model's inputs for a sentence, and its tokens as the vocabulary has them."""
        ids = self.tokenizer.encode(sentences[0])
        if not 0 < len(ids) <= self.model.context_length:
            raise InputError(
                f'`sentence` has {len(ids)} tokens: the model takes 1 to '
                f'{self.model.context_length}'
            )
        words = mx.nd.array([ids], ctx=ctx, dtype='int32')
        return [words], self.tokenizer.convert_ids_to_tokens(ids)


class ClassifierSubject(SentencePair):
    """A classifier on the examples of a task.

    Parameters
    ----------
    task : model_zoo.tasks.classification.Task
    model : bert.BertForSequenceClassification
    tokenizer : model_zoo.tokenization.base.Tokenizer
    loader : BucketedLoader
    labels : numpy.ndarray, shape (examples,)
    metric : str, optional
        Default: the task's primary metric.
    """

    def __init__(self, task, model, tokenizer, loader, labels, metric=None):
        self.metric = metric or task.primary_metric
        if self.metric not in task.metrics:
            raise UnknownNameError.of(f'`metric_name` of {task.name}', self.metric, task.metrics)
        super().__init__(model, tokenizer)
        self.name, self.loader = task.name, loader
        self._task, self._labels = task, labels

    def predict(self, batch, head_mask=None):
        """What the model returns for a batch."""
        return self.model(*batch.inputs, head_mask=head_mask)

    def forward(self, batch, head_mask):
        """See `measure_heads`."""
        scores, attentions = self.predict(batch, head_mask)
        if self._task.regression:
            losses = (scores.reshape((-1,)) - batch.labels) ** 2
        else:
            losses = -mx.nd.pick(mx.nd.log_softmax(scores), batch.labels)
        return losses.sum(), attentions, (batch.indices, scores)

    def scores(self, outputs):
        """The task's metrics, by name, of the outputs of `forward`."""
        rows = np.concatenate([scores.asnumpy() for _, scores in outputs])
        order = np.argsort(np.concatenate([indices for indices, _ in outputs]))
        return dict(compute_metrics(self._task, self._labels, rows[order]))

    def baseline(self):
        """The task's metrics, by name: see `compute_baseline`."""
        return dict(compute_baseline(self._task, self._labels)[1])


class LanguageModelSubject(OneSentence):
    """A language model on a text.

    Parameters
    ----------
    name : str
        Of the text.
    model : ZooBlock
        Takes `lm_labels`.
    tokenizer : model_zoo.tokenization.base.Tokenizer
    loader : BlockLoader
    metric : str, optional
        'likelihood', the only one.
    """

    metric = 'likelihood'

    def __init__(self, name, model, tokenizer, loader, metric=None):
        if metric not in (None, self.metric):
            raise UnknownNameError.of('`metric_name` of a text', metric, [self.metric])
        super().__init__(model, tokenizer)
        self.name, self.loader = name, loader

    def predict(self, batch, head_mask=None):
        """What the model returns for a batch."""
        return self.model(
            batch.words,
            valid_length=batch.valid_length,
            lm_labels=batch.words,
            head_mask=head_mask,
        )

    def forward(self, batch, head_mask):
        """See `measure_heads`."""
        loss, attentions = self.predict(batch, head_mask)
        loss = loss * batch.count
        return loss, attentions, (batch.count, loss)

    def scores(self, outputs):
        """Perplexity and its inverse, of the outputs of `forward`."""
        counts, losses = zip(*outputs)
        loss = sum(float(loss.asscalar()) for loss in losses) / sum(counts)
        return {'likelihood': float(np.exp(-loss)), 'perplexity': float(np.exp(loss))}

    def baseline(self):
        """None: a text has no labels to guess."""
