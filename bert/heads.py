"""Task heads on top of BERT.

Each head is called with ``(words, token_types, valid_length)`` and, optionally, labels. Without
labels it returns scores; with labels it returns the loss, the mean over the labels that aren't -1.
The interfaces are those of pytorch-pretrained-bert's ``modeling.py``, with GluonNLP's
``valid_length`` in the place of the attention mask.
"""

from dataclasses import replace

import mxnet as mx
from mxnet.gluon import nn

from model_zoo.errors import InputError
from model_zoo.layers.losses import cross_entropy, mean_squared_error, span_cross_entropy
from model_zoo.layers.precision import Dense
from model_zoo.util.checks import check_range, check_shape

from .model import BertBlock, BertModel

__all__ = [
    'BertForMaskedLM',
    'BertForMultipleChoice',
    'BertForNextSentencePrediction',
    'BertForPreTraining',
    'BertForQuestionAnswering',
    'BertForSequenceClassification',
    'BertForTokenClassification',
]


def _check_labels(name, labels, like, axes, size=None):
    """Raise InputError unless `labels` has the first `axes` sizes of `like`, and classes < `size`.
    """
    if labels is None or isinstance(labels, mx.sym.Symbol):
        return
    if not isinstance(like, mx.nd.NDArray):  # a symbol, or the check of the inputs will refuse it
        return
    check_shape(name, labels, like.shape[:axes])
    if size is not None:
        check_range(name, labels, -1, size)


class BertTask(BertBlock):
    """A `BertModel` with something on top.

    Parameters
    ----------
    bert : BertConfig or BertModel
        A model is used as it is and shared; a configuration makes a new one.
    **options
        For the new model, such as ``output_attentions=True``. With `output_attentions`, the
        result is a list of the head's own result and the attentions.
    """

    backbone = 'bert'
    #: parts of BertModel that the head needs
    parts = {'use_pooler': False}

    def __init__(self, bert, prefix=None, params=None, **options):
        is_model = isinstance(bert, BertModel)
        super().__init__(bert.config if is_model else bert, prefix=prefix, params=params)
        with self.name_scope():
            if not is_model:
                bert = BertModel(self.config, **{**self.parts, **options})
            elif options:
                raise InputError(f'{", ".join(options)}: set this where the BertModel is made')
            self._check_parts(bert)
            self.bert = bert
        # the same dict, so that it tells of the heads that were pruned by another owner of `bert`
        self.config.pruned_heads = bert.config.pruned_heads

    def _check_parts(self, bert):
        has = {
            'use_pooler': bert.has_pooler,
            'use_decoder': bert.has_decoder,
            'use_classifier': bert.has_classifier,
        }
        lacking = [name for name, needed in self.parts.items() if needed and not has[name]]
        if lacking:
            raise InputError(
                f'{type(self).__name__} needs a BertModel with '
                + ', '.join(f'{name}=True' for name in lacking)
            )

    def _dense(self, units, prefix='classifier_'):
        """The head's dense layer."""
        return Dense(
            units,
            in_units=self.config.hidden_size,
            flatten=False,
            weight_initializer=mx.init.Normal(self.config.initializer_range),
            prefix=prefix,
        )

    def _set_num_labels(self, num_labels):
        if num_labels is not None:
            # a new configuration, which checks the value
            self.config.num_labels = replace(self.config, num_labels=num_labels).num_labels
        self.num_labels = self.config.num_labels

    def _set_dropout(self, dropout):
        self.dropout_rate = self.config.hidden_dropout_prob if dropout is None else dropout
        self.dropout = nn.Dropout(self.dropout_rate)

    def _encode(self, words, token_types, valid_length, masked_positions, head_mask, probes):
        """Run BERT; returns its outputs by name."""
        bert = self.bert
        outputs = bert(words, token_types, valid_length, masked_positions, head_mask, probes)
        named = {}
        if probes is not None:
            outputs, named['heads'] = outputs
        names = ['sequence']
        names += ['attentions'] if bert.output_attentions else []
        names += ['pooled'] if bert.has_pooler else []
        names += ['next_sentence'] if bert.has_classifier else []
        names += ['masked_lm'] if bert.has_decoder else []
        outputs = [outputs] if len(names) == 1 else outputs
        named.update(zip(names, outputs))
        if bert.output_all_encodings:
            named['sequence'] = named['sequence'][-1]
        return named

    def hybrid_forward(self, F, words, token_types=None, valid_length=None, *inputs):
        *own, head_mask, probes = inputs
        positions = own.pop(0) if self.takes_positions else None
        flat = self._flat(F, words, token_types, valid_length)
        encoded = self._encode(*flat, positions, head_mask, probes)
        # a head has its _scores(F, encoded, words), from BERT's outputs by name
        result = self._scores(F, encoded, words)
        if own[0] is not None:
            result = self._loss(F, result, valid_length, *own)
        return self._result(result, encoded)

    def _flat(self, F, words, token_types, valid_length):
        """The inputs as `BertModel` takes them."""
        return words, token_types, valid_length

    def _loss(self, F, scores, valid_length, labels):
        """The loss of `_scores`; the head's own inputs but the positions come last."""
        return cross_entropy(F, scores, labels)

    @staticmethod
    def _result(result, encoded):
        if 'attentions' in encoded:
            result = [result, encoded['attentions']]
        return (result, encoded['heads']) if 'heads' in encoded else result


