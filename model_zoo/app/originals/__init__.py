"""The originals' scripts as ours: their flags (`table`), and their files with their defaults."""

from .flags import add_originals, convert_originals
from .original import Original
from .scripts import (
    CONVERTERS,
    SCRIPTS,
    Converter,
    Script,
    load_script,
    original_main,
)
from .table import TABLE

__all__ = [
    'CONVERTERS',
    'SCRIPTS',
    'TABLE',
    'Converter',
    'Original',
    'Script',
    'add_originals',
    'convert_originals',
    'load_script',
    'original_main',
]
