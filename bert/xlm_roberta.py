"""XLM-R (Conneau et al. 2020): RoBERTa for a hundred languages, on sentence pieces."""

import dataclasses

from . import roberta, variants
from .catalogue import XLMR_ARCHITECTURES
from .roberta_tokenizer import XLMRobertaTokenizer

__all__ = [
    'XLMR',
    'XLMRobertaConfig',
    'XLMRobertaForMaskedLM',
    'XLMRobertaForMultipleChoice',
    'XLMRobertaForQuestionAnswering',
    'XLMRobertaForSequenceClassification',
    'XLMRobertaForTokenClassification',
    'XLMRobertaModel',
    'XLMRobertaSentenceEncoder',
    'xlmr_12_768_12',
    'xlmr_24_1024_16',
]


@dataclasses.dataclass
class XLMRobertaConfig(roberta.RobertaConfig):
    """Like `RobertaConfig`."""

    model_type = 'xlm-roberta'

    vocab_size: int = 250002


class XLMRobertaBlock:
    config_class = XLMRobertaConfig
    architectures = XLMR_ARCHITECTURES


class XLMRobertaModel(XLMRobertaBlock, roberta.RobertaModel):
    """Like `RobertaModel`."""

    huggingface_names = {(True, False): 'XLMRobertaForMaskedLM'}


class XLMRobertaTask(XLMRobertaBlock):
    model_class = XLMRobertaModel


class XLMRobertaForMaskedLM(XLMRobertaTask, roberta.RobertaForMaskedLM):
    """Like `RobertaForMaskedLM`."""


class XLMRobertaForSequenceClassification(XLMRobertaTask, roberta.RobertaForSequenceClassification):
    """Like `RobertaForSequenceClassification`."""


class XLMRobertaForMultipleChoice(XLMRobertaTask, roberta.RobertaForMultipleChoice):
    """Like `RobertaForMultipleChoice`."""


class XLMRobertaForTokenClassification(XLMRobertaTask, roberta.RobertaForTokenClassification):
    """Like `RobertaForTokenClassification`."""


class XLMRobertaForQuestionAnswering(XLMRobertaTask, roberta.RobertaForQuestionAnswering):
    """Like `RobertaForQuestionAnswering`."""


class XLMRobertaSentenceEncoder(XLMRobertaTask, roberta.RobertaSentenceEncoder):
    """Like `RobertaSentenceEncoder`."""

    huggingface_name = 'XLMRobertaModel'


#: what ``open_model`` knows of XLM-R
XLMR = variants.add_family(
    'xlmr',
    XLMRobertaModel,
    XLMRobertaTokenizer,
)
xlmr_12_768_12 = variants.add_model(XLMR, 'xlmr_12_768_12', 'XLM-R base: 12 layers.')
xlmr_24_1024_16 = variants.add_model(XLMR, 'xlmr_24_1024_16', 'XLM-R large: 24 layers.')
