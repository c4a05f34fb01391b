"""BERT, called as ``modeling.py`` of pytorch-pretrained-bert 0.6.2.

The classes derive from the classes of :mod:`bert` and have their parameters. The defaults and the
order of the inputs and outputs are the original's. `attention_mask` may also be a valid length.
"""

import logging

import mxnet as mx

import bert
from model_zoo.layers.graphs import uses_standard_operators
from model_zoo.layers.losses import span_cross_entropy

from .file_utils import archive_map
from .torch_like import TorchLike

BertConfig = bert.BertConfig
#: names that `BertModel.from_pretrained` takes -> what they are called here
PRETRAINED_MODEL_ARCHIVE_MAP = archive_map('bert')

_log = logging.getLogger(__name__)

_TEXT = ('input_ids', 'token_type_ids', 'attention_mask')


def _both(**labels):
    """Return the labels, or None for all if one is missing: the original has no loss then."""
    given = [name for name, value in labels.items() if value is not None]
    if len(given) == 1:
        missing = next(name for name in labels if name != given[0])
        _log.warning('%s is ignored: scores are returned, since there is no %s', given[0], missing)
        return dict.fromkeys(labels)
    return labels


def load_tf_weights_in_bert(model, tf_checkpoint_path):
    """Load a TensorFlow checkpoint's weights that the model has; returns the model."""
    model.load_parameters(tf_checkpoint_path, allow_missing=True, ignore_extra=True)
    return model


class BertModel(TorchLike, bert.BertModel):
    """BERT's encoder; see :class:`bert.BertModel`.

    Inputs
    ------
    input_ids, token_type_ids, attention_mask : (batch, length)
    output_all_encoded_layers : bool
        Whether the first output is the list of all layers' states, or the last layer's.
    head_mask : (heads,) or (layers, heads), optional
    """

    order = (*_TEXT, 'output_all_encoded_layers', 'head_mask')

    def call(self, output_all_encoded_layers=True, **inputs):
        return super().call(output_all_encoded_layers=output_all_encoded_layers, **inputs)

    def _embed(self, F, words, token_types):
        embedding = super()._embed(F, words, token_types)
        if uses_standard_operators():  # of an export
            return embedding
        # the original's table has padding_idx=0: looking up [PAD] doesn't train it
        dtype = 'float16' if self.precision == 'float16' else 'float32'
        is_pad = F.expand_dims(F.cast(words == 0, dtype), 2)  # (B, L, 1)
        vectors = self.word_embed(words)
        return embedding - F.broadcast_mul(is_pad, vectors - F.BlockGrad(vectors))


class _BertHead(TorchLike):
    model_class = BertModel
    parts = {'use_pooler': True}  # the original's backbone has it, whether the head uses it or not


class BertForPreTraining(_BertHead, bert.BertForPreTraining):
    """See :class:`bert.BertForPreTraining`.

    Inputs
    ------
    input_ids, token_type_ids, attention_mask, head_mask
        See `BertModel`.
    masked_lm_labels : (batch, length), optional
    next_sentence_label : (batch,), optional
        With one of the labels alone the scores are returned, and a warning is logged.
    """

    order = (*_TEXT, 'masked_lm_labels', 'next_sentence_label', 'head_mask')
    parts = bert.BertForPreTraining.parts

    def call(self, masked_lm_labels=None, next_sentence_label=None, **inputs):
        labels = _both(masked_lm_labels=masked_lm_labels, next_sentence_label=next_sentence_label)
        return super().call(**inputs, **labels)


class BertForMaskedLM(_BertHead, bert.BertForMaskedLM):
    """See :class:`bert.BertForMaskedLM`.

    Inputs
    ------
    input_ids, token_type_ids, attention_mask, head_mask
        See `BertModel`.
    masked_lm_labels : (batch, length), optional
    """

    order = (*_TEXT, 'masked_lm_labels', 'head_mask')
    parts = {**bert.BertForMaskedLM.parts, **_BertHead.parts}


class BertForNextSentencePrediction(_BertHead, bert.BertForNextSentencePrediction):
    """See :class:`bert.BertForNextSentencePrediction`, whose inputs have the same order."""

    order = (*_TEXT, 'next_sentence_label', 'head_mask')
    parts = bert.BertForNextSentencePrediction.parts


class _LabelsHead(_BertHead):
    arguments = ('num_labels', *TorchLike.arguments)
    order = (*_TEXT, 'labels', 'head_mask')


class BertForSequenceClassification(_LabelsHead, bert.BertForSequenceClassification):
    """See :class:`bert.BertForSequenceClassification`, whose inputs have the same order."""


class BertForMultipleChoice(_LabelsHead, bert.BertForMultipleChoice):
    """See :class:`bert.BertForMultipleChoice`, whose inputs have the same order."""

    arguments = ('num_choices', *TorchLike.arguments)


class BertForTokenClassification(_LabelsHead, bert.BertForTokenClassification):
    """See :class:`bert.BertForTokenClassification`, whose inputs have the same order."""


class BertForQuestionAnswering(_BertHead, bert.BertForQuestionAnswering):
    """See :class:`bert.BertForQuestionAnswering`, whose inputs have the same order.

    With one of the positions alone the scores are returned, and a warning is logged. The loss is
    the original's: padding has its share of the probability (in :mod:`bert` it has none), and a
    position behind the sequence is left out.
    """

    order = (*_TEXT, 'start_positions', 'end_positions', 'head_mask')

    def call(self, start_positions=None, end_positions=None, **inputs):
        positions = _both(start_positions=start_positions, end_positions=end_positions)
        scores = super().call(**inputs)
        if positions['start_positions'] is None:
            return scores
        pairs = zip(scores[-2:], positions.values())
        losses = [span_cross_entropy(mx.nd, x, place.clip(0, x.shape[1])) for x, place in pairs]
        return (losses[0] + losses[1]) / 2


__all__ = [name for name in dir() if name.startswith(('Bert', 'load_tf_'))]
