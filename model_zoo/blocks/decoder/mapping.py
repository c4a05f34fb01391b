"""Rules that the decoders' mappings share."""

from ...checkpoint.mapping import FusedConv1D, OneWide, Padded, Rule, Transposed

__all__ = ['OPENAI_LAYER', 'conv1d_rules', 'openai_rules']

#: OpenAI's names of a layer's parameters, in the order in which their programs make them
OPENAI_LAYER = tuple(
    f'model/h{{i}}/{name}/{kind}'
    for name, kinds in [
        ('attn/c_attn', 'wb'),
        ('attn/c_proj', 'wb'),
        ('ln_1', 'gb'),
        ('mlp/c_fc', 'wb'),
        ('mlp/c_proj', 'wb'),
        ('ln_2', 'gb'),
    ]
    for kind in kinds
)


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


def openai_rules():
    """Rules for the layers of a decoder in OpenAI's own files.

    Returns
    -------
    list of Rule
    """
    ours = (
        ('attention.qkv.weight', OneWide(FusedConv1D())),
        ('attention.qkv.bias', FusedConv1D()),
        ('attention.proj.weight', OneWide(Transposed())),
        ('attention.proj.bias', None),
        ('attention_norm.gamma', None),
        ('attention_norm.beta', None),
        ('ffn.ffn_1.weight', OneWide(Transposed(Padded(0)))),
        ('ffn.ffn_1.bias', Padded(0)),
        ('ffn.ffn_2.weight', OneWide(Transposed(Padded(1)))),
        ('ffn.ffn_2.bias', None),
        ('ffn_norm.gamma', None),
        ('ffn_norm.beta', None),
    )
    return [
        Rule(f'layers.{{i}}.{name}', theirs, *([convert] if convert else []))
        for (name, convert), theirs in zip(ours, OPENAI_LAYER)
    ]
