"""Data for BERT's pre-training: text to samples, samples to files, files to batches.

``Corpus`` -> ``SampleMaker`` -> ``create_shards`` -> ``ShardFiles`` -> ``PretrainingLoader`` -> the
model; without files in between: ``TextFiles`` -> ``PretrainingLoader``.
"""

from . import create, files, loaders, sources, text
from .create import *  # noqa: F403
from .files import *  # noqa: F403
from .loaders import *  # noqa: F403
from .sources import *  # noqa: F403
from .text import *  # noqa: F403

#: the names of the modules, which each declares in its own
__all__ = []
__all__ += create.__all__
__all__ += files.__all__
__all__ += loaders.__all__
__all__ += sources.__all__
__all__ += text.__all__