class BertForPreTraining(BertTask):
    """Masked language model and next sentence prediction together.

    Inputs
    ------
    words, token_types, valid_length
        See `BertModel`.
    masked_positions : (batch, positions), optional
        Where to predict words; None means everywhere.
    masked_lm_labels : (batch, positions), optional
        Word ids; -1 is left out. Without masked positions: (batch, length).
    next_sentence_label : (batch,), optional
        0: the second sentence follows the first; 1: it's a random one.
    head_mask : (heads,) or (layers, heads), optional

    Outputs
    -------
    With both labels the sum of the two losses, (1,); otherwise the scores:
    (batch, positions, vocab_size) and (batch, 2).
    """

    parts = {'use_pooler': True, 'use_decoder': True, 'use_classifier': True}
    takes_positions = True

    def __call__(
        self,
        words,
        token_types=None,
        valid_length=None,
        masked_positions=None,
        masked_lm_labels=None,
        next_sentence_label=None,
        head_mask=None,
        probes=None,
    ):
        if (masked_lm_labels is None) != (next_sentence_label is None):
            raise InputError('give both masked_lm_labels and next_sentence_label, or neither')
        _check_labels(
            'masked_lm_labels',
            masked_lm_labels,
            words if masked_positions is None else masked_positions,
            2,
            self.config.vocab_size,
        )
        _check_labels('next_sentence_label', next_sentence_label, words, 1, 2)
        specific = [masked_positions, masked_lm_labels, next_sentence_label]
        return self._check_and_run(words, token_types, valid_length, specific, head_mask, probes)

    def _scores(self, F, encoded, words):
        return [encoded['masked_lm'], encoded['next_sentence']]

    def _loss(self, F, scores, valid_length, masked_lm_labels, next_sentence_label):
        masked_lm, next_sentence = scores
        return cross_entropy(F, masked_lm, masked_lm_labels) + cross_entropy(
            F, next_sentence, next_sentence_label
        )


class BertForMaskedLM(BertTask):
    """Masked language model.

    Inputs
    ------
    words, token_types, valid_length
        See `BertModel`.
    masked_positions : (batch, positions), optional
        Where to predict words; None means everywhere.
    masked_lm_labels : (batch, positions), optional
        Word ids; -1 is left out. Without masked positions: (batch, length).
    head_mask : (heads,) or (layers, heads), optional

    Outputs
    -------
    The loss, (1,), or scores of (batch, positions, vocab_size).
    """

    parts = {'use_pooler': False, 'use_decoder': True}
    takes_positions = True

    def __call__(
        self,
        words,
        token_types=None,
        valid_length=None,
        masked_positions=None,
        masked_lm_labels=None,
        head_mask=None,
        probes=None,
    ):
        _check_labels(
            'masked_lm_labels',
            masked_lm_labels,
            words if masked_positions is None else masked_positions,
            2,
            self.config.vocab_size,
        )
        specific = [masked_positions, masked_lm_labels]
        return self._check_and_run(words, token_types, valid_length, specific, head_mask, probes)

    def _scores(self, F, encoded, words):
        return encoded['masked_lm']


class BertForNextSentencePrediction(BertTask):
    """Next sentence prediction.

    Inputs
    ------
    words, token_types, valid_length
        See `BertModel`.
    next_sentence_label : (batch,), optional
        0: the second sentence follows the first; 1: it's a random one.
    head_mask : (heads,) or (layers, heads), optional

    Outputs
    -------
    The loss, (1,), or scores of (batch, 2).
    """

    parts = {'use_pooler': True, 'use_classifier': True}

    def __call__(
        self,
        words,
        token_types=None,
        valid_length=None,
        next_sentence_label=None,
        head_mask=None,
        probes=None,
    ):
        _check_labels('next_sentence_label', next_sentence_label, words, 1, 2)
        return self._check_and_run(
            words, token_types, valid_length, [next_sentence_label], head_mask, probes
        )

    def _scores(self, F, encoded, words):
        return encoded['next_sentence']


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
    words, token_types, valid_length
        See `BertModel`.
    labels : (batch,), optional
    head_mask : (heads,) or (layers, heads), optional

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
        with self.name_scope():
            self._set_dropout(dropout)
            self.classifier = self._dense(self.num_labels)

    def __call__(
        self,
        words,
        token_types=None,
        valid_length=None,
        labels=None,
        head_mask=None,
        probes=None,
    ):
        if self.num_labels > 1:
            _check_labels('labels', labels, words, 1, self.num_labels)
        else:
            column = isinstance(labels, mx.nd.NDArray) and labels.shape[1:] == (1,)
            _check_labels('labels', labels.reshape((-1,)) if column else labels, words, 1)
        return self._check_and_run(words, token_types, valid_length, [labels], head_mask, probes)

    def _scores(self, F, encoded, words):
        return self.classifier(self.dropout(encoded['pooled']))

    def _loss(self, F, scores, valid_length, labels):
        loss = mean_squared_error if self.num_labels == 1 else cross_entropy
        return loss(F, scores, labels)


