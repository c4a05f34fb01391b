"""Task heads on top of BERT.

Each head is called with ``(words, token_types, valid_length)`` and, optionally, labels. Without
labels it returns scores; with labels it returns the loss, the mean over the labels that aren't -1.
The interfaces are those of pytorch-pretrained-bert's ``modeling.py``, with GluonNLP's
``valid_length`` in the place of the attention mask. Every head also takes a `head_mask`, as
`BertModel` does.
"""

from .finetuning import (
    BertForMultipleChoice,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from .pretraining import BertForMaskedLM, BertForNextSentencePrediction, BertForPreTraining
from .task import BertTask

__all__ = [
    'BertForMaskedLM',
    'BertForMultipleChoice',
    'BertForNextSentencePrediction',
    'BertForPreTraining',
    'BertForQuestionAnswering',
    'BertForSequenceClassification',
    'BertForTokenClassification',
    'BertTask',
]
