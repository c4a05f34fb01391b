"""BERT: configuration, model, task heads and tokenizer."""

from .config import BertConfig
from .heads import (
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from .model import BertModel

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
