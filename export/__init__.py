"""Blocks as files that run without this project: symbol.json and parameters, or ONNX."""

from .export import ExportError, export_block
from .onnx_file import export_onnx

__all__ = ['ExportError', 'export_block', 'export_onnx']
