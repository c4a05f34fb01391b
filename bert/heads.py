"""Task heads on top of BERT.

Each head is called with ``(words, token_types, valid_length)`` and, optionally, labels. Without
labels it returns scores; with labels it returns the loss, the mean over the labels that aren't -1.
The interfaces follow pytorch-pretrained-bert's ``modeling.py``, with GluonNLP's ``valid_length``
instead of the attention mask. Like `BertModel`, every head also takes a
`head_mask`.
"""

import functools
import operator
from operator import attrgetter

from mxnet.gluon import nn

from model_zoo.blocks.block import NUM_CHOICES
from model_zoo.blocks.config import check_field
from model_zoo.blocks.task_mixin import TaskMixin
from model_zoo.errors import UnknownNameError
from model_zoo.layers.attention import BLOCKED
from model_zoo.layers.losses import cross_entropy, mean_squared_error, span_cross_entropy
from model_zoo.layers.precision import Dense
from model_zoo.layers.sequences import Mask, is_mask, padding_of, positions_of, without_padding
from model_zoo.util.choices import POOLINGS

from .model import BertBlock, BertModel

__all__ = [
    'BertForMaskedLM',
    'BertForMultipleChoice',
    'BertForNextSentencePrediction',
    'BertForPreTraining',
    'BertForQuestionAnswering',
    'BertForSequenceClassification',
    'BertForTokenClassification',
    'BertSentenceEncoder',
    'BertTask',
]


_TEXT = ('words', 'token_types', 'valid_length')  # the first inputs


class BertTask(TaskMixin, BertBlock):
    """A `BertModel` with a task head.

    Parameters
    ----------
    bert : BertConfig or BertModel
        A model is used as it is and shared; a configuration makes a new one.
    **options
        For the new model, such as ``output_attentions=True``. With `output_attentions`, the
        result is a list of the head's own result and the attentions.
    """

    backbone = 'bert'
    model_class = BertModel
    #: what the head is for, as `open_model` names it
    task = None
    parts = {'use_pooler': False}
    #: the vector to classify instead of the pooler's output
    pooling = None
    #: field of the configuration with the usual rate before the head's dense layer
    dropout_field = 'dropout'

    def _make_classifier(self, units, dropout):
        """Make the head's dense layer, `classifier`, and the `dropout` before it."""
        usual = getattr(self.config, self.dropout_field)
        self.dropout_rate = usual if dropout is None else dropout
        with self.name_scope():
            self.dropout = nn.Dropout(self.dropout_rate)
            self.classifier = Dense(units, prefix='classifier_', **self.dense_options)

    def _pool(self, F, encoded, valid_length=None):
        """Return the classifier's input for a sequence, (B, C)."""
        return self.dropout(encoded.pooled)


class LabelTask(BertTask):
    """A head with a classifier, and `labels` of texts or tokens."""

    def __init__(self, bert, num_labels=None, dropout=None, **options):
        super().__init__(bert, **options)
        if num_labels is not None:
            self.config.num_labels = check_field('num_labels', num_labels, int)
        self.num_labels = self.config.num_labels
        self._make_classifier(self.num_labels, dropout)

    def hybrid_forward(
        self, F, words, token_types=None, valid_length=None, labels=None, head_mask=None
    ):
        encoded = self.encode(words, token_types, valid_length, head_mask=head_mask)
        result = self._classify(F, encoded, valid_length)
        if labels is not None:
            result = self._loss(F, result, labels, valid_length)
        return self.join_outputs(result, encoded.attentions)


def pool_tokens(F, sequence, valid_length, pooling, precision):
    """Make one vector of each row of a sequence, (B, L, C) -> (B, C); see `BertSentenceEncoder`."""
    if pooling == 'cls':
        return F.reshape(F.slice_axis(sequence, axis=1, begin=0, end=1), shape=(0, -1))
    if valid_length is None:
        return getattr(F, pooling)(sequence, axis=1)
    padding = padding_of(F, positions_of(F, sequence, axis=1), valid_length)  # (B, L)
    dtype = 'float16' if precision == 'float16' else 'float32'
    padding = F.cast(F.expand_dims(padding, 2), dtype)
    if pooling == 'max':
        return F.max(F.broadcast_add(sequence, BLOCKED * padding), axis=1)
    total = F.sum(F.broadcast_mul(sequence, 1 - padding), axis=1)
    return F.broadcast_div(total, F.maximum(F.sum(1 - padding, axis=1), 1))


