"""OpenAI GPT, called as ``modeling_openai.py`` of pytorch-pretrained-bert 0.6.2."""

import gpt
from model_zoo.layers.graphs import with_attributes

from .file_utils import archive_map
from .torch_like import TorchLike

OpenAIGPTConfig = gpt.OpenAIGPTConfig
#: names that `OpenAIGPTModel.from_pretrained` takes -> what they are called here
PRETRAINED_MODEL_ARCHIVE_MAP = archive_map('gpt')

TEXT = ('input_ids', 'position_ids', 'token_type_ids')
HEADS = ('input_ids', 'mc_token_ids', 'lm_labels', 'mc_labels')
CHOICES = (*HEADS, 'token_type_ids', 'position_ids')


def load_tf_weights_in_openai_gpt(model, checkpoint_path):
    """Load OpenAI's weights that the model has; returns the model."""
    path = checkpoint_path
    if model.config.model_type == 'openai-gpt' and not path.endswith('.json'):
        path = f'{path.rstrip("/")}/params_shapes.json'
    model.load_parameters(path, allow_missing=True, ignore_extra=True)
    return model


class DecoderLike(TorchLike):
    """A decoder whose first output is the list of all states, the embedding's and each layer's."""

    graph_options = ('output_all_encodings',)

    def call(self, **inputs):
        with with_attributes([self], output_all_encodings=True):
            return super().call(**inputs)


class DoubleHeads(TorchLike):
    """Two heads of a decoder, whose outputs are a list."""

    def call(self, **inputs):
        outputs = super().call(**inputs)
        return outputs if isinstance(outputs, list) else [outputs]


class OpenAIGPTModel(DecoderLike, gpt.OpenAIGPTModel):
    """See :class:`gpt.OpenAIGPTModel`.

    Inputs
    ------
    input_ids, position_ids, token_type_ids : (..., length)
    head_mask : (heads,) or (layers, heads), optional
    valid_length : (...), optional
        The original has none.

    Outputs
    -------
    list of (..., length, n_embd)
        States of the embedding, and of each layer.
    """

    order = (*TEXT, 'head_mask', 'valid_length')


class _GPTHead(TorchLike):
    model_class = OpenAIGPTModel


class OpenAIGPTLMHeadModel(_GPTHead, gpt.OpenAIGPTLMHeadModel):
    """See :class:`gpt.OpenAIGPTLMHeadModel`.

    Inputs
    ------
    input_ids, position_ids, token_type_ids, head_mask, valid_length
        See `OpenAIGPTModel`.
    lm_labels : (..., length), optional
    """

    order = (*TEXT, 'lm_labels', 'head_mask', 'valid_length')


class OpenAIGPTDoubleHeadsModel(DoubleHeads, _GPTHead, gpt.OpenAIGPTDoubleHeadsModel):
    """See :class:`gpt.OpenAIGPTDoubleHeadsModel`.

    Inputs
    ------
    input_ids : (batch, choices, length)
    mc_token_ids : (batch, choices)
    lm_labels : (batch, choices, length), optional
    mc_labels : (batch,), optional
        With labels there is a list of the losses.
    token_type_ids, position_ids : (batch, choices, length), optional
    head_mask, valid_length
        See `OpenAIGPTModel`.
    """

    order = (*CHOICES, 'head_mask', 'valid_length')


__all__ = [name for name in dir() if name.startswith(('OpenAIGPT', 'load_tf_'))]
