"""Scaling of the loss, so that small gradients don't vanish in float16."""

import dataclasses

__all__ = ['LossScale']


@dataclasses.dataclass
class LossScale:
    """A factor of the loss that follows what the gradients can bear.

    It is halved when a gradient overflows, whose update is left out, and doubled after `window`
    updates without one: the rule of Micikevicius et al., "Mixed Precision Training", section 3.2,
    and of MXNet's ``contrib.amp``, whose own scaler can't be saved and restored.

    Parameters
    ----------
    value : float
        A power of 2, by which a division is exact.
    good : int
        Updates since the last overflow or doubling.
    skipped : int
        Updates left out so far.
    window : int
    largest : float
    """

    value: float = 2.0**16
    good: int = 0
    skipped: int = 0
    window: int = 2000
    largest: float = 2.0**24

    def update(self, finite):
        """Take note of whether an update's gradients were finite."""
        if not finite:
            self.value, self.good, self.skipped = self.value / 2, 0, self.skipped + 1
            return
        self.good += 1
        if self.good == self.window:
            self.value, self.good = min(2 * self.value, self.largest), 0

    @property
    def exhausted(self):
        """Whether it can't be the scale that makes gradients overflow."""
        return self.value < 1
