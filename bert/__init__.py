"""BERT: configuration, model, task heads and tokenizer."""

from typing import TYPE_CHECKING, Any

import model_zoo  # before MXNet

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

if TYPE_CHECKING:  # variants' heads, which are made when their modules are imported

    def __getattr__(name: str) -> Any: ...


_MODULES = [module for module in vars().values() if hasattr(module, '__all__')]
__all__ = [name for module in _MODULES if module is not model_zoo for name in module.__all__]
