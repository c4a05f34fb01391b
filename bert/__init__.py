"""BERT: configuration, model, task heads and tokenizer."""

from . import (
    albert,
    config,
    deberta,
    distilbert,
    electra,
    heads,
    later_tokenizers,
    model,
    modernbert,
    mpnet,
    roberta,
    roberta_tokenizer,
    tokenizer,
    xlm_roberta,
)
from .albert import *
from .config import *
from .deberta import *
from .distilbert import *
from .electra import *
from .heads import *
from .later_tokenizers import *
from .model import *
from .modernbert import *
from .mpnet import *
from .roberta import *
from .roberta_tokenizer import *
from .tokenizer import *
from .xlm_roberta import *

__all__ = []
__all__ += albert.__all__
__all__ += config.__all__
__all__ += deberta.__all__
__all__ += later_tokenizers.__all__
__all__ += distilbert.__all__
__all__ += electra.__all__
__all__ += heads.__all__
__all__ += model.__all__
__all__ += modernbert.__all__
__all__ += mpnet.__all__
__all__ += roberta.__all__
__all__ += roberta_tokenizer.__all__
__all__ += tokenizer.__all__
__all__ += xlm_roberta.__all__