class BertForMultipleChoice(BertTask):
    """The best of several continuations; any number of choices.

    Inputs
    ------
    words, token_types : (batch, choices, length)
    valid_length : (batch, choices), optional
    labels : (batch,), optional
    head_mask : (heads,) or (layers, heads), optional

    Outputs
    -------
    The loss, (1,), or scores of (batch, choices).
    """

    word_axes = 3
    parts = {'use_pooler': True}

    def __init__(self, bert, dropout=None, prefix=None, params=None, **options):
        super().__init__(bert, prefix=prefix, params=params, **options)
        with self.name_scope():
            self._set_dropout(dropout)
            self.classifier = self._dense(1)

    def __call__(
        self,
        words,
        token_types=None,
        valid_length=None,
        labels=None,
        head_mask=None,
        probes=None,
    ):
        choices = words.shape[1] if isinstance(words, mx.nd.NDArray) and words.ndim > 1 else None
        _check_labels('labels', labels, words, 1, choices)
        return self._check_and_run(words, token_types, valid_length, [labels], head_mask, probes)

    def _flat(self, F, words, token_types, valid_length):
        words = F.reshape(words, shape=(-3, 0))  # (B * choices, L)
        token_types = None if token_types is None else F.reshape(token_types, shape=(-3, 0))
        valid_length = None if valid_length is None else F.reshape(valid_length, shape=(-1,))
        return words, token_types, valid_length

    def _scores(self, F, encoded, words):
        scores = self.classifier(self.dropout(encoded['pooled']))  # (B * choices, 1)
        scores = F.reshape(scores, shape=(-1,))
        return F.reshape_like(scores, words, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2)


class BertForTokenClassification(BertTask):
    """A label for each token.

    Parameters
    ----------
    bert : BertConfig or BertModel
    num_labels : int, optional
        Default: the configuration's.
    dropout : float, optional
        Rate on the encoder's output. Default: the configuration's ``hidden_dropout_prob``.

    Inputs
    ------
    words, token_types, valid_length
        See `BertModel`.
    labels : (batch, length), optional
        -1 where there is none: at special tokens, inner pieces, and padding.
    head_mask : (heads,) or (layers, heads), optional

    Outputs
    -------
    The loss, (1,), or scores of (batch, length, num_labels).
    """

    def __init__(
        self, bert, num_labels=None, dropout=None, prefix=None, params=None, **options
    ):
        super().__init__(bert, prefix=prefix, params=params, **options)
        self._set_num_labels(num_labels)
        with self.name_scope():
            self._set_dropout(dropout)
            self.classifier = self._dense(self.num_labels)

    def __call__(
        self,
        words,
        token_types=None,
        valid_length=None,
        labels=None,
        head_mask=None,
        probes=None,
    ):
        _check_labels('labels', labels, words, 2, self.num_labels)
        return self._check_and_run(words, token_types, valid_length, [labels], head_mask, probes)

    def _scores(self, F, encoded, words):
        return self.classifier(self.dropout(encoded['sequence']))

    def _loss(self, F, scores, valid_length, labels):
        if valid_length is not None:  # padding has no label, whatever the labels say
            labels = F.SequenceMask(
                F.transpose(labels, axes=(1, 0)),
                sequence_length=F.cast(valid_length, 'float32'),
                use_sequence_length=True,
                value=-1,
            )
            labels = F.transpose(labels, axes=(1, 0))
        return cross_entropy(F, scores, labels)


class BertForQuestionAnswering(BertTask):
    """Start and end of an answer in the text (SQuAD).

    Inputs
    ------
    words, token_types, valid_length
        See `BertModel`.
    start_positions, end_positions : (batch,), optional
        Positions outside of the sequence are left out of the loss.
    head_mask : (heads,) or (layers, heads), optional

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
        probes=None,
    ):
        if (start_positions is None) != (end_positions is None):
            raise InputError('give both start_positions and end_positions, or neither')
        _check_labels('start_positions', start_positions, words, 1)
        _check_labels('end_positions', end_positions, words, 1)
        specific = [start_positions, end_positions]
        return self._check_and_run(words, token_types, valid_length, specific, head_mask, probes)

    def _scores(self, F, encoded, words):
        scores = self.span_classifier(encoded['sequence'])  # (B, L, 2)
        start, end = F.split(scores, num_outputs=2, axis=2, squeeze_axis=True)
        return [start, end]

    def _loss(self, F, scores, valid_length, start_positions, end_positions):
        start, end = scores
        start_loss = span_cross_entropy(F, start, start_positions, valid_length)
        end_loss = span_cross_entropy(F, end, end_positions, valid_length)
        return (start_loss + end_loss) / 2
