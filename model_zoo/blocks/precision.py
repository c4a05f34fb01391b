"""A block's precision; `model_zoo.layers.precision` has the layers that compute in it."""

from ..layers.precision import MixedPrecision, set_precision

__all__ = ['BlockPrecision']


class BlockPrecision(MixedPrecision):
    """The part of `ZooBlock` that is cast as a whole."""

    def cast(self, dtype):
        """Set the precision of the block and all its parts.

        In ``'float16'`` parameters, activations and results are float16, and the losses float32.
        In ``'bfloat16'`` the matrix products take bfloat16, and all else stays float32. See
        `model_zoo.layers.precision`. The graphs are dropped. Make a Trainer afterwards, with
        ``multi_precision=True`` in float16.

        Parameters
        ----------
        dtype : str, type or numpy.dtype
            ``'float32'``, ``'float16'`` or ``'bfloat16'``; `precision` tells which it is.
        """
        set_precision(self, dtype)
