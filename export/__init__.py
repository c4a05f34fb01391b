"""Blocks as files that MXNet runs without this project: symbol.json and parameters."""

from .export import ExportError, export_block

__all__ = ['ExportError', 'export_block']
