"""GPT-2's sizes and pretrained weights, as data; see Radford et al. 2019, table 2."""

from model_zoo.pretrained import PretrainedEntry

#: name of a model -> its fields of GPT2Config; the names say layers, units and heads
ARCHITECTURES = {
    'gpt2_12_768_12': {'n_layer': 12, 'n_embd': 768, 'n_head': 12},
    'gpt2_24_1024_16': {'n_layer': 24, 'n_embd': 1024, 'n_head': 16},
    'gpt2_36_1280_20': {'n_layer': 36, 'n_embd': 1280, 'n_head': 20},
    'gpt2_48_1600_25': {'n_layer': 48, 'n_embd': 1600, 'n_head': 25},
}

_NAMES = [('gpt2', '117m'), ('gpt2-medium', '345m'), ('gpt2-large', '774m'), ('gpt2-xl', '1558m')]
_PINNED = {
    'hub_revision': '607a30d783dfa663caf39e06633721c8d4cfcd7e',
    'hub_sha256': '248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707',
}

#: the entries of the catalogue, which ``zoo.py`` registers
PRETRAINED = tuple(
    PretrainedEntry(
        model,
        'openai_webtext',
        family='gpt2',
        do_lower_case=False,
        default=True,
        names=(name, f'gpt2_{size}'),
        vocab='openai_webtext',
        hub=f'openai-community/{name}',
        **(_PINNED if name == 'gpt2' else {}),
    )
    for model, (name, size) in zip(ARCHITECTURES, _NAMES)
)
