"""MXNet's operators in ONNX's: one function each, ``translate(writer, node) -> Tensor or list``.

MXNet has translations of its own (``mxnet.onnx``). Many write sizes of the example's shapes into
the graph, and ``repeat`` and ``slice_like`` are wrong or missing; these here keep every size open.
"""

from . import elementwise, products, selection, shapes  # noqa: F401  they fill the table
from .table import OPERATORS

__all__ = ['OPERATORS']
