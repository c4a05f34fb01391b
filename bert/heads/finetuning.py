"""BERT's heads for fine-tuning: of sequences, choices, tokens, and answers."""

import mxnet as mx

from model_zoo.errors import InputError
from model_zoo.layers.losses import (
    cross_entropy,
    mean_squared_error,
    span_cross_entropy,
    without_padding,
)
from model_zoo.layers.sequences import Mask, is_mask

from .task import BertTask, check_labels

__all__ = [
    'BertForMultipleChoice',
    'BertForQuestionAnswering',
    'BertForSequenceClassification',
    'BertForTokenClassification',
]


class BertForSequenceClassification(BertTask):
    """A label, or with one label a number, for a sentence or a pair.

    Parameters
    ----------
    bert : BertConfig or BertModel
    num_labels : int, optional
        1 means regression. Default: the configuration's.
    dropout : float, optional
        Rate on the pooled output. Default: the configuration's ``hidden_dropout_prob``.

    Inputs
    ------
    words, token_types, valid_length, head_mask
        See `BertModel`.
    labels : (batch,), optional

    Outputs
    -------
    The loss, (1,): cross-entropy, or with one label the mean squared error. Without labels,
    scores of (batch, num_labels).
    """

    parts = {'use_pooler': True}

    def __init__(
        self, bert, num_labels=None, dropout=None, prefix=None, params=None, **options
    ):
        super().__init__(bert, prefix=prefix, params=params, **options)
        self._set_num_labels(num_labels)
        self._make_classifier(self.num_labels, dropout)

    def __call__(
        self, words, token_types=None, valid_length=None, labels=None, head_mask=None
    ):
        self.check_inputs(words, token_types, valid_length)
        if self.num_labels > 1:
            check_labels('labels', labels, words, 1, self.num_labels)
        else:
            column = isinstance(labels, mx.nd.NDArray) and labels.shape[1:] == (1,)
            check_labels('labels', labels.reshape((-1,)) if column else labels, words, 1)
        head_mask = self.full_head_mask(head_mask)
        return super().__call__(words, token_types, valid_length, labels, head_mask)

    def hybrid_forward(
        self, F, words, token_types=None, valid_length=None, labels=None, head_mask=None
    ):
        encoded = self.encode(words, token_types, valid_length, None, head_mask)
        result = self.classifier(self._pool(F, encoded))  # (B, labels)
        if labels is not None:
            loss = mean_squared_error if self.num_labels == 1 else cross_entropy
            result = loss(F, result, labels)
        return self.join_outputs(result, encoded.attentions)


class BertForMultipleChoice(BertTask):
    """The best of several continuations; any number of choices.

    Parameters
    ----------
    bert, dropout
        See `BertForSequenceClassification`.
    num_choices : int, optional
        How many choices all examples have; by default any number.

    Inputs
    ------
    words, token_types : (batch, choices, length)
    valid_length : (batch, choices), optional
    head_mask
        See `BertModel`.
    labels : (batch,), optional

    Outputs
    -------
    The loss, (1,), or scores of (batch, choices).
    """

    word_axes = 3
    parts = {'use_pooler': True}

    def __init__(
        self, bert, dropout=None, num_choices=None, prefix=None, params=None, **options
    ):
        super().__init__(bert, prefix=prefix, params=params, **options)
        self.num_choices = num_choices
        self._make_classifier(1, dropout)

    def __call__(
        self, words, token_types=None, valid_length=None, labels=None, head_mask=None
    ):
        self.check_inputs(words, token_types, valid_length)
        choices = None if isinstance(words, mx.sym.Symbol) else words.shape[1]
        if choices is not None and self.num_choices not in (None, choices):
            raise InputError(f'words has {choices} choices, and num_choices is {self.num_choices}')
        check_labels('labels', labels, words, 1, choices)
        head_mask = self.full_head_mask(head_mask)
        return super().__call__(words, token_types, valid_length, labels, head_mask)

    def hybrid_forward(
        self, F, words, token_types=None, valid_length=None, labels=None, head_mask=None
    ):
        flat = F.reshape(words, shape=(-3, 0))  # (B * choices, L)
        if token_types is not None:
            token_types = F.reshape(token_types, shape=(-3, 0))
        if is_mask(valid_length):
            valid_length = Mask([F.reshape(valid_length[0], shape=(-3, 0))])
        elif valid_length is not None:
            valid_length = F.reshape(valid_length, shape=(-1,))
        encoded = self.encode(flat, token_types, valid_length, None, head_mask)
        scores = self.classifier(self._pool(F, encoded))  # (B * choices, 1)
        scores = F.reshape(scores, shape=(-1,))
        result = F.reshape_like(scores, words, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2)
        if labels is not None:
            result = cross_entropy(F, result, labels)
        return self.join_outputs(result, encoded.attentions)


