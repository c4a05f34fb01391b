"""Files of weights <-> ``{name: numpy.ndarray}`` <-> a block's parameters.

A reader knows a file format and no family (`params`, `safetensors_file`); a `Mapping` is a
family's table of names and knows no format.
"""

from .mapping import Fused, FusedConv1D, Mapping, OneWide, Padded, Rule, Stacked, Transposed
from .readers import read_tensors

__all__ = [
    'Fused',
    'FusedConv1D',
    'Mapping',
    'OneWide',
    'Padded',
    'Rule',
    'Stacked',
    'Transposed',
    'read_tensors',
]
