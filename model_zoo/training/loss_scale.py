"""Scaling of the loss, so that small gradients don't vanish in float16."""

import dataclasses

__all__ = ['LossScale']

_HOPELESS = 100  # overflows in a row that a scale which can't shrink has to bear


@dataclasses.dataclass
class LossScale:
    """A factor of the loss. Updates with overflowed gradients are skipped.

    A dynamic scale is halved when a gradient overflows, and doubled after `window` updates without
    an overflow: the rule of Micikevicius et al., "Mixed Precision Training", section 3.2, and of
    MXNet's ``contrib.amp`` (its scaler can't be saved and restored).

    Parameters
    ----------
    value : float
        A power of 2, so that dividing by it is exact.
    good : int
        Updates since the last overflow or doubling.
    skipped : int
        Updates left out so far.
    window : int
    largest : float
    dynamic : bool
        Else the value stays as it is, as with the ``--loss_scale`` of pytorch-pretrained-BERT.
    overflows : int
        Overflows since the last update without one.
    """

    value: float = 2.0**16
    good: int = 0
    skipped: int = 0
    window: int = 2000
    largest: float = 2.0**24
    dynamic: bool = True
    overflows: int = 0

    def update(self, finite):
        """Adapt the scale to an update with finite gradients, or without."""
        if not finite:
            self.good, self.skipped, self.overflows = 0, self.skipped + 1, self.overflows + 1
            if self.dynamic:
                self.value /= 2
            return
        self.good, self.overflows = self.good + 1, 0
        if self.dynamic and self.good == self.window:
            self.value, self.good = min(2 * self.value, self.largest), 0

    @property
    def exhausted(self):
        """Whether gradients overflow for another reason than the scale."""
        return self.value < 1 if self.dynamic else self.overflows >= _HOPELESS
