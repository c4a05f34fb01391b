"""GPT-2's parameter names in other programs, as reversible tables."""

from model_zoo.blocks.decoder_config import huggingface_mapping, openai_rules
from model_zoo.checkpoint.mapping import Mapping, Rule, Stacked, layer_rules

_CELL = 'layers.{i}'


def _gluonnlp_rules():
    """Return the rules of GluonNLP 0.10's ``scripts/text_generation/model/gpt.py``."""
    attention, ffn = '_self_attention_layers.{i}', '_ffn_layers.{i}'
    layers = {
        f'{_CELL}.attention.qkv': f'{attention}._multi_head_qkv_proj',
        f'{_CELL}.attention.proj': f'{attention}._out_proj',
        f'{_CELL}.ffn.ffn_1': f'{ffn}._hidden_map',
        f'{_CELL}.ffn.ffn_2': f'{ffn}._out_map',
        f'{_CELL}.attention_norm': '_attn_ln.{i}',
        f'{_CELL}.ffn_norm': '_ffn_ln.{i}',
        'norm': '_final_ln',
    }
    return [
        Rule(
            'word_embed.weight',
            '_embed.weight',
            tied=('_logits_proj.weight',),
            tied_to='word_embed.weight',
        ),
        Rule('position_weight', '_pos_embed.weight'),
        *layer_rules(layers, qkv=Stacked()),
    ]


#: name of a format -> Mapping
MAPPINGS = {
    'huggingface': huggingface_mapping('wte.weight', 'wpe.weight', {'norm': 'ln_f'}),
    # openai/gpt-2
    'tensorflow': Mapping(
        [
            Rule('word_embed.weight', 'model/wte'),
            Rule('position_weight', 'model/wpe'),
            *openai_rules(),
            *layer_rules({'norm': 'model/ln_f'}, norm=('/g', '/b')),
        ],
        '',
        mark_heads=False,
        ignore=(r'(global_step|beta\d_power)$', r'.*/Adam(_\d+)?$'),  # the training's
    ),
    'gluonnlp': Mapping(_gluonnlp_rules(), '', mark_heads=False),
}
