"""GPT-2's parameter names in other programs, as reversible tables."""

from model_zoo.checkpoint.mapping import Mapping, Rule
from model_zoo.decoder_mapping import conv1d_rules

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

#: name of a format -> Mapping
MAPPINGS = {
    # pytorch-pretrained-bert 0.6.2 and transformers
    'huggingface': Mapping(
        _RULES,
        'transformer.',
        mark_heads=False,
        outside=('lm_head.', 'multiple_choice_head.'),
        ignore=(r'h\.\d+\.attn\.(masked_)?bias$',),
        rename=((r'^multiple_choice_head\.linear\.', 'multiple_choice_head.summary.'),),
    ),
}
