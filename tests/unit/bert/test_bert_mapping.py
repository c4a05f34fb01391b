"""The tables of BERT's names in other programs: reversible, and complete in what they report."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import assert_loads, tensors_of

import bert

SIZES = {'num_hidden_layers': 3, 'num_attention_heads': 4, 'intermediate_size': 512}
FORMATS = ['gluonnlp', 'huggingface']


def make(name='BertModel', changes=(), **options):
    config = tiny.bert_config(40, **{**SIZES, **dict(changes)})
    block = getattr(bert, name)(config, **options)
    block.initialize(mx.init.Normal(1))
    for parameter in block.collect_params().values():  # norms and biases too
        if parameter.name.endswith(('gamma', 'beta', 'bias')) and 'ffn_1' not in parameter.name:
            parameter.set_data(mx.nd.random.normal(shape=parameter.shape))
    return block


def theirs_of(block, form):
    """The parameters by a format's names."""
    tensors, has_backbone = tensors_of(block), block.backbone is not None
    return block.mappings()[form].save(tensors, block.config, has_backbone)


def test_older_names_of_hugging_face():
    block = make()
    theirs = block.tensors_in('huggingface')
    old = {}
    for name, value in theirs.items():
        for new, older in (('weight', 'gamma'), ('bias', 'beta')):
            name = name.replace(f'LayerNorm.{new}', f'LayerNorm.{older}')
        old[name] = value
    assert len(set(old) - set(theirs)) == 2 * (1 + 2 * 3)
    old['embeddings.position_ids'] = np.arange(24)[None]
    assert_loads(block, 'huggingface', old)


@pytest.mark.parametrize('form', FORMATS)
def test_tied_decoder_may_bear_either_name(form):
    block = make('BertForMaskedLM')
    theirs = theirs_of(block, form)
    names = [name for name, value in theirs.items() if value.shape == (40, 16)]
    assert len(names) == 2
    np.testing.assert_array_equal(theirs[names[0]], theirs[names[1]])
    for name in names:
        assert_loads(block, form, {key: theirs[key] for key in theirs if key != name})
