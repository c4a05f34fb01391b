"""A symbol as an ONNX graph: translations of operators, with every size open; and its files."""

from .graph import OPSET, fuse, save, to_onnx
from .precision import CALIBRATION_METHODS, PRECISIONS, Quantizer, convert, reduces_range

__all__ = [
    'CALIBRATION_METHODS',
    'OPSET',
    'PRECISIONS',
    'Quantizer',
    'convert',
    'fuse',
    'reduces_range',
    'save',
    'to_onnx',
]
