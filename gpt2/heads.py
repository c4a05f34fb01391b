"""Task heads on top of GPT-2."""

from model_zoo.blocks.decoder.heads import DecoderDoubleHeads, DecoderLM
from model_zoo.generation import GenerationMixin

from .model import GPT2Block, GPT2Model

__all__ = ['GPT2DoubleHeadsModel', 'GPT2LMHeadModel']


class GPT2LMHeadModel(GPT2Block, DecoderLM, GenerationMixin):
    """GPT-2 with a language model's head: the product with the word embedding.

    Parameters
    ----------
    transformer : GPT2Config or GPT2Model
    predict_special_tokens : bool
        Whether the scores include the special tokens behind the vocabulary.
    **options
        For the new `GPT2Model`.

    Inputs
    ------
    words, token_types, valid_length, position_ids
        See `DecoderModel`.
    lm_labels : (..., length), optional
        Token ids, mostly `words` themselves: the score of place i is compared with the label of
        place i + 1. -1 is left out, and so is what is behind the valid length.
    past, head_mask
        See `DecoderModel`.

    Outputs
    -------
    With labels the loss, (1,). Without, a list: scores (..., length, tokens), presents, and with
    `output_attentions` the attentions.

    References
    ----------
    ``GPT2LMHeadModel`` of pytorch-pretrained-bert's modeling_gpt2.py.
    """

    model_class = GPT2Model


class GPT2DoubleHeadsModel(GPT2Block, DecoderDoubleHeads):
    """GPT-2 with a language model's head and a multiple choice head.

    Inputs
    ------
    words : (batch, choices, length)
    mc_token_ids : (batch, choices)
        Place of the token of each choice that the multiple choice head looks at, mostly the last.
    token_types, valid_length, position_ids
        See `DecoderModel`.
    lm_labels : (batch, choices, length), optional
        As for `GPT2LMHeadModel`.
    mc_labels : (batch,), optional
        The right choices; -1 is left out.
    past, head_mask
        See `DecoderModel`.

    Outputs
    -------
    With labels the losses, (1,) each: the language model's, the multiple choice's, or a list of
    both. Without, a list: scores (batch, choices, length, tokens), choices' scores (batch,
    choices), presents, and with `output_attentions` the attentions.

    References
    ----------
    ``GPT2DoubleHeadsModel`` of pytorch-pretrained-bert's modeling_gpt2.py, whose released language
    model's loss shifts the axis of the choices by mistake; here it's that of the tokens, as in its
    OpenAI GPT.
    """

    model_class = GPT2Model
