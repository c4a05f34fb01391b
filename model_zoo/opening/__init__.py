"""From the name of a model, a folder, or a file to a block and its tokenizer: the only way in.

The files are looked for once, the weights are read once, and their names are translated once. What
a family is like comes from its `Family` record: neither blocks nor families are imported here.
"""

from .build import build_model
from .family import families_like, find_block_class, find_family
from .open import Opened, open_block, open_model, open_tokenizer
from .weights import Weights, check_vocab, read_weights

__all__ = [
    'Opened',
    'Weights',
    'build_model',
    'check_vocab',
    'families_like',
    'find_block_class',
    'find_family',
    'open_block',
    'open_model',
    'open_tokenizer',
    'read_weights',
]
