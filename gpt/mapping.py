"""OpenAI GPT's parameter names in other programs, as reversible tables."""

from model_zoo.blocks.decoder_config import huggingface_mapping, openai_rules
from model_zoo.checkpoint.mapping import Mapping, Rule

_TABLES = [Rule('position_weight', 'model/pe'), Rule('word_embed.weight', 'model/we')]
_OPENAI_RULES = _TABLES + openai_rules()

#: name of a format -> Mapping
MAPPINGS = {
    'huggingface': huggingface_mapping(
        'tokens_embed.weight', 'positions_embed.weight', ignore=(r'position_ids$',)
    ),
    # openai/finetune-transformer-lm's params_*.npy, by its program's names
    'numpy': Mapping(
        _OPENAI_RULES, '', mark_heads=False, order=[rule.theirs[0] for rule in _OPENAI_RULES]
    ),
}
