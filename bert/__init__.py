"""BERT: configuration, model, task heads and tokenizer."""

from .config import BertConfig, DistilBertConfig, ElectraConfig
from .distilbert import (
    DistilBertForMaskedLM,
    DistilBertForMultipleChoice,
    DistilBertForQuestionAnswering,
    DistilBertForSequenceClassification,
    DistilBertForTokenClassification,
    DistilBertModel,
)
from .electra import (
    ElectraForMaskedLM,
    ElectraForMultipleChoice,
    ElectraForPreTraining,
    ElectraForQuestionAnswering,
    ElectraForSequenceClassification,
    ElectraForTokenClassification,
    ElectraModel,
)
from .heads import (
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertSentenceEncoder,
)
from .model import BertModel
from .roberta import (
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaForMultipleChoice,
    RobertaForQuestionAnswering,
    RobertaForSequenceClassification,
    RobertaForTokenClassification,
    RobertaModel,
)
from .roberta_tokenizer import RobertaTokenizer, XLMRobertaTokenizer
from .tokenizer import BasicTokenizer, BertSPTokenizer, BertTokenizer, WordpieceTokenizer
from .xlm_roberta import (
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
    XLMRobertaForMultipleChoice,
    XLMRobertaForQuestionAnswering,
    XLMRobertaForSequenceClassification,
    XLMRobertaForTokenClassification,
    XLMRobertaModel,
)

__all__ = [
    'BasicTokenizer',
    'BertConfig',
    'BertForMaskedLM',
    'BertForMultipleChoice',
    'BertForNextSentencePrediction',
    'BertForPreTraining',
    'BertForQuestionAnswering',
    'BertForSequenceClassification',
    'BertForTokenClassification',
    'BertModel',
    'BertSPTokenizer',
    'BertSentenceEncoder',
    'BertTokenizer',
    'DistilBertConfig',
    'DistilBertForMaskedLM',
    'DistilBertForMultipleChoice',
    'DistilBertForQuestionAnswering',
    'DistilBertForSequenceClassification',
    'DistilBertForTokenClassification',
    'DistilBertModel',
    'ElectraConfig',
    'ElectraForMaskedLM',
    'ElectraForMultipleChoice',
    'ElectraForPreTraining',
    'ElectraForQuestionAnswering',
    'ElectraForSequenceClassification',
    'ElectraForTokenClassification',
    'ElectraModel',
    'RobertaConfig',
    'RobertaForMaskedLM',
    'RobertaForMultipleChoice',
    'RobertaForQuestionAnswering',
    'RobertaForSequenceClassification',
    'RobertaForTokenClassification',
    'RobertaModel',
    'RobertaTokenizer',
    'WordpieceTokenizer',
    'XLMRobertaConfig',
    'XLMRobertaForMaskedLM',
    'XLMRobertaForMultipleChoice',
    'XLMRobertaForQuestionAnswering',
    'XLMRobertaForSequenceClassification',
    'XLMRobertaForTokenClassification',
    'XLMRobertaModel',
    'XLMRobertaTokenizer',
]
