"""The configurations of models that people have, as their ``config.json`` states them."""

import json
import pathlib

import pytest
from json_files import cases

from model_zoo.errors import InputError, UnknownNameError
from model_zoo.registry import list_families

PATH = pathlib.Path(__file__).parents[2] / 'fixtures' / 'known_configurations.json'
#: a family's usual fields, and the other ones of models by their names
KNOWN = json.loads(PATH.read_text('utf-8'))
FIELDS = KNOWN['families']
#: a field, and a model that doesn't open with its value
REFUSED = [
    ('conv_kernel_size', KNOWN['refused']['conv_kernel_size']),
    ('relative_attention', {'model_type': 'deberta-v2', 'position_biased_input': False}),
    *(
        (field, {**FIELDS[family], field: value})
        for family, changes in cases('configurations')['REFUSED'].items()
        for field, value in changes
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
