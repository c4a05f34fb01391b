"""BERT: configuration, model, task heads and tokenizer."""

from . import config, distilbert, electra, heads, model, roberta, tokenizer, xlm_roberta
from .config import *  # noqa: F403
from .distilbert import *  # noqa: F403
from .electra import *  # noqa: F403
from .heads import *  # noqa: F403
from .model import *  # noqa: F403
from .roberta import *  # noqa: F403
from .roberta_tokenizer import RobertaTokenizer, XLMRobertaTokenizer
from .tokenizer import *  # noqa: F403
from .xlm_roberta import *  # noqa: F403

#: the names of the modules, which each declares in its own
__all__ = ['RobertaTokenizer', 'XLMRobertaTokenizer']
__all__ += config.__all__
__all__ += distilbert.__all__
__all__ += electra.__all__
__all__ += heads.__all__
__all__ += model.__all__
__all__ += roberta.__all__
__all__ += tokenizer.__all__
__all__ += xlm_roberta.__all__
