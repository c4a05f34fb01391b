"""OpenAI GPT, called as ``modeling_openai.py`` of pytorch-pretrained-bert 0.6.2."""

import gpt
from gpt import OpenAIGPTConfig

from .file_utils import archive_map
from .torch_like import TorchLike

__all__ = [
    'PRETRAINED_MODEL_ARCHIVE_MAP',
    'OpenAIGPTConfig',
    'OpenAIGPTDoubleHeadsModel',
    'OpenAIGPTLMHeadModel',
    'OpenAIGPTModel',
    'load_tf_weights_in_openai_gpt',
]

#: names that `OpenAIGPTModel.from_pretrained` takes -> what they are called here
PRETRAINED_MODEL_ARCHIVE_MAP = archive_map('gpt')


def load_tf_weights_in_openai_gpt(model, checkpoint_path):
    """Load OpenAI's weights, as far as the model has them; returns the model."""
    path = checkpoint_path
    if model.config.model_type == 'openai-gpt' and not path.endswith('.json'):
        path = f'{path.rstrip("/")}/params_shapes.json'
    model.load_parameters(path, allow_missing=True, ignore_extra=True)
    return model


class DecoderLike(TorchLike):
    """A decoder whose first output is the list of all states."""

    graph_options = ('output_all_encodings',)

    def all_states(self, *inputs):
        """Call our decoder; its states, each layer's and the embedding's, are a list."""
        self.output_all_encodings, usual = True, self.output_all_encodings
        try:
            return super().__call__(*inputs)
        finally:
            self.output_all_encodings = usual


class DecoderHead(TorchLike):
    """A head of a decoder, which keeps the originals' order of arguments."""


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

    def __call__(
        self,
        input_ids,
        position_ids=None,
        token_type_ids=None,
        head_mask=None,
        valid_length=None,
    ):
        return self.all_states(
            input_ids, token_type_ids, valid_length, position_ids, None, head_mask
        )


class _GPTHead(DecoderHead):
    model_class = OpenAIGPTModel


class OpenAIGPTLMHeadModel(_GPTHead, gpt.OpenAIGPTLMHeadModel):
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
            input_ids, token_type_ids, valid_length, position_ids, head_mask=head_mask,
            lm_labels=lm_labels,
        )  # fmt: skip


class OpenAIGPTDoubleHeadsModel(_GPTHead, gpt.OpenAIGPTDoubleHeadsModel):
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
        outputs = super().__call__(
            input_ids, mc_token_ids, token_type_ids, valid_length, position_ids,
            head_mask=head_mask, lm_labels=lm_labels, mc_labels=mc_labels,
        )  # fmt: skip
        return outputs if isinstance(outputs, list) else [outputs]
