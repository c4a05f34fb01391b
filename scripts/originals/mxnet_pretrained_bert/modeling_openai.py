"""OpenAI GPT, called as ``modeling_openai.py`` of pytorch-pretrained-bert 0.6.2."""

import gpt
from gpt import OpenAIGPTConfig

__all__ = [
    'OpenAIGPTConfig',
    'OpenAIGPTDoubleHeadsModel',
    'OpenAIGPTLMHeadModel',
    'OpenAIGPTModel',
]


class OpenAIGPTModel(gpt.OpenAIGPTModel):
    """See :class:`gpt.OpenAIGPTModel`.

    Inputs
    ------
    input_ids, position_ids, token_type_ids : (..., length)
    head_mask : (heads,) or (layers, heads), optional
    valid_length : (...), optional
        The original has none.
    """

    def __call__(
        self,
        input_ids,
        position_ids=None,
        token_type_ids=None,
        head_mask=None,
        valid_length=None,
    ):
        return super().__call__(
            input_ids, token_type_ids, valid_length, position_ids, head_mask=head_mask
        )


class OpenAIGPTLMHeadModel(gpt.OpenAIGPTLMHeadModel):
    """See :class:`gpt.OpenAIGPTLMHeadModel`.

    Inputs
    ------
    input_ids, position_ids, token_type_ids, head_mask, valid_length
        See `OpenAIGPTModel`.
    lm_labels : (..., length), optional
    """

    def __call__(
        self,
        input_ids,
        position_ids=None,
        token_type_ids=None,
        lm_labels=None,
        head_mask=None,
        valid_length=None,
    ):
        return super().__call__(
            input_ids, token_type_ids, valid_length, position_ids, lm_labels, head_mask=head_mask
        )


class OpenAIGPTDoubleHeadsModel(gpt.OpenAIGPTDoubleHeadsModel):
    """See :class:`gpt.OpenAIGPTDoubleHeadsModel`.

    Inputs
    ------
    input_ids : (batch, choices, length)
    mc_token_ids : (batch, choices)
    lm_labels : (batch, choices, length), optional
    mc_labels : (batch,), optional
    token_type_ids, position_ids : (batch, choices, length), optional
    head_mask, valid_length
        See `OpenAIGPTModel`.
    """

    def __call__(
        self,
        input_ids,
        mc_token_ids,
        lm_labels=None,
        mc_labels=None,
        token_type_ids=None,
        position_ids=None,
        head_mask=None,
        valid_length=None,
    ):
        return super().__call__(
            input_ids, mc_token_ids, token_type_ids, valid_length, position_ids, lm_labels,
            mc_labels, head_mask=head_mask,
        )  # fmt: skip
