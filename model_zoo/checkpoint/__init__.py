"""Files of weights <-> ``{name: numpy.ndarray}`` <-> a block's parameters.

A reader knows a file format and no family (`tensor_files`, `torch_file`); a `Mapping` is
a family's table of names and knows no format.
"""

from . import mapping
from .mapping import *
from .readers import read_tensors

__all__ = [*mapping.__all__, 'read_tensors']