class BertForTokenClassification(BertTask):
    """A label for each token.

    Parameters
    ----------
    bert, num_labels, dropout
        See `BertForSequenceClassification`; the dropout is on the encoder's output.

    Inputs
    ------
    words, token_types, valid_length, head_mask
        See `BertModel`.
    labels : (batch, length), optional
        -1 where there is none: at special tokens, inner pieces, and padding.

    Outputs
    -------
    The loss, (1,), or scores of (batch, length, num_labels).
    """

    def __init__(
        self, bert, num_labels=None, dropout=None, prefix=None, params=None, **options
    ):
        super().__init__(bert, prefix=prefix, params=params, **options)
        self._set_num_labels(num_labels)
        self._make_classifier(self.num_labels, dropout)

    def __call__(
        self, words, token_types=None, valid_length=None, labels=None, head_mask=None
    ):
        self.check_inputs(words, token_types, valid_length)
        check_labels('labels', labels, words, 2, self.num_labels)
        head_mask = self.full_head_mask(head_mask)
        return super().__call__(words, token_types, valid_length, labels, head_mask)

    def hybrid_forward(
        self, F, words, token_types=None, valid_length=None, labels=None, head_mask=None
    ):
        encoded = self.encode(words, token_types, valid_length, None, head_mask)
        result = self.classifier(self.dropout(encoded.sequence))  # (B, L, labels)
        if labels is not None:
            # padding has no label, whatever the labels say
            result = cross_entropy(F, result, without_padding(F, labels, valid_length))
        return self.join_outputs(result, encoded.attentions)


class BertForQuestionAnswering(BertTask):
    """Start and end of an answer in the text (SQuAD).

    Inputs
    ------
    words, token_types, valid_length, head_mask
        See `BertModel`.
    start_positions, end_positions : (batch,), optional
        Positions outside of the sequence are left out of the loss.

    Outputs
    -------
    The mean of the two losses, (1,), or the scores of starts and of ends, a list of two
    (batch, length).
    """

    def __init__(self, bert, prefix=None, params=None, **options):
        super().__init__(bert, prefix=prefix, params=params, **options)
        with self.name_scope():
            self.span_classifier = self._dense(2, prefix='span_classifier_')

    def __call__(
        self,
        words,
        token_types=None,
        valid_length=None,
        start_positions=None,
        end_positions=None,
        head_mask=None,
    ):
        if (start_positions is None) != (end_positions is None):
            raise InputError('give both start_positions and end_positions, or neither')
        self.check_inputs(words, token_types, valid_length)
        check_labels('start_positions', start_positions, words, 1, 2**31)
        check_labels('end_positions', end_positions, words, 1, 2**31)
        return super().__call__(
            words, token_types, valid_length, start_positions, end_positions,
            self.full_head_mask(head_mask),
        )  # fmt: skip

    def hybrid_forward(
        self,
        F,
        words,
        token_types=None,
        valid_length=None,
        start_positions=None,
        end_positions=None,
        head_mask=None,
    ):
        encoded = self.encode(words, token_types, valid_length, None, head_mask)
        scores = self.span_classifier(encoded.sequence)  # (B, L, 2)
        start, end = F.split(scores, num_outputs=2, axis=2, squeeze_axis=True)  # (B, L) each
        result = [start, end]
        if start_positions is not None:
            start_loss = span_cross_entropy(F, start, start_positions, valid_length)
            end_loss = span_cross_entropy(F, end, end_positions, valid_length)
            result = (start_loss + end_loss) / 2
        return self.join_outputs(result, encoded.attentions)
