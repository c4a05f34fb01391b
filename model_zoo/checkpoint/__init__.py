"""Files of weights <-> ``{name: numpy.ndarray}`` <-> a block's parameters.

A reader knows a file format and no family (`tensor_files`, `torch_file`); a `Mapping` is
a family's table of names and knows no format.
"""

from .mapping import Fused, Mapping, OneWide, Padded, Rule, Stacked, Transposed, layer_rules
from .readers import read_tensors

__all__ = [
    'Fused',
    'Mapping',
    'OneWide',
    'Padded',
    'Rule',
    'Stacked',
    'Transposed',
    'layer_rules',
    'read_tensors',
]
