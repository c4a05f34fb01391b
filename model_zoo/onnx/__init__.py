"""A symbol as an ONNX graph: translations of operators, with every size open; and its files."""

from .files import PRECISIONS, convert, fuse, save
from .graph import OPSET, to_onnx

__all__ = ['OPSET', 'PRECISIONS', 'convert', 'fuse', 'save', 'to_onnx']
