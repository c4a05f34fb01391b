"""GPT-2's sizes and pretrained weights, as data; see Radford et al. 2019, table 2."""

from model_zoo.pretrained import PretrainedEntry

#: name of a model -> its fields of GPT2Config; the names say layers, units and heads
ARCHITECTURES = {
    'gpt2_12_768_12': {'n_layer': 12, 'n_embd': 768, 'n_head': 12},
    'gpt2_24_1024_16': {'n_layer': 24, 'n_embd': 1024, 'n_head': 16},
    'gpt2_36_1280_20': {'n_layer': 36, 'n_embd': 1280, 'n_head': 20},
    'gpt2_48_1600_25': {'n_layer': 48, 'n_embd': 1600, 'n_head': 25},
}

#: the entries of the catalogue, which ``zoo.py`` registers
PRETRAINED = tuple(
    PretrainedEntry(
        model,
        'openai_webtext',
        family='gpt2',
        do_lower_case=False,
        default=True,
        names=names,
        vocab='openai_webtext',
        hub=hub,
        hub_revision=pin[0] if pin else None,
        hub_sha256=pin[1] if pin else None,
    )
    for model, names, hub, *pin in [
        (
            'gpt2_12_768_12',
            ('gpt2', 'gpt2_117m'),
            'openai-community/gpt2',
            '607a30d783dfa663caf39e06633721c8d4cfcd7e',
            '248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707',
        ),
        ('gpt2_24_1024_16', ('gpt2-medium', 'gpt2_345m'), 'openai-community/gpt2-medium'),
        ('gpt2_36_1280_20', ('gpt2-large', 'gpt2_774m'), 'openai-community/gpt2-large'),
        ('gpt2_48_1600_25', ('gpt2-xl', 'gpt2_1558m'), 'openai-community/gpt2-xl'),
    ]
)
