"""pytorch-pretrained-bert 0.6.2's names and conventions, on the blocks of this project.

Use ``from mxnet_pretrained_bert import BertModel`` instead of
``from pytorch_pretrained_bert import BertModel``. The classes take their inputs in that library's
order and have its defaults, so the rest of a program stays. A table in the documentation
translates torch's own calls (:doc:`/migrating/pytorch_pretrained_bert`). New programs
should use :mod:`bert`, :mod:`gpt`, :mod:`gpt2` and :mod:`transfo_xl`.
"""

import model_zoo  # before MXNet

from .file_utils import *
from .modeling import *
from .modeling_gpt2 import *
from .modeling_openai import *
from .modeling_transfo_xl import *
from .optimization import BertAdam
from .optimization_openai import OpenAIAdam
from .tokenization import BasicTokenizer, BertTokenizer, WordpieceTokenizer
from .tokenization_gpt2 import GPT2Tokenizer
from .tokenization_openai import OpenAIGPTTokenizer
from .tokenization_transfo_xl import TransfoXLCorpus, TransfoXLTokenizer

#: the original's names: classes, constants and these functions
__all__ = [name for name in dir() if name[0].isupper() or name.startswith(('cached_', 'load_tf_'))]
