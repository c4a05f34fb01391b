"""The family GPT-2, and the models that it adds to the zoo."""

from model_zoo.blocks.decoder_config import HPARAMS
from model_zoo.opening import build_model
from model_zoo.pretrained import register_pretrained
from model_zoo.registry import Family, register_family, register_model

from .catalogue import PRETRAINED
from .heads import GPT2DoubleHeadsModel, GPT2LMHeadModel
from .model import GPT2Model
from .tokenizer import GPT2Tokenizer

__all__ = [
    'GPT2',
    'gpt2_117m',
    'gpt2_12_768_12',
    'gpt2_1558m',
    'gpt2_24_1024_16',
    'gpt2_345m',
    'gpt2_36_1280_20',
    'gpt2_48_1600_25',
    'gpt2_774m',
]

register_pretrained(*PRETRAINED)

#: what ``open_model`` knows of GPT-2
GPT2 = register_family(
    Family(
        'gpt2',
        GPT2Model,
        {'language_model': GPT2LMHeadModel, 'multiple_choice': GPT2DoubleHeadsModel},
        GPT2Tokenizer.from_vocab_file,
        vocab_kinds=('bpe',),
        hparams={**HPARAMS, 'hidden_size': ('n_inner',), 'activation': ('activation_function',)},
        zoo_task='language_model',
        release_names=('hparams.json',),
    )
)


def _build(
    model,
    output_attention,
    output_all_encodings,
    keep_multihead_output,
    predict_special_tokens,
    **arguments,
):
    options = {
        'output_attentions': output_attention,
        'output_all_encodings': output_all_encodings,
        'keep_multihead_output': keep_multihead_output,
        'predict_special_tokens': predict_special_tokens,
    }
    return build_model(GPT2, model, options=options, **arguments)


@register_model
def gpt2_12_768_12(
    dataset_name=None, vocab=None, pretrained=True, ctx=None, root=None,
    hparam_allow_override=False, *, num_layers=None, units=None, embed_size=None,
    hidden_size=None, num_heads=None, max_length=None, activation=None, layer_norm_eps=None,
    dropout=None, output_attention=False, output_all_encodings=False,
    keep_multihead_output=False, predict_special_tokens=True,
):  # fmt: skip
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
    """
    return _build('gpt2_12_768_12', **locals())


@register_model
def gpt2_24_1024_16(
    dataset_name=None, vocab=None, pretrained=True, ctx=None, root=None,
    hparam_allow_override=False, *, num_layers=None, units=None, embed_size=None,
    hidden_size=None, num_heads=None, max_length=None, activation=None, layer_norm_eps=None,
    dropout=None, output_attention=False, output_all_encodings=False,
    keep_multihead_output=False, predict_special_tokens=True,
):  # fmt: skip
    """GPT-2 medium: 24 layers, 1024 units, 16 heads; the arguments are `gpt2_12_768_12`'s."""
    return _build('gpt2_24_1024_16', **locals())


@register_model
def gpt2_36_1280_20(
    dataset_name=None, vocab=None, pretrained=True, ctx=None, root=None,
    hparam_allow_override=False, *, num_layers=None, units=None, embed_size=None,
    hidden_size=None, num_heads=None, max_length=None, activation=None, layer_norm_eps=None,
    dropout=None, output_attention=False, output_all_encodings=False,
    keep_multihead_output=False, predict_special_tokens=True,
):  # fmt: skip
    """GPT-2 large: 36 layers, 1280 units, 20 heads; the arguments are `gpt2_12_768_12`'s."""
    return _build('gpt2_36_1280_20', **locals())


@register_model
def gpt2_48_1600_25(
    dataset_name=None, vocab=None, pretrained=True, ctx=None, root=None,
    hparam_allow_override=False, *, num_layers=None, units=None, embed_size=None,
    hidden_size=None, num_heads=None, max_length=None, activation=None, layer_norm_eps=None,
    dropout=None, output_attention=False, output_all_encodings=False,
    keep_multihead_output=False, predict_special_tokens=True,
):  # fmt: skip
    """GPT-2 XL: 48 layers, 1600 units, 25 heads; the arguments are `gpt2_12_768_12`'s."""
    return _build('gpt2_48_1600_25', **locals())


# GluonNLP's names, and such of the sizes that it doesn't have
gpt2_117m = register_model(gpt2_12_768_12, 'gpt2_117m')
gpt2_345m = register_model(gpt2_24_1024_16, 'gpt2_345m')
gpt2_774m = register_model(gpt2_36_1280_20, 'gpt2_774m')
gpt2_1558m = register_model(gpt2_48_1600_25, 'gpt2_1558m')