class BertForSequenceClassification(LabelTask):
    """A label for a sentence or a pair; with ``num_labels=1``, a number.

    Parameters
    ----------
    num_labels : int, optional
        1 means regression. Default: the configuration's.
    dropout : float, optional
        Dropout on the pooled output. Default: the configuration's ``hidden_dropout_prob``.
    pooling : {'mean', 'cls', 'max'}, optional
        Classify this vector of the last layer, as `BertSentenceEncoder` makes it, instead of the
        pooler's output. Default: `pooling_field` of the configuration, which keeps it.

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

    task = 'classification'
    label_inputs = {'labels': (1, 'num_labels')}
    parts = {'use_pooler': True}
    #: field of the configuration
    pooling_field = 'classifier_pooling'

    def __init__(self, bert, num_labels=None, dropout=None, pooling=None, **options):
        config = bert.config if isinstance(bert, BertModel) else bert
        self.pooling = pooling or config.extras.get(self.pooling_field)
        if self.pooling is not None:
            UnknownNameError.check('pooling', self.pooling, POOLINGS)
            self.parts = {'use_pooler': False}
        super().__init__(bert, num_labels, dropout, **options)
        if self.pooling is not None:
            self.config.extras[self.pooling_field] = self.pooling
        if self.num_labels == 1:
            self.label_inputs = {'labels': (1, None)}  # numbers

    def _classify(self, F, encoded, valid_length):
        if self.pooling is None:
            vector = self._pool(F, encoded, valid_length)
        else:
            vector = pool_tokens(F, encoded.sequence, valid_length, self.pooling, self.precision)
            vector = self.dropout(vector)
        return self.classifier(vector)  # (B, labels)

    def _loss(self, F, scores, labels, valid_length):
        loss = mean_squared_error if self.num_labels == 1 else cross_entropy
        return loss(F, scores, labels)


class BertForMultipleChoice(BertTask):
    """The best of several continuations; any number of choices.

    `num_choices` is for pytorch-pretrained-bert's signature.

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

    task = 'multiple_choice'
    label_inputs = {'labels': (1, NUM_CHOICES)}
    word_axes = 3
    parts = {'use_pooler': True}

    def __init__(self, bert, dropout=None, num_choices=None, **options):
        super().__init__(bert, **options)
        self.num_choices = num_choices
        self._make_classifier(1, dropout)

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
        encoded = self.encode(flat, token_types, valid_length, head_mask=head_mask)
        scores = self.classifier(self._pool(F, encoded, valid_length))  # (B * choices, 1)
        scores = F.reshape(scores, shape=(-1,))
        result = F.reshape_like(scores, words, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2)
        if labels is not None:
            result = cross_entropy(F, result, labels)
        return self.join_outputs(result, encoded.attentions)


class BertForTokenClassification(LabelTask):
    """A label for each token.

    `num_labels` and `dropout` are as in `BertForSequenceClassification`; the dropout is on the
    encoder's output.

    Inputs
    ------
    words, token_types, valid_length, head_mask
        See `BertModel`.
    labels : (batch, length), optional
        -1 at special tokens, inner pieces and padding.

    Outputs
    -------
    The loss, (1,), or scores of (batch, length, num_labels).
    """

    task = 'tagging'
    label_inputs = {'labels': (2, 'num_labels')}

    def _classify(self, F, encoded, valid_length):
        return self.classifier(self.dropout(encoded.sequence))  # (B, L, labels)

    def _loss(self, F, scores, labels, valid_length):
        return cross_entropy(F, scores, without_padding(F, labels, valid_length))


class BertForQuestionAnswering(BertTask):
    """Start and end of an answer in the text (SQuAD).

    Inputs
    ------
    words, token_types, valid_length, head_mask
        See `BertModel`.
    start_positions, end_positions : (batch,), optional
        Positions outside the sequence are left out of the loss.

    Outputs
    -------
    The mean of the two losses, (1,), or the scores of starts and of ends, a list of two
    (batch, length).
    """

    task = 'question_answering'
    label_inputs = {'start_positions': (1, 2**31), 'end_positions': (1, 2**31)}

    def __init__(self, bert, **options):
        super().__init__(bert, **options)
        with self.name_scope():
            self.span_classifier = Dense(2, prefix='span_classifier_', **self.dense_options)

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
        encoded = self.encode(words, token_types, valid_length, head_mask=head_mask)
        scores = self.span_classifier(encoded.sequence)  # (B, L, 2)
        start, end = F.split(scores, num_outputs=2, axis=2, squeeze_axis=True)  # (B, L) each
        result = [start, end]
        if start_positions is not None:
            start_loss = span_cross_entropy(F, start, start_positions, valid_length)
            end_loss = span_cross_entropy(F, end, end_positions, valid_length)
            result = (start_loss + end_loss) / 2
        return self.join_outputs(result, encoded.attentions)


