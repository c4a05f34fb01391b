"""BERT: configuration, model, task heads and tokenizer."""

from .albert import *
from .config import *
from .deberta import *
from .distilbert import *
from .electra import *
from .heads import *
from .model import *
from .modernbert import *
from .mpnet import *
from .roberta import *
from .roberta_tokenizer import *
from .tokenizer import *
from .xlm_roberta import *

_MODULES = [module for module in vars().values() if hasattr(module, '__all__')]
__all__ = [name for module in _MODULES for name in module.__all__]
