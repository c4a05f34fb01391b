"""Blocks as files that run without this project: symbol.json and parameters, or ONNX."""

import model_zoo  # noqa: F401  before MXNet

from .comparison import ExportError
from .onnx_file import Measures, export_onnx, export_onnx_folder
from .symbol_file import export_block

__all__ = ['ExportError', 'Measures', 'export_block', 'export_onnx', 'export_onnx_folder']
