"""BERT: configuration, model, task heads and tokenizer."""

from .config import BertConfig, DistilBertConfig, ElectraConfig
from .distilbert import (
    DISTILBERT,
    DistilBertForMaskedLM,
    DistilBertForMultipleChoice,
    DistilBertForQuestionAnswering,
    DistilBertForSequenceClassification,
    DistilBertForTokenClassification,
    DistilBertModel,
    DistilBertSentenceEncoder,
    distilbert_6_768_12,
)
from .electra import (
    ELECTRA,
    ElectraForMaskedLM,
    ElectraForMultipleChoice,
    ElectraForPreTraining,
    ElectraForQuestionAnswering,
    ElectraForSequenceClassification,
    ElectraForTokenClassification,
    ElectraModel,
    ElectraSentenceEncoder,
    electra_12_256_4,
    electra_12_768_12,
    electra_24_1024_16,
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
    BertTask,
)
from .model import BertBlock, BertModel
from .roberta import (
    ROBERTA,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaForMultipleChoice,
    RobertaForQuestionAnswering,
    RobertaForSequenceClassification,
    RobertaForTokenClassification,
    RobertaModel,
    RobertaSentenceEncoder,
    roberta_6_768_12,
    roberta_12_768_12,
    roberta_24_1024_16,
)
from .roberta_tokenizer import RobertaTokenizer, XLMRobertaTokenizer
from .tokenizer import BasicTokenizer, BertSPTokenizer, BertTokenizer, WordpieceTokenizer
from .xlm_roberta import (
    XLMR,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
    XLMRobertaForMultipleChoice,
    XLMRobertaForQuestionAnswering,
    XLMRobertaForSequenceClassification,
    XLMRobertaForTokenClassification,
    XLMRobertaModel,
    XLMRobertaSentenceEncoder,
    xlmr_12_768_12,
    xlmr_24_1024_16,
)

__all__ = [
    'DISTILBERT', 'ELECTRA', 'ROBERTA', 'XLMR', 'BasicTokenizer', 'BertBlock', 'BertConfig',
    'BertForMaskedLM', 'BertForMultipleChoice', 'BertForNextSentencePrediction',
    'BertForPreTraining', 'BertForQuestionAnswering', 'BertForSequenceClassification',
    'BertForTokenClassification', 'BertModel', 'BertSPTokenizer', 'BertSentenceEncoder',
    'BertTask', 'BertTokenizer', 'DistilBertConfig', 'DistilBertForMaskedLM',
    'DistilBertForMultipleChoice', 'DistilBertForQuestionAnswering',
    'DistilBertForSequenceClassification', 'DistilBertForTokenClassification',
    'DistilBertModel', 'DistilBertSentenceEncoder', 'ElectraConfig', 'ElectraForMaskedLM',
    'ElectraForMultipleChoice', 'ElectraForPreTraining', 'ElectraForQuestionAnswering',
    'ElectraForSequenceClassification', 'ElectraForTokenClassification', 'ElectraModel',
    'ElectraSentenceEncoder', 'RobertaConfig', 'RobertaForMaskedLM', 'RobertaForMultipleChoice',
    'RobertaForQuestionAnswering', 'RobertaForSequenceClassification',
    'RobertaForTokenClassification', 'RobertaModel', 'RobertaSentenceEncoder',
    'RobertaTokenizer', 'WordpieceTokenizer', 'XLMRobertaConfig', 'XLMRobertaForMaskedLM',
    'XLMRobertaForMultipleChoice', 'XLMRobertaForQuestionAnswering',
    'XLMRobertaForSequenceClassification', 'XLMRobertaForTokenClassification',
    'XLMRobertaModel', 'XLMRobertaSentenceEncoder', 'XLMRobertaTokenizer',
    'distilbert_6_768_12', 'electra_12_256_4', 'electra_12_768_12', 'electra_24_1024_16',
    'roberta_12_768_12', 'roberta_24_1024_16', 'roberta_6_768_12', 'xlmr_12_768_12',
    'xlmr_24_1024_16',
]  # fmt: skip
