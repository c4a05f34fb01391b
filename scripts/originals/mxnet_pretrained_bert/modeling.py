"""BERT, called as ``modeling.py`` of pytorch-pretrained-bert 0.6.2.

The classes are those of :mod:`bert`, of which they have the parameters and the outputs. The order
of the inputs and the defaults are the original's. `attention_mask` may also be a valid length.
"""

import logging

import bert
from bert import BertConfig

__all__ = [
    'BertConfig',
    'BertForMaskedLM',
    'BertForMultipleChoice',
    'BertForNextSentencePrediction',
    'BertForPreTraining',
    'BertForQuestionAnswering',
    'BertForSequenceClassification',
    'BertForTokenClassification',
    'BertModel',
]

_log = logging.getLogger(__name__)


def _both(**labels):
    """The labels; where one is missing none, as the original has no loss then either."""
    given = [name for name, each in labels.items() if each is not None]
    if len(given) == 1:
        _log.warning('%s is ignored: scores are returned, since there is no %s', given[0],
                     next(name for name in labels if name != given[0]))  # fmt: skip
        return dict.fromkeys(labels)
    return labels


class BertModel(bert.BertModel):
    """BERT's encoder; see :class:`bert.BertModel`.

    Inputs
    ------
    input_ids, token_type_ids, attention_mask : (batch, length)
    output_all_encoded_layers : bool
        Whether the first output is the list of all layers' states, or the last layer's.
    head_mask : (heads,) or (layers, heads), optional
    """

    def __call__(
        self,
        input_ids,
        token_type_ids=None,
        attention_mask=None,
        output_all_encoded_layers=True,
        head_mask=None,
    ):
        return super().__call__(
            input_ids, token_type_ids, attention_mask, head_mask=head_mask,
            output_all_encoded_layers=output_all_encoded_layers,
        )  # fmt: skip


class BertForPreTraining(bert.BertForPreTraining):
    """See :class:`bert.BertForPreTraining`.

    Inputs
    ------
    input_ids, token_type_ids, attention_mask, head_mask
        See `BertModel`.
    masked_lm_labels : (batch, length), optional
    next_sentence_label : (batch,), optional
        With one of the labels alone the scores are returned, and a warning is logged.
    """

    def __call__(
        self,
        input_ids,
        token_type_ids=None,
        attention_mask=None,
        masked_lm_labels=None,
        next_sentence_label=None,
        head_mask=None,
    ):
        labels = _both(masked_lm_labels=masked_lm_labels, next_sentence_label=next_sentence_label)
        return super().__call__(
            input_ids, token_type_ids, attention_mask, head_mask=head_mask, **labels
        )


class BertForMaskedLM(bert.BertForMaskedLM):
    """See :class:`bert.BertForMaskedLM`.

    Inputs
    ------
    input_ids, token_type_ids, attention_mask, head_mask
        See `BertModel`.
    masked_lm_labels : (batch, length), optional
    """

    def __call__(
        self,
        input_ids,
        token_type_ids=None,
        attention_mask=None,
        masked_lm_labels=None,
        head_mask=None,
    ):
        return super().__call__(
            input_ids, token_type_ids, attention_mask, masked_lm_labels=masked_lm_labels,
            head_mask=head_mask,
        )  # fmt: skip


class BertForNextSentencePrediction(bert.BertForNextSentencePrediction):
    """See :class:`bert.BertForNextSentencePrediction`, whose inputs have the same order."""


class BertForSequenceClassification(bert.BertForSequenceClassification):
    """See :class:`bert.BertForSequenceClassification`, whose inputs have the same order."""


class BertForMultipleChoice(bert.BertForMultipleChoice):
    """See :class:`bert.BertForMultipleChoice`, whose inputs have the same order.

    Parameters
    ----------
    config : BertConfig or bert.BertModel
    num_choices : int, optional
    **options
        Of :class:`bert.BertForMultipleChoice`.
    """

    def __init__(self, config, num_choices=None, **options):
        super().__init__(config, num_choices=num_choices, **options)


class BertForTokenClassification(bert.BertForTokenClassification):
    """See :class:`bert.BertForTokenClassification`, whose inputs have the same order."""


class BertForQuestionAnswering(bert.BertForQuestionAnswering):
    """See :class:`bert.BertForQuestionAnswering`, whose inputs have the same order.

    With one of the positions alone the scores are returned, and a warning is logged.
    """

    def __call__(
        self,
        input_ids,
        token_type_ids=None,
        attention_mask=None,
        start_positions=None,
        end_positions=None,
        head_mask=None,
    ):
        positions = _both(start_positions=start_positions, end_positions=end_positions)
        return super().__call__(
            input_ids, token_type_ids, attention_mask, head_mask=head_mask, **positions
        )
