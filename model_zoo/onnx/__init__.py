"""A symbol as an ONNX graph: translations of operators, with every size open; and its files."""

from .graph import OPSET, fuse, save, to_onnx, transpose_shared
from .precision import Quantizer, convert, reduces_range

__all__ = [
    'OPSET',
    'Quantizer',
    'convert',
    'fuse',
    'reduces_range',
    'save',
    'to_onnx',
    'transpose_shared',
]
