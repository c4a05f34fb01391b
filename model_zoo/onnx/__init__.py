"""A symbol as an ONNX graph: translations of operators, with every size open; and its files."""

from .files import fuse, save
from .graph import OPSET, to_onnx
from .precision import CALIBRATION_METHODS, PRECISIONS, Quantizer, convert

__all__ = [
    'CALIBRATION_METHODS',
    'OPSET',
    'PRECISIONS',
    'Quantizer',
    'convert',
    'fuse',
    'save',
    'to_onnx',
]
