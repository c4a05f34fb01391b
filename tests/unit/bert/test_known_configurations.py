"""The configurations of models that people have, as their ``config.json`` states them."""

import pytest

from model_zoo.errors import InputError
from model_zoo.registry import list_families

_TOKENS = {'bos_token_id': 0, 'eos_token_id': 2, 'pad_token_id': 1}
MPNET = {
    'model_type': 'mpnet',
    'architectures': ['MPNetModel'],
    **_TOKENS,
    'attention_probs_dropout_prob': 0.1,
    'hidden_dropout_prob': 0.1,
    'hidden_act': 'gelu',
    'hidden_size': 768,
    'intermediate_size': 3072,
    'num_attention_heads': 12,
    'num_hidden_layers': 12,
    'max_position_embeddings': 514,
    'vocab_size': 30527,
    'initializer_range': 0.02,
    'layer_norm_eps': 1e-05,
    'relative_attention_num_buckets': 32,
}
ALBERT = {
    'model_type': 'albert',
    'architectures': ['AlbertForMaskedLM'],
    'attention_probs_dropout_prob': 0,
    'hidden_dropout_prob': 0,
    'hidden_act': 'gelu_new',
    'bos_token_id': 2,
    'eos_token_id': 3,
    'pad_token_id': 0,
    'classifier_dropout_prob': 0.1,
    'down_scale_factor': 1,
    'gap_size': 0,
    'net_structure_type': 0,
    'num_memory_blocks': 0,
    'embedding_size': 128,
    'hidden_size': 768,
    'intermediate_size': 3072,
    'vocab_size': 30000,
    'num_attention_heads': 12,
    'num_hidden_layers': 12,
    'num_hidden_groups': 1,
    'inner_group_num': 1,
    'initializer_range': 0.02,
    'layer_norm_eps': 1e-12,
    'max_position_embeddings': 512,
    'type_vocab_size': 2,
}
_FIRST = {'attention_probs_dropout_prob': 0.1, 'hidden_dropout_prob': 0.1, 'hidden_act': 'gelu'}
_CHINESE = {'vocab_size': 21128, 'tokenizer_class': 'BertTokenizerFast'}


def _albert(units, layers, heads, **more):
    sizes = {'hidden_size': units, 'intermediate_size': 4 * units, **more}
    return {**ALBERT, **sizes, 'num_hidden_layers': layers, 'num_attention_heads': heads}


def _classes(family, head, *labels):
    names = {str(number): name for number, name in enumerate(labels)}
    numbers = {name: number for number, name in enumerate(labels)}
    return {'architectures': [f'{family}For{head}'], 'id2label': names, 'label2id': numbers}


KNOWN = {
    'microsoft/mpnet-base': {**MPNET, 'architectures': ['MPNetForMaskedLM']},
    'all-mpnet-base-v2': {**MPNET, 'architectures': ['MPNetForMaskedLM']},
    'all-mpnet-base-v1': {**MPNET, 'architectures': ['MPNetForMaskedLM']},
    'multi-qa-mpnet-base-dot-v1': {**MPNET, 'gradient_checkpointing': False},
    'multi-qa-mpnet-base-cos-v1': {**MPNET, 'architectures': ['MPNetForMaskedLM']},
    'paraphrase-mpnet-base-v2': {**MPNET, 'gradient_checkpointing': False},
    'nli-mpnet-base-v2': MPNET,
    'a classifier of MPNet': {**MPNET, **_classes('MPNet', 'SequenceClassification', *'abc')},
    'albert-base-v1': {**ALBERT, **_FIRST},
    'albert-base-v2': ALBERT,
    'albert-large-v1': {**_albert(1024, 24, 16), **_FIRST},
    'albert-large-v2': _albert(1024, 24, 16),
    'albert-xlarge-v2': _albert(2048, 24, 16),
    'albert-xxlarge-v1': _albert(4096, 12, 64, hidden_act='gelu'),
    'albert-xxlarge-v2': _albert(4096, 12, 64, layers_to_keep=[]),
    'paraphrase-albert-small-v2': _albert(768, 6, 12, architectures=['AlbertModel']),
    'paraphrase-albert-base-v2': {**ALBERT, 'architectures': ['AlbertModel']},
    'albert-base-v2-squad2': {**ALBERT, 'architectures': ['AlbertForQuestionAnswering']},
    'albert-base-v2-imdb': {**ALBERT, **_classes('Albert', 'SequenceClassification', *'01')},
    'albert-base-chinese-ner': _albert(
        768, 12, 12, **_CHINESE, **_classes('Albert', 'TokenClassification', *'OBI')
    ),
    'albert_chinese_tiny': _albert(312, 4, 12, **_CHINESE),
}
#: a field, and a model that doesn't open with its value
REFUSED = [
    ('relative_attention_num_buckets', {**MPNET, 'relative_attention_num_buckets': 64}),
    ('pad_token_id', {**MPNET, 'pad_token_id': 0}),
    ('num_hidden_groups', {**ALBERT, 'num_hidden_groups': 24}),
    ('position_embedding_type', {**ALBERT, 'position_embedding_type': 'relative_key'}),
]
FAMILIES = {family.base.config_class.model_type: family for family in list_families()}


@pytest.mark.parametrize('name', KNOWN)
def test_it_opens_and_is_saved_as_it_was(name):
    fields = KNOWN[name]
    family, (architecture,) = FAMILIES[fields['model_type']], fields['architectures']
    config = family.base.config_class.from_dict(fields)
    block = family.block_class(architecture)(config)
    assert type(block).__name__ == architecture
    written = block.config.to_format('huggingface', architecture)[1]
    assert {field: written[field] for field in fields} == fields
    assert block.label_names == list(fields.get('id2label', {}).values())


@pytest.mark.parametrize('field, fields', REFUSED)
def test_it_is_refused_by_the_name_of_its_field(field, fields):
    with pytest.raises(InputError) as caught:
        FAMILIES[fields['model_type']].base.config_class.from_dict(fields)
    assert field in f'{caught.value.field} {caught.value}'
