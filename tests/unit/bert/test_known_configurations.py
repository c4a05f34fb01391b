"""The configurations of models that people have, as their ``config.json`` states them."""

import json
import pathlib

import pytest

from model_zoo.errors import InputError, UnknownNameError
from model_zoo.registry import list_families

PATH = pathlib.Path(__file__).parents[2] / 'fixtures' / 'known_configurations.json'
#: a family's usual fields, and the other ones of models by their names
KNOWN = json.loads(PATH.read_text('utf-8'))
FIELDS = KNOWN['families']
#: a field, and a model that doesn't open with its value
REFUSED = [
    ('relative_attention_num_buckets', {**FIELDS['mpnet'], 'relative_attention_num_buckets': 64}),
    ('pad_token_id', {**FIELDS['mpnet'], 'pad_token_id': 0}),
    ('num_hidden_groups', {**FIELDS['albert'], 'num_hidden_groups': 24}),
    ('position_embedding_type', {**FIELDS['albert'], 'position_embedding_type': 'relative_key'}),
    (
        'conv_kernel_size',
        KNOWN['refused']['conv_kernel_size'],
    ),
    ('relative_attention', {'model_type': 'deberta-v2', 'position_biased_input': False}),
    *(
        (field, {**FIELDS['deberta-v2'], field: value})
        for field, value in {
            'type_vocab_size': 2,
            'position_biased_input': True,
            'embedding_size': 128,
            'attention_head_size': 32,
            'pooler_hidden_size': 1024,
            'pos_att_type': ['p2p'],
            'max_relative_positions': 100,
            'pooler_hidden_act': 'nonsense',
            'cls_dropout': 2,
        }.items()
    ),
    *(
        (field, {**FIELDS['modernbert'], field: value})
        for field, value in {
            **dict.fromkeys(('attention_bias', 'mlp_bias', 'norm_bias'), True),
            'decoder_bias': False,
            'tie_word_embeddings': False,
            'rope_scaling': {'rope_type': 'yarn', 'factor': 4.0},
            'rope_parameters': {'full_attention': {'rope_type': 'yarn', 'rope_theta': 1e4}},
            'layer_types': ['full_attention'],
            'local_attention': 1,
            'classifier_pooling': 'max',
            'classifier_activation': 'nonsense',
        }.items()
    ),
]
FAMILIES = {family.base.config_class.model_type: family for family in list_families()}


@pytest.mark.parametrize('name', KNOWN['models'])
def test_it_opens_and_is_saved_as_it_was(name):
    fields = KNOWN['models'][name]
    fields = {**FIELDS[fields['model_type']], **fields}
    family, (architecture,) = FAMILIES[fields['model_type']], fields['architectures']
    config = family.base.config_class.from_dict(fields)
    block = family.block_class(architecture)(config)
    assert type(block).__name__ == architecture
    written = block.config.to_format('huggingface', architecture)[1]
    assert {field: written[field] for field in fields} == fields
    assert block.label_names == list(fields.get('id2label', {}).values())


@pytest.mark.parametrize('field, fields', REFUSED)
def test_it_is_refused_by_the_name_of_its_field(field, fields):
    with pytest.raises((InputError, UnknownNameError)) as caught:
        FAMILIES[fields['model_type']].base.config_class.from_dict(fields)
    assert field in f'{caught.value.field} {caught.value}'