class PretrainingTask(BertTask):
    """A head with the scores of masked words, of the next sentence, or both: of `label_inputs`."""

    def hybrid_forward(
        self,
        F,
        words,
        token_types=None,
        valid_length=None,
        masked_positions=None,
        masked_lm_labels=None,
        next_sentence_label=None,
        head_mask=None,
    ):
        encoded = self.encode(words, token_types, valid_length, masked_positions, head_mask)
        pairs = {'masked_lm_labels': (encoded.masked_lm, masked_lm_labels)}
        pairs['next_sentence_label'] = encoded.next_sentence, next_sentence_label
        scores, labels = zip(*(pairs[name] for name in self.label_inputs))
        if labels[0] is None:
            result = list(scores) if len(scores) > 1 else scores[0]
        else:
            losses = (cross_entropy(F, *pair) for pair in zip(scores, labels))
            result = functools.reduce(operator.add, losses)
        return self.join_outputs(result, encoded.attentions)


class BertForPreTraining(PretrainingTask):
    """Masked language model and next sentence prediction together.

    Inputs
    ------
    words, token_types, valid_length, masked_positions, masked_lm_labels, head_mask
        See `BertForMaskedLM`.
    next_sentence_label
        See `BertForNextSentencePrediction`.

    Outputs
    -------
    With both labels the sum of the two losses, (1,); otherwise the scores:
    (batch, positions, vocab_size) and (batch, 2).
    """

    task = 'pretraining'
    label_inputs = {'masked_lm_labels': (2, 'vocab_size'), 'next_sentence_label': (1, 2)}
    parts = {'use_pooler': True, 'use_decoder': True, 'use_classifier': True}
    #: terms that pre-training minimizes
    pretraining_terms = ('mlm', 'nsp')


class BertForMaskedLM(PretrainingTask):
    """Masked language model.

    Inputs
    ------
    words, token_types, valid_length, masked_positions, head_mask
        See `BertModel`.
    masked_lm_labels : (batch, positions), optional
        Word ids; -1 is ignored. Without masked positions: (batch, length).

    Outputs
    -------
    The loss, (1,), or scores of (batch, positions, vocab_size).
    """

    task = 'masked_lm'
    call_order = (*_TEXT, 'masked_positions', 'masked_lm_labels', 'head_mask')
    label_inputs = {'masked_lm_labels': (2, 'vocab_size')}
    parts = {'use_pooler': False, 'use_decoder': True}
    pretraining_terms = ('mlm',)


class BertForNextSentencePrediction(PretrainingTask):
    """Next sentence prediction.

    Inputs
    ------
    words, token_types, valid_length, head_mask
        See `BertModel`.
    next_sentence_label : (batch,), optional
        0: the second sentence follows the first; 1: it is a random one.

    Outputs
    -------
    The loss, (1,), or scores of (batch, 2).
    """

    task = 'next_sentence'
    call_order = (*_TEXT, 'next_sentence_label', 'head_mask')
    label_inputs = {'next_sentence_label': (1, 2)}
    parts = {'use_pooler': True, 'use_classifier': True}


class BertSentenceEncoder(BertTask):
    """The vector of a sentence, from the last layer.

    With the same weights it returns the vectors of ``BertEmbedding.sentence_vectors``. As a block,
    it can be exported and trained.

    Parameters
    ----------
    pooling : {'mean', 'cls', 'max'}
        ``'mean'`` or ``'max'`` of all tokens' vectors, including [CLS] and [SEP]; or ``'cls'``, the
        vector of [CLS].
    normalize : bool
        Whether to scale the vectors to Euclidean length 1.

    Inputs
    ------
    words, token_types, valid_length, head_mask
        See `BertModel`.

    Outputs
    -------
    (batch, units)
    """

    task = 'sentence_embedding'
    huggingface_name = property(attrgetter('model_class.__name__'))  # it has no parameters

    def __init__(self, bert, pooling='mean', normalize=False, **options):
        UnknownNameError.check('pooling', pooling, POOLINGS)
        super().__init__(bert, **options)
        self._pooling, self._normalize = pooling, normalize

    def hybrid_forward(self, F, words, token_types=None, valid_length=None, head_mask=None):
        encoded = self.encode(words, token_types, valid_length, head_mask=head_mask)
        x = pool_tokens(F, encoded.sequence, valid_length, self._pooling, self.precision)
        if self._normalize:
            length = F.sqrt(F.sum(F.square(x), axis=1, keepdims=True))
            x = F.broadcast_div(x, F.maximum(length, 1e-12))
        return self.join_outputs(x, encoded.attentions)


#: task -> BERT's head
TASKS = {each.task: each for each in [*vars().values()] if getattr(each, 'task', None)}
