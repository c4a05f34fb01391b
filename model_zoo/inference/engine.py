"""What runs a model: an engine takes NumPy arrays of a batch and returns the model's outputs."""

import abc
import threading

import mxnet as mx
import numpy as np

from .bfloat16 import CastBlock

__all__ = ['Engine', 'MXNetEngine']


class Engine(abc.ABC):
    """Runs one model. An engine may be used from several threads.

    Attributes
    ----------
    name : str
    lock : threading.Lock
        Held while the model runs.
    """

    name = None

    def __init__(self):
        self.lock = threading.Lock()

    @abc.abstractmethod
    def run(self, words, token_types, valid_length):
        """Compute the outputs of a batch.

        Parameters
        ----------
        words, token_types : numpy.ndarray, shape (batch, length), int32
            Token ids, padded on the right, and token types. A model without token types leaves
            them out.
        valid_length : numpy.ndarray, shape (batch,), int32

        Returns
        -------
        list of numpy.ndarray, float32
            Of the same batch size.
        """


class MXNetEngine(Engine):
    """Runs a Gluon block. The weights of one in bfloat16 are cast once, by the first call.

    Calls from several threads run one after the other: MXNet uses all processors for each.

    Parameters
    ----------
    block : ZooBlock
    ctx : mx.Context, optional
        Where the parameters are; default: the CPU.
    """

    name = 'mxnet'

    def __init__(self, block, ctx=None):
        super().__init__()
        self.block, self._ctx = block, ctx or mx.cpu()
        self._cast = None  # the graph of a block in bfloat16
        # without static_alloc, which plans the memory anew for each shape of a batch
        block.hybridize()

    @property
    def language_model(self):
        """What `model_zoo.generation.generate` continues texts with."""
        return self.block

    def run(self, words, token_types, valid_length):
        arrays = [words, token_types, valid_length.astype(np.float32)]
        if self.block.word_axes == 3:  # a choice is a text of its own
            arrays = [np.expand_dims(each, 1) for each in arrays]
        with self.lock:
            words, token_types, valid_length = (
                mx.nd.array(each, self._ctx, each.dtype) for each in arrays
            )
            outputs = self._outputs(words, token_types, valid_length)
            return [each.astype('float32', copy=False).asnumpy() for each in outputs]

    def _outputs(self, words, token_types, valid_length):
        if self.block.precision == 'bfloat16':
            self._cast = self._cast or CastBlock(self.block)
            return self._cast(words, token_types, valid_length)
        outputs = self.block(words, token_types=token_types, valid_length=valid_length)
        return outputs if isinstance(outputs, (list, tuple)) else [outputs]
