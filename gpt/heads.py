"""Task heads on top of OpenAI GPT."""

from model_zoo.blocks.decoder.heads import DecoderDoubleHeads, DecoderLM
from model_zoo.generation import GenerationMixin

from .model import OpenAIGPTBlock, OpenAIGPTModel

__all__ = ['OpenAIGPTDoubleHeadsModel', 'OpenAIGPTLMHeadModel']


class OpenAIGPTLMHeadModel(OpenAIGPTBlock, DecoderLM, GenerationMixin):
    """OpenAI GPT with a language model's head: the product with the word embedding.

    Parameters
    ----------
    transformer : OpenAIGPTConfig or OpenAIGPTModel
    predict_special_tokens : bool
        Whether the scores include the special tokens behind the vocabulary.
    **options
        For the new `OpenAIGPTModel`.

    Inputs
    ------
    words, token_types, valid_length, position_ids
        See `DecoderModel`.
    lm_labels : (..., length), optional
        Token ids, mostly `words` themselves: the score of place i is compared with the label of
        place i + 1. -1 is left out, and so is what is behind the valid length.
    head_mask
        See `DecoderModel`.

    Outputs
    -------
    With labels the loss, (1,); without, the scores, (..., length, tokens). With
    `output_attentions` a list, whose last element is the list of the attentions.

    References
    ----------
    ``OpenAIGPTLMHeadModel`` of pytorch-pretrained-bert's modeling_openai.py.
    """

    model_class = OpenAIGPTModel


class OpenAIGPTDoubleHeadsModel(OpenAIGPTBlock, DecoderDoubleHeads):
    """OpenAI GPT with a language model's head and a multiple choice head.

    Inputs
    ------
    words : (batch, choices, length)
    mc_token_ids : (batch, choices)
        Place of the token of each choice that the multiple choice head looks at, mostly that of a
        special token at the end.
    token_types, valid_length, position_ids
        See `DecoderModel`.
    lm_labels : (batch, choices, length), optional
        As for `OpenAIGPTLMHeadModel`.
    mc_labels : (batch,), optional
        The right choices; -1 is left out.
    head_mask
        See `DecoderModel`.

    Outputs
    -------
    With labels the losses, (1,) each: the language model's, the multiple choice's, or a list of
    both. Without, a list: scores (batch, choices, length, tokens) and the choices' (batch,
    choices). With `output_attentions` the attentions follow.

    References
    ----------
    Radford et al., section 3.2; ``OpenAIGPTDoubleHeadsModel`` of pytorch-pretrained-bert's
    modeling_openai.py.
    """

    model_class = OpenAIGPTModel
