"""OpenAI GPT's parameter names in other programs, as reversible tables."""

from model_zoo.blocks.decoder_config import conv1d_rules, openai_rules
from model_zoo.checkpoint.mapping import Mapping, Rule, layer_rules

__all__ = ['MAPPINGS']

_RULES = [
    Rule(
        'word_embed.weight',
        'tokens_embed.weight',
        tied=('lm_head.weight', 'lm_head.decoder.weight'),
    ),
    Rule('position_weight', 'positions_embed.weight'),
    *conv1d_rules(),
    *layer_rules({'^mc_head': 'multiple_choice_head.summary'}),
]
_OPENAI_RULES = [
    Rule('position_weight', 'model/pe'),
    Rule('word_embed.weight', 'model/we'),
    *openai_rules(),
]

#: name of a format -> Mapping
MAPPINGS = {
    # pytorch-pretrained-bert 0.6.2 and transformers
    'huggingface': Mapping(
        _RULES,
        'transformer.',
        mark_heads=False,
        outside=('lm_head.', 'multiple_choice_head.'),
        ignore=(r'h\.\d+\.attn\.(masked_)?bias$', r'position_ids$'),
        rename=(
            (r'^multiple_choice_head\.linear\.', 'multiple_choice_head.summary.'),
            (r'\.g$', '.weight'),  # of the first versions' files
            (r'\.b$', '.bias'),
            (r'\.w$', '.weight'),
        ),
    ),
    # openai/finetune-transformer-lm's params_*.npy, by its program's names
    'numpy': Mapping(
        _OPENAI_RULES,
        '',
        mark_heads=False,
        order=[rule.theirs[0] for rule in _OPENAI_RULES],
    ),
}
