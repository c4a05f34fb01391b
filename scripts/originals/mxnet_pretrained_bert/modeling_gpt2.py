"""GPT-2, called as ``modeling_gpt2.py`` of pytorch-pretrained-bert 0.6.2."""

import gpt2

from .file_utils import archive_map
from .modeling_openai import CHOICES, TEXT, DecoderLike, DoubleHeads, load_tf_weights_in_openai_gpt
from .torch_like import TorchLike

GPT2Config = gpt2.GPT2Config
#: names that `GPT2Model.from_pretrained` takes -> what they are called here
PRETRAINED_MODEL_ARCHIVE_MAP = archive_map('gpt2')

load_tf_weights_in_gpt2 = load_tf_weights_in_openai_gpt


class GPT2Model(DecoderLike, gpt2.GPT2Model):
    """See :class:`gpt2.GPT2Model`.

    Inputs
    ------
    input_ids, position_ids, token_type_ids : (..., length)
    past : list, optional
        The `presents` of an earlier call.
    head_mask : (heads,) or (layers, heads), optional

    Outputs
    -------
    hidden_states : list of (..., length, n_embd)
        Of the embedding, and of each layer.
    presents : list
    """

    order = (*TEXT, 'past', 'head_mask', 'valid_length')


class _GPT2Head(TorchLike):
    model_class = GPT2Model


class GPT2LMHeadModel(_GPT2Head, gpt2.GPT2LMHeadModel):
    """See :class:`gpt2.GPT2LMHeadModel`.

    Inputs
    ------
    input_ids, position_ids, token_type_ids, past, head_mask, valid_length
        See `GPT2Model`.
    lm_labels : (..., length), optional
    """

    order = (*TEXT, 'lm_labels', 'past', 'head_mask', 'valid_length')


class GPT2DoubleHeadsModel(DoubleHeads, _GPT2Head, gpt2.GPT2DoubleHeadsModel):
    """See :class:`gpt2.GPT2DoubleHeadsModel`.

    Inputs
    ------
    input_ids : (batch, choices, length)
    mc_token_ids : (batch, choices)
    lm_labels : (batch, choices, length), optional
    mc_labels : (batch,), optional
        With labels there is a list of the losses.
    token_type_ids, position_ids : (batch, choices, length), optional
    past, head_mask, valid_length
        See `GPT2Model`.
    """

    order = (*CHOICES, 'past', 'head_mask', 'valid_length')


__all__ = [name for name in dir() if name.startswith(('GPT2', 'load_tf_weights_in_gpt2'))]
