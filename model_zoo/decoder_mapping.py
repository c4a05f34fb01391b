"""Rules that the decoders' mappings share."""

from .checkpoint.mapping import FusedConv1D, Padded, Rule, Transposed

__all__ = ['conv1d_rules']


def conv1d_rules(theirs='h.{i}', attention='attn'):
    """Rules for the layers of a decoder in PyTorch's files, whose dense layers are "Conv1D".

    Parameters
    ----------
    theirs : str
        Their layer's prefix.
    attention : str
        Their name of the attention.

    Returns
    -------
    list of Rule
    """
    layer = 'layers.{i}'
    rules = []
    for kind in ('weight', 'bias'):
        transposed = kind == 'weight'
        rules += [
            Rule(f'{layer}.attention.qkv.{kind}', f'{theirs}.{attention}.c_attn.{kind}',
                 FusedConv1D()),
            Rule(f'{layer}.attention.proj.{kind}', f'{theirs}.{attention}.c_proj.{kind}',
                 *[Transposed()] * transposed),
            Rule(f'{layer}.ffn.ffn_1.{kind}', f'{theirs}.mlp.c_fc.{kind}',
                 Transposed(Padded(0)) if transposed else Padded(0)),
            Rule(f'{layer}.ffn.ffn_2.{kind}', f'{theirs}.mlp.c_proj.{kind}',
                 *[Transposed(Padded(1))] * transposed),
        ]  # fmt: skip
    for ours, ln in (('attention_norm', 'ln_1'), ('ffn_norm', 'ln_2')):
        rules += [
            Rule(f'{layer}.{ours}.gamma', f'{theirs}.{ln}.weight'),
            Rule(f'{layer}.{ours}.beta', f'{theirs}.{ln}.bias'),
        ]
    return rules
