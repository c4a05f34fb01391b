"""The family OpenAI GPT, and the model that it adds to the zoo."""

from model_zoo.blocks.decoder_config import HPARAMS
from model_zoo.opening import build_model
from model_zoo.pretrained import register_pretrained
from model_zoo.registry import Family, register_family, register_model

from .catalogue import PRETRAINED
from .heads import OpenAIGPTDoubleHeadsModel, OpenAIGPTLMHeadModel
from .model import OpenAIGPTModel
from .tokenizer import OpenAIGPTTokenizer

__all__ = ['GPT', 'gpt_12_768_12']

register_pretrained(*PRETRAINED)

#: what ``open_model`` knows of OpenAI GPT
GPT = register_family(
    Family(
        'gpt',
        OpenAIGPTModel,
        {'language_model': OpenAIGPTLMHeadModel, 'multiple_choice': OpenAIGPTDoubleHeadsModel},
        OpenAIGPTTokenizer.from_vocab_file,
        vocab_kinds=('bpe',),
        hparams={**HPARAMS, 'activation': ('afn',)},
        zoo_task='language_model',
        release_names=('params_shapes.json',),
        word_end=OpenAIGPTTokenizer.suffix,
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
    return build_model(GPT, model, options=options, **arguments)


@register_model
def gpt_12_768_12(
    dataset_name=None, vocab=None, pretrained=True, ctx=None, root=None,
    hparam_allow_override=False, *, num_layers=None, units=None, embed_size=None, num_heads=None,
    max_length=None, activation=None, layer_norm_eps=None, dropout=None, output_attention=False,
    output_all_encodings=False, keep_multihead_output=False, predict_special_tokens=True,
):  # fmt: skip
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
    """
    return _build('gpt_12_768_12', **locals())
