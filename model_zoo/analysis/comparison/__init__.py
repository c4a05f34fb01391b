"""A checkpoint's outputs in its own software beside those of our block.

`make_inputs` -> `run_ours` and `run_theirs` -> `differences_of` -> `plot_differences`.
"""

from .differences import differences_of, plot_differences
from .inputs import Inputs, make_inputs
from .originals import SOFTWARE, check_software, run_theirs
from .ours import run_ours

__all__ = [
    'SOFTWARE',
    'Inputs',
    'check_software',
    'differences_of',
    'make_inputs',
    'plot_differences',
    'run_ours',
    'run_theirs',
]
