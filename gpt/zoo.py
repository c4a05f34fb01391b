"""The model that OpenAI GPT adds to the zoo."""

from model_zoo.blocks.decoder.zoo import decoder_builder
from model_zoo.pretrained import register_pretrained
from model_zoo.registry import register_model

from .catalogue import PRETRAINED
from .heads import OpenAIGPTLMHeadModel

__all__ = ['gpt_12_768_12']

register_pretrained(*PRETRAINED)

_build = decoder_builder(OpenAIGPTLMHeadModel, activation=('afn',))


@register_model
def gpt_12_768_12(**kwargs):
    """OpenAI GPT: 12 layers, 768 units, 12 heads (Radford et al. 2018, section 4.1).

    Parameters
    ----------
    dataset_name : str, optional
        'book_corpus', the default.
    vocab : gluonnlp.Vocab, optional
        With ``pretrained=False``, or for weights from a path.
    pretrained : bool or str, default True
        A string is the path of the weights, a file or a directory.
    ctx : mx.Context or list of mx.Context, default CPU
    root : str, optional
        Cache of weights, by default ``$MXNET_HOME/models``.
    hparam_allow_override : bool, default False
        Whether these may differ from the model's: num_layers, units, num_heads, max_length,
        activation, layer_norm_eps. The rate `dropout` always may.
    output_attention, output_all_encodings, keep_multihead_output : bool, default False
        See `OpenAIGPTModel`.
    predict_special_tokens : bool, default True
        See `OpenAIGPTLMHeadModel`.

    Returns
    -------
    (OpenAIGPTLMHeadModel, gluonnlp.Vocab)
        The vocabulary in the order of its own file.

    Raises
    ------
    UnknownNameError, PretrainedNotFoundError, CheckpointError, InputError
    """
    return _build('gpt_12_768_12', **kwargs)
