"""GPT-2's parameter names in other programs, as reversible tables."""

from model_zoo.blocks.decoder_config import huggingface_mapping, openai_rules
from model_zoo.checkpoint.mapping import Mapping, Rule, Stacked, cell_layers, layer_rules

_OPENAI_RULES = [
    Rule('word_embed.weight', 'model/wte'),
    Rule('position_weight', 'model/wpe'),
    *openai_rules(),
    *layer_rules({'norm': 'model/ln_f'}, norm=('/g', '/b')),
]
_OF_TRAINING = (r'(global_step|beta\d_power)$', r'.*/Adam(_\d+)?$')


def _gluonnlp_rules():
    """Return the rules of GluonNLP 0.10's ``scripts/text_generation/model/gpt.py``."""
    names = (
        '_self_attention_layers.{i}._multi_head_qkv_proj _self_attention_layers.{i}._out_proj '
        '_attn_ln.{i} _ffn_layers.{i}._hidden_map _ffn_layers.{i}._out_map _ffn_ln.{i}'
    )
    layers = {**cell_layers('layers.{i}.', '', names), 'norm': '_final_ln'}
    tied = {'tied': ('_logits_proj.weight',), 'tied_to': 'word_embed.weight'}
    return [
        Rule('word_embed.weight', '_embed.weight', **tied),
        Rule('position_weight', '_pos_embed.weight'),
        *layer_rules(layers, qkv=Stacked()),
    ]


#: name of a format -> Mapping
MAPPINGS = {
    'huggingface': huggingface_mapping('wte.weight', 'wpe.weight', {'norm': 'ln_f'}),
    # openai/gpt-2
    'tensorflow': Mapping(_OPENAI_RULES, '', mark_heads=False, ignore=_OF_TRAINING),
    'gluonnlp': Mapping(_gluonnlp_rules(), '', mark_heads=False),
}
