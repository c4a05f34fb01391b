"""GPT-2's parameter names in other programs, as reversible tables."""

from model_zoo.blocks.decoder_config import conv1d_rules, openai_rules
from model_zoo.checkpoint.mapping import Mapping, Padded, Rule, Stacked

__all__ = ['MAPPINGS']

_RULES = [
    Rule('word_embed.weight', 'wte.weight', tied=('lm_head.weight', 'lm_head.decoder.weight')),
    Rule('position_weight', 'wpe.weight'),
    *conv1d_rules(),
    Rule('norm.gamma', 'ln_f.weight'),
    Rule('norm.beta', 'ln_f.bias'),
    Rule('^mc_head.weight', 'multiple_choice_head.summary.weight'),
    Rule('^mc_head.bias', 'multiple_choice_head.summary.bias'),
]

_CELL = 'layers.{i}'


def _gluonnlp_rules():
    """Names of ``GPT2Model`` in GluonNLP 0.10's ``scripts/text_generation/model/gpt.py``."""
    rules = [
        Rule(
            'word_embed.weight', '_embed.weight',
            tied=('_logits_proj.weight',), tied_to='word_embed.weight',
        ),
        Rule('position_weight', '_pos_embed.weight'),
    ]  # fmt: skip
    attention, ffn = '_self_attention_layers.{i}', '_ffn_layers.{i}'
    for kind in ('weight', 'bias'):
        rules += [
            Rule(
                f'{_CELL}.attention.qkv.{kind}', f'{attention}._multi_head_qkv_proj.{kind}',
                Stacked(),
            ),
            Rule(f'{_CELL}.attention.proj.{kind}', f'{attention}._out_proj.{kind}'),
            Rule(f'{_CELL}.ffn.ffn_1.{kind}', f'{ffn}._hidden_map.{kind}', Padded(0)),
        ]  # fmt: skip
    rules += [
        Rule(f'{_CELL}.ffn.ffn_2.weight', f'{ffn}._out_map.weight', Padded(1)),
        Rule(f'{_CELL}.ffn.ffn_2.bias', f'{ffn}._out_map.bias'),
    ]
    for kind in ('gamma', 'beta'):
        rules += [
            Rule(f'{_CELL}.attention_norm.{kind}', f'_attn_ln.{{i}}.{kind}'),
            Rule(f'{_CELL}.ffn_norm.{kind}', f'_ffn_ln.{{i}}.{kind}'),
            Rule(f'norm.{kind}', f'_final_ln.{kind}'),
        ]
    return rules


#: name of a format -> Mapping
MAPPINGS = {
    # pytorch-pretrained-bert 0.6.2 and transformers
    'huggingface': Mapping(
        _RULES,
        'transformer.',
        mark_heads=False,
        outside=('lm_head.', 'multiple_choice_head.'),
        ignore=(r'h\.\d+\.attn\.(masked_)?bias$',),
        rename=(
            (r'^multiple_choice_head\.linear\.', 'multiple_choice_head.summary.'),
            (r'\.g$', '.weight'),  # of the first versions' files
            (r'\.b$', '.bias'),
            (r'\.w$', '.weight'),
        ),
    ),
    # openai/gpt-2
    'tensorflow': Mapping(
        [
            Rule('word_embed.weight', 'model/wte'),
            Rule('position_weight', 'model/wpe'),
            *openai_rules(),
            Rule('norm.gamma', 'model/ln_f/g'),
            Rule('norm.beta', 'model/ln_f/b'),
        ],
        '',
        mark_heads=False,
        ignore=(r'(global_step|beta\d_power)$', r'.*/Adam(_\d+)?$'),  # the training's
    ),
    'gluonnlp': Mapping(_gluonnlp_rules(), '', mark_heads=False),
}
