"""GPT-2's parameter names in other programs, as reversible tables."""

from model_zoo.blocks.decoder.mapping import conv1d_rules, openai_rules
from model_zoo.checkpoint.mapping import Mapping, Rule

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
}
