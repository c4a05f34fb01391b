"""One flag of an original's script."""

import dataclasses
from typing import Any, Callable, Optional

from .. import cli

__all__ = ['Original']


@dataclasses.dataclass(frozen=True)
class Original:
    """A flag of an original script that is more than another name for one of ours.

    Parameters
    ----------
    help : str
        Of a flag without effect: why it has none, which is logged where the flag is given.
    ours : str, optional
        The flag that it sets, without dashes.
    value : object, optional
        What it sets that to, if the flag takes no value.
    type : callable, optional
        Of its value, as argparse takes it; `cli.boolean` also lets the flag stand alone. Without it
        the flag takes no value.
    convert : callable, optional
        ``convert(args)`` turns its value into those of our flags.
    with_flag : str, optional
        Another of these flags, whose conversion takes it along.
    """

    help: str
    ours: Optional[str] = None
    value: Any = None
    type: Optional[Callable] = None
    convert: Optional[Callable] = None
    with_flag: Optional[str] = None

    @property
    def has_effect(self):
        return any(part is not None for part in (self.ours, self.convert, self.with_flag))

    @property
    def options(self):
        """Keyword arguments of ``add_argument``."""
        options = {} if self.ours is None else {'dest': self.ours}
        if self.value is not None:
            return {**options, 'action': 'store_const', 'const': self.value}
        if self.type is None:
            return {**options, 'action': 'store_true'}
        if self.type is cli.boolean:
            return {**options, 'type': cli.boolean, 'nargs': '?', 'const': True}
        return options if self.type is str else {**options, 'type': self.type}
