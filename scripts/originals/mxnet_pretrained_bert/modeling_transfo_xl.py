"""Transformer-XL, called as ``modeling_transfo_xl.py`` of pytorch-pretrained-bert 0.6.2.

The memories are lists of the layers' arrays only, as in the original; all positions count.
"""

import mxnet as mx

import transfo_xl

from .file_utils import archive_map
from .torch_like import TorchLike

TransfoXLConfig = transfo_xl.TransfoXLConfig
#: names that `TransfoXLModel.from_pretrained` takes -> what they are called here
PRETRAINED_MODEL_ARCHIVE_MAP = archive_map('transfo_xl')


def load_tf_weights_in_transfo_xl(model, config, tf_path):
    """Load a TensorFlow checkpoint's weights that the model has; returns the model."""
    model.load_parameters(tf_path, allow_missing=True, ignore_extra=True)
    return model


class _Uncounted(TorchLike):
    """A block whose memories have numbers of valid positions only if the given ones have them."""

    arguments = ()

    def call(self, mems=None, **inputs):
        counted = len(mems or ()) > self.config.n_layer
        if mems and not counted:
            length, batch, _ = mems[0].shape
            mems = [*mems, mx.nd.full((batch,), length, mems[0].context)]
        result, mems = super().call(mems=mems or None, **inputs)
        return result, mems if counted else mems[:-1]


class TransfoXLModel(_Uncounted, transfo_xl.TransfoXLModel):
    """See :class:`transfo_xl.TransfoXLModel`.

    Inputs
    ------
    input_ids : (batch, length)
    mems : list of (mem_len, batch, d_model), optional
        The `mems` of an earlier call.
    valid_length : (batch,), optional
        The original has none.

    Outputs
    -------
    hidden : (batch, length, d_model)
    mems : list of (mem_len, batch, d_model)
        The last positions of each layer's input: the layers' hidden states are
        ``[mem[-length:] for mem in mems]``, with the batch second, and ``hidden``.
    """

    order = ('input_ids', 'mems', 'valid_length')


class TransfoXLLMHeadModel(_Uncounted, transfo_xl.TransfoXLLMHeadModel):
    """See :class:`transfo_xl.TransfoXLLMHeadModel`.

    Inputs
    ------
    input_ids : (batch, length)
    target : (batch, length), optional
        The words to predict.
    mems, valid_length
        See `TransfoXLModel`.

    Outputs
    -------
    The losses, (batch, length), or the scores (batch, length, vocab_size); and the memories.
    """

    model_class = TransfoXLModel
    order = ('input_ids', 'target', 'mems', 'valid_length')

    def call(self, target=None, **inputs):
        return super().call(labels=target, **inputs)


__all__ = [name for name in dir() if name.startswith(('TransfoXL', 'load_tf_'))]
