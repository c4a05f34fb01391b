"""A symbol as an ONNX graph: translations of operators, with every size open; and its files."""

from ..util.choices import CALIBRATION_METHODS
from ..util.choices import ONNX_PRECISIONS as PRECISIONS
from .graph import OPSET, fuse, save, to_onnx
from .precision import Quantizer, convert, reduces_range

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
