"""Text generation by language models of any family: greedy, sampled, or by beam search."""

from .generate import *
from .generate import __all__ as __all__
