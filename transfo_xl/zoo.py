"""The family Transformer-XL, and the model that it adds to the zoo."""

from model_zoo.opening import build_model
from model_zoo.pretrained import register_pretrained
from model_zoo.registry import Family, register_family, register_model

from .catalogue import PRETRAINED
from .config import TransfoXLConfig
from .heads import TransfoXLLMHeadModel
from .model import TransfoXLModel
from .tokenizer import TransfoXLTokenizer

__all__ = ['TRANSFO_XL', 'transfo_xl_18_1024_16']

register_pretrained(*PRETRAINED)

# names of GluonNLP's and the originals' that are those of TransfoXLConfig
_LENGTHS = ('tgt_len', 'ext_len', 'mem_len', 'clamp_len', 'same_length')
_OWN = ('cutoffs', 'div_val', 'tie_weight', 'proj_share_all_but_first', 'untie_r', 'pre_lnorm')


def _adapt(fields):
    """Leave out cutoffs beyond the vocabulary."""
    size = fields['vocab_size']
    return {**fields, 'cutoffs': [cut for cut in TransfoXLConfig().cutoffs if cut < size]}


#: what ``open_model`` knows of Transformer-XL
TRANSFO_XL = register_family(
    Family(
        'transfo_xl',
        TransfoXLModel,
        {'language_model': TransfoXLLMHeadModel},
        TransfoXLTokenizer.from_vocab_file,
        vocab_kinds=('words',),
        hparams={
            'num_layers': ('n_layer',),
            'units': ('d_model',),
            'embed_size': ('d_embed',),
            'hidden_size': ('d_inner',),
            'num_heads': ('n_head',),
            'head_size': ('d_head',),
            'layer_norm_eps': ('layer_norm_epsilon',),
            'dropout': ('dropout',),
            'attention_dropout': ('dropatt',),
            **{name: (name,) for name in (*_OWN, *_LENGTHS)},
        },
        always_allowed=('dropout', 'attention_dropout', *_LENGTHS),
        zoo_task='language_model',
        adapt=_adapt,
    )
)


@register_model
def transfo_xl_18_1024_16(
    dataset_name=None, vocab=None, pretrained=True, ctx=None, root=None,
    hparam_allow_override=False, *, num_layers=None, units=None, embed_size=None,
    hidden_size=None, num_heads=None, head_size=None, layer_norm_eps=None, cutoffs=None,
    div_val=None, tie_weight=None, proj_share_all_but_first=None, untie_r=None, pre_lnorm=None,
    dropout=None, attention_dropout=None, tgt_len=None, ext_len=None, mem_len=None,
    clamp_len=None, same_length=None,
):  # fmt: skip
    """Transformer-XL large: 18 layers, 1024 units, 16 heads (Dai et al. 2019, section 4.1).

    Parameters
    ----------
    dataset_name : str, optional
        'wikitext-103', the default.
    vocab : gluonnlp.Vocab, optional
        With ``pretrained=False``, or for weights from a path. Its words should be in the order of
        their frequency; of the model's cutoffs (20000, 40000, 200000) a new model has those that
        are less than the number of words.
    pretrained : bool or str, default True
        A string is the path of the weights, a file or a directory.
    ctx : mx.Context or list of mx.Context, default CPU
    root : str, optional
        Cache of weights, by default ``$MXNET_HOME/models``.
    hparam_allow_override : bool, default False
        Whether these may differ from the model's: num_layers, units, embed_size, hidden_size,
        num_heads, head_size, layer_norm_eps, cutoffs, div_val, tie_weight,
        proj_share_all_but_first, untie_r, pre_lnorm. The rates `dropout` and `attention_dropout`
        always may, and so may tgt_len, ext_len, mem_len, clamp_len and same_length.

    Returns
    -------
    (TransfoXLLMHeadModel, gluonnlp.Vocab)
        The vocabulary in the order of its own file.
    """
    return build_model(TRANSFO_XL, 'transfo_xl_18_1024_16', **locals())
