"""XLM-R (Conneau et al. 2020): RoBERTa for a hundred languages, on sentence pieces."""

import dataclasses

from . import roberta, variants
from .catalogue import XLMR_ARCHITECTURES
from .roberta_tokenizer import XLMRobertaTokenizer


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


class XLMRobertaForMaskedLM(XLMRobertaBlock, roberta.RobertaForMaskedLM):
    """Like `RobertaForMaskedLM`."""


class XLMRobertaForSequenceClassification(
    XLMRobertaBlock, roberta.RobertaForSequenceClassification
):
    """Like `RobertaForSequenceClassification`."""


class XLMRobertaForMultipleChoice(XLMRobertaBlock, roberta.RobertaForMultipleChoice):
    """Like `RobertaForMultipleChoice`."""


class XLMRobertaForTokenClassification(XLMRobertaBlock, roberta.RobertaForTokenClassification):
    """Like `RobertaForTokenClassification`."""


class XLMRobertaForQuestionAnswering(XLMRobertaBlock, roberta.RobertaForQuestionAnswering):
    """Like `RobertaForQuestionAnswering`."""


class XLMRobertaSentenceEncoder(XLMRobertaBlock, roberta.RobertaSentenceEncoder):
    """Like `RobertaSentenceEncoder`."""


#: what ``open_model`` knows of XLM-R
XLMR = variants.add_family('xlmr', XLMRobertaModel, XLMRobertaTokenizer, backbone='roberta')
xlmr_12_768_12 = variants.add_model(XLMR, 'xlmr_12_768_12', 'XLM-R base: 12 layers.')
xlmr_24_1024_16 = variants.add_model(XLMR, 'xlmr_24_1024_16', 'XLM-R large: 24 layers.')
__all__ = variants.public_names(XLMR)
