"""The models that GPT-2 adds to the zoo."""

from model_zoo.blocks.decoder.zoo import decoder_builder
from model_zoo.pretrained import register_pretrained
from model_zoo.registry import register_model

from .catalogue import PRETRAINED
from .heads import GPT2LMHeadModel

__all__ = ['gpt2_117m', 'gpt2_12_768_12', 'gpt2_24_1024_16', 'gpt2_345m']

register_pretrained(*PRETRAINED)

_build = decoder_builder(
    GPT2LMHeadModel, hidden_size=('n_inner',), activation=('activation_function',)
)


@register_model
def gpt2_12_768_12(**kwargs):
    """GPT-2 small: 12 layers, 768 units, 12 heads (Radford et al. 2019, table 2).

    Parameters
    ----------
    dataset_name : str, optional
        'openai_webtext', the default.
    vocab : gluonnlp.Vocab, optional
        With ``pretrained=False``, or for weights from a path.
    pretrained : bool or str, default True
        A string is the path of the weights, a file or a directory.
    ctx : mx.Context or list of mx.Context, default CPU
    root : str, optional
        Cache of weights, by default ``$MXNET_HOME/models``.
    hparam_allow_override : bool, default False
        Whether these may differ from the model's: num_layers, units, hidden_size, num_heads,
        max_length, activation, layer_norm_eps. The rate `dropout` always may.
    output_attention, output_all_encodings, keep_multihead_output : bool, default False
        See `GPT2Model`.
    predict_special_tokens : bool, default True
        See `GPT2LMHeadModel`.

    Returns
    -------
    (GPT2LMHeadModel, gluonnlp.Vocab)
        The vocabulary in the order of its own file.

    Raises
    ------
    UnknownNameError, PretrainedNotFoundError, CheckpointError, InputError
    """
    return _build('gpt2_12_768_12', **kwargs)


@register_model
def gpt2_24_1024_16(**kwargs):
    """GPT-2 medium: 24 layers, 1024 units, 16 heads; the arguments are `gpt2_12_768_12`'s."""
    return _build('gpt2_24_1024_16', **kwargs)


@register_model
def gpt2_117m(**kwargs):
    """GluonNLP's name of `gpt2_12_768_12`."""
    return gpt2_12_768_12(**kwargs)


@register_model
def gpt2_345m(**kwargs):
    """GluonNLP's name of `gpt2_24_1024_16`."""
    return gpt2_24_1024_16(**kwargs)
