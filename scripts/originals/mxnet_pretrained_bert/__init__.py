"""pytorch-pretrained-bert 0.6.2's names and conventions, on the blocks of this project.

Use ``from mxnet_pretrained_bert import BertModel`` instead of
``from pytorch_pretrained_bert import BertModel``. The classes take their inputs in that library's
order and have its defaults, so the rest of a program stays. A table in the documentation
translates torch's own calls (:doc:`/migrating/pytorch_pretrained_bert`). New programs
should use :mod:`bert`, :mod:`gpt`, :mod:`gpt2` and :mod:`transfo_xl`.
"""

import model_zoo  # before MXNet

from .file_utils import CONFIG_NAME, PYTORCH_PRETRAINED_BERT_CACHE, WEIGHTS_NAME, cached_path
from .modeling import (
    BertConfig,
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    load_tf_weights_in_bert,
)
from .modeling_gpt2 import (
    GPT2Config,
    GPT2DoubleHeadsModel,
    GPT2LMHeadModel,
    GPT2Model,
    load_tf_weights_in_gpt2,
)
from .modeling_openai import (
    OpenAIGPTConfig,
    OpenAIGPTDoubleHeadsModel,
    OpenAIGPTLMHeadModel,
    OpenAIGPTModel,
    load_tf_weights_in_openai_gpt,
)
from .modeling_transfo_xl import (
    TransfoXLConfig,
    TransfoXLLMHeadModel,
    TransfoXLModel,
    load_tf_weights_in_transfo_xl,
)
from .optimization import BertAdam
from .optimization_openai import OpenAIAdam
from .tokenization import BasicTokenizer, BertTokenizer, WordpieceTokenizer
from .tokenization_gpt2 import GPT2Tokenizer
from .tokenization_openai import OpenAIGPTTokenizer
from .tokenization_transfo_xl import TransfoXLCorpus, TransfoXLTokenizer

#: the original's names: classes, constants and these functions
__all__ = [name for name in dir() if name[0].isupper() or name.startswith(('cached_', 'load_tf_'))]
