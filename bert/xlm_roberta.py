"""XLM-R (Conneau et al. 2020): RoBERTa for a hundred languages, on sentence pieces."""

import dataclasses

from . import roberta, variants
from .roberta_tokenizer import XLMRobertaTokenizer


@dataclasses.dataclass
class XLMRobertaConfig(roberta.RobertaConfig):
    """Like `RobertaConfig`."""

    model_type = 'xlm-roberta'

    vocab_size: int = 250002


class XLMRobertaBlock:
    config_class = XLMRobertaConfig


class XLMRobertaModel(XLMRobertaBlock, roberta.RobertaModel):
    """Like `RobertaModel`."""


#: what ``open_model`` knows of XLM-R
XLMR = variants.add_family(
    'xlmr', XLMRobertaModel, XLMRobertaTokenizer, heads=roberta.ROBERTA.tasks, backbone='roberta'
)
