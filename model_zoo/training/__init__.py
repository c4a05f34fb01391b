"""The training loop: objectives, checkpoints, callbacks, interruption, workers."""

from . import callbacks, checkpoint, loop, objective, plan, updater, workers
from .callbacks import *  # noqa: F403
from .checkpoint import *  # noqa: F403
from .loop import *  # noqa: F403
from .objective import *  # noqa: F403
from .plan import *  # noqa: F403
from .updater import *  # noqa: F403
from .workers import *  # noqa: F403

#: the names of the modules, which each declares in its own
__all__ = []
__all__ += callbacks.__all__
__all__ += checkpoint.__all__
__all__ += loop.__all__
__all__ += objective.__all__
__all__ += plan.__all__
__all__ += updater.__all__
__all__ += workers.__all__
