"""Transformer-XL, called as ``modeling_transfo_xl.py`` of pytorch-pretrained-bert 0.6.2.

The memories are lists of the layers' arrays only, as there, all of whose places count.
"""

import mxnet as mx

import transfo_xl
from transfo_xl import TransfoXLConfig

__all__ = ['TransfoXLConfig', 'TransfoXLLMHeadModel', 'TransfoXLModel']


class _Uncounted:
    """Memories without the numbers of their valid places; with them they come back with them."""

    def _call(self, input_ids, mems, **inputs):
        counted = isinstance(input_ids, mx.sym.Symbol) or len(mems or ()) > self.config.n_layer
        if mems and not counted:
            length, batch, _ = mems[0].shape
            mems = [*mems, mx.nd.full((batch,), length, mems[0].context)]
        result, mems = super().__call__(input_ids, mems or None, **inputs)
        return result, mems if counted else mems[:-1]


class TransfoXLModel(_Uncounted, transfo_xl.TransfoXLModel):
    """See :class:`transfo_xl.TransfoXLModel`.

    Inputs
    ------
    input_ids : (batch, length)
    mems : list of (mem_len, batch, d_model), optional
        What an earlier call has returned.
    valid_length : (batch,), optional
        The original has none.

    Outputs
    -------
    hidden : (batch, length, d_model)
    mems : list of (mem_len, batch, d_model)
        The last places of what each layer was given: the layers' hidden states are
        ``[mem[-length:] for mem in mems]``, with the batch second, and ``hidden``.
    """

    def __call__(self, input_ids, mems=None, valid_length=None):
        return self._call(input_ids, mems, valid_length=valid_length)


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

    def __call__(self, input_ids, target=None, mems=None, valid_length=None):
        return self._call(input_ids, mems, valid_length=valid_length, labels=target)
