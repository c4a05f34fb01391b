"""A symbol as an ONNX graph: translations of operators, with every size open."""

from .graph import OPSET, to_onnx

__all__ = ['OPSET', 'to_onnx']
