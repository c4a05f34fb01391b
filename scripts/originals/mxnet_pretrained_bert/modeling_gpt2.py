"""GPT-2, called as ``modeling_gpt2.py`` of pytorch-pretrained-bert 0.6.2."""

import gpt2
from gpt2 import GPT2Config

__all__ = ['GPT2Config', 'GPT2DoubleHeadsModel', 'GPT2LMHeadModel', 'GPT2Model']


class GPT2Model(gpt2.GPT2Model):
    """See :class:`gpt2.GPT2Model`.

    Inputs
    ------
    input_ids, position_ids, token_type_ids : (..., length)
    past : list, optional
        The `presents` of an earlier call.
    head_mask : (heads,) or (layers, heads), optional
    valid_length : (...), optional
        The original has none.
    """

    def __call__(
        self,
        input_ids,
        position_ids=None,
        token_type_ids=None,
        past=None,
        head_mask=None,
        valid_length=None,
    ):
        return super().__call__(
            input_ids, token_type_ids, valid_length, position_ids, past, head_mask
        )


class GPT2LMHeadModel(gpt2.GPT2LMHeadModel):
    """See :class:`gpt2.GPT2LMHeadModel`.

    Inputs
    ------
    input_ids, position_ids, token_type_ids, past, head_mask, valid_length
        See `GPT2Model`.
    lm_labels : (..., length), optional
    """

    def __call__(
        self,
        input_ids,
        position_ids=None,
        token_type_ids=None,
        lm_labels=None,
        past=None,
        head_mask=None,
        valid_length=None,
    ):
        return super().__call__(
            input_ids, token_type_ids, valid_length, position_ids, lm_labels, past, head_mask
        )


class GPT2DoubleHeadsModel(gpt2.GPT2DoubleHeadsModel):
    """See :class:`gpt2.GPT2DoubleHeadsModel`.

    Inputs
    ------
    input_ids : (batch, choices, length)
    mc_token_ids : (batch, choices)
    lm_labels : (batch, choices, length), optional
    mc_labels : (batch,), optional
    token_type_ids, position_ids : (batch, choices, length), optional
    past, head_mask, valid_length
        See `GPT2Model`.
    """

    def __call__(
        self,
        input_ids,
        mc_token_ids,
        lm_labels=None,
        mc_labels=None,
        token_type_ids=None,
        position_ids=None,
        past=None,
        head_mask=None,
        valid_length=None,
    ):
        return super().__call__(
            input_ids, mc_token_ids, token_type_ids, valid_length, position_ids, lm_labels,
            mc_labels, past, head_mask,
        )  # fmt: skip
