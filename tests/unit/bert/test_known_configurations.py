"""The configurations of models that people have, as their ``config.json`` states them."""

import pytest

from model_zoo.errors import InputError, UnknownNameError
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
DEBERTA = {
    'model_type': 'deberta-v2',
    'architectures': ['DebertaV2Model'],
    'attention_probs_dropout_prob': 0.1,
    'hidden_act': 'gelu',
    'hidden_dropout_prob': 0.1,
    'hidden_size': 768,
    'initializer_range': 0.02,
    'intermediate_size': 3072,
    'max_position_embeddings': 512,
    'relative_attention': True,
    'position_buckets': 256,
    'norm_rel_ebd': 'layer_norm',
    'share_att_key': True,
    'pos_att_type': ['p2c', 'c2p'],
    'layer_norm_eps': 1e-07,
    'max_relative_positions': -1,
    'position_biased_input': False,
    'num_attention_heads': 12,
    'num_hidden_layers': 12,
    'type_vocab_size': 0,
    'vocab_size': 128100,
    'pad_token_id': 0,
}
_POOLER = {'pooler_dropout': 0, 'pooler_hidden_act': 'gelu', 'pooler_hidden_size': 768}
_XLARGE = {
    **DEBERTA,
    'hidden_size': 1536,
    'num_hidden_layers': 24,
    'num_attention_heads': 24,
    'intermediate_size': 6144,
    'attention_head_size': 64,
    'conv_kernel_size': 3,
    'conv_act': 'gelu',
}
MODERNBERT = {
    'model_type': 'modernbert',
    'architectures': ['ModernBertModel'],
    'attention_bias': False,
    'attention_dropout': 0.0,
    'bos_token_id': 50281,
    'classifier_activation': 'gelu',
    'classifier_bias': False,
    'classifier_dropout': 0.0,
    'classifier_pooling': 'mean',
    'cls_token_id': 50281,
    'decoder_bias': True,
    'deterministic_flash_attn': False,
    'embedding_dropout': 0.0,
    'eos_token_id': 50282,
    'global_attn_every_n_layers': 3,
    'global_rope_theta': 160000.0,
    'gradient_checkpointing': False,
    'hidden_activation': 'gelu',
    'hidden_size': 768,
    'initializer_cutoff_factor': 2.0,
    'initializer_range': 0.02,
    'intermediate_size': 1152,
    'layer_norm_eps': 1e-05,
    'local_attention': 128,
    'local_rope_theta': 10000.0,
    'max_position_embeddings': 8192,
    'mlp_bias': False,
    'mlp_dropout': 0.0,
    'norm_bias': False,
    'norm_eps': 1e-05,
    'num_attention_heads': 12,
    'num_hidden_layers': 22,
    'pad_token_id': 50283,
    'position_embedding_type': 'absolute',
    'sep_token_id': 50282,
    'tie_word_embeddings': True,
    'vocab_size': 50368,
}
_LARGE = {'hidden_size': 1024, 'intermediate_size': 2624, 'num_attention_heads': 16}
_LARGE['num_hidden_layers'] = 28
_FIRST = {'attention_probs_dropout_prob': 0.1, 'hidden_dropout_prob': 0.1, 'hidden_act': 'gelu'}
_CHINESE = {'vocab_size': 21128, 'tokenizer_class': 'BertTokenizerFast'}


def _albert(units, layers, heads, **more):
    sizes = {'hidden_size': units, 'intermediate_size': 4 * units, **more}
    return {**ALBERT, **sizes, 'num_hidden_layers': layers, 'num_attention_heads': heads}


def _classes(family, head, *labels):
    names = {str(number): name for number, name in enumerate(labels)}
    numbers = {name: number for number, name in enumerate(labels)}
    return {'architectures': [f'{family}For{head}'], 'id2label': names, 'label2id': numbers}


def _deberta(units, layers, heads):
    sizes = {'hidden_size': units, 'intermediate_size': 4 * units, 'pooler_hidden_size': units}
    return {**DEBERTA, **sizes, 'num_hidden_layers': layers, 'num_attention_heads': heads}


_NLI = ('entailment', 'neutral', 'contradiction')
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
    'microsoft/deberta-v3-base': DEBERTA,
    'microsoft/deberta-v3-small': {**DEBERTA, **_POOLER, 'num_hidden_layers': 6},
    'microsoft/deberta-v3-xsmall': _deberta(384, 12, 6),
    'microsoft/deberta-v3-large': _deberta(1024, 24, 16),
    'microsoft/mdeberta-v3-base': {**DEBERTA, **_POOLER, 'vocab_size': 251000},
    'MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli': {
        **DEBERTA,
        **_POOLER,
        **_classes('DebertaV2', 'SequenceClassification', *_NLI),
    },
    'MoritzLaurer/deberta-v3-large-zeroshot-v2.0': {
        **_deberta(1024, 24, 16),
        **_classes('DebertaV2', 'SequenceClassification', 'entailment', 'not_entailment'),
    },
    'MoritzLaurer/mDeBERTa-v3-base-mnli-xnli': {
        **DEBERTA,
        'vocab_size': 251000,
        **_classes('DebertaV2', 'SequenceClassification', *_NLI),
    },
    'cross-encoder/nli-deberta-v3-base': {
        **DEBERTA,
        **_POOLER,
        **_classes('DebertaV2', 'SequenceClassification', 'contradiction', *_NLI[:2]),
    },
    'mixedbread-ai/mxbai-rerank-base-v1': {
        **DEBERTA,
        'legacy': True,
        **_classes('DebertaV2', 'SequenceClassification', 'LABEL_0'),
    },
    'deepset/deberta-v3-base-squad2': {
        **DEBERTA,
        **_POOLER,
        'architectures': ['DebertaV2ForQuestionAnswering'],
    },
    'answerdotai/ModernBERT-base': {**MODERNBERT, 'architectures': ['ModernBertForMaskedLM']},
    'answerdotai/ModernBERT-large': {
        **MODERNBERT,
        **_LARGE,
        'architectures': ['ModernBertForMaskedLM'],
    },
    'Alibaba-NLP/gte-modernbert-base': {**MODERNBERT, 'sparse_prediction': False},
    'Alibaba-NLP/gte-reranker-modernbert-base': {
        **MODERNBERT,
        **_classes('ModernBert', 'SequenceClassification', 'LABEL_0'),
    },
    'nomic-ai/modernbert-embed-base': {**MODERNBERT, 'reference_compile': False},
    'tasksource/ModernBERT-base-nli': {
        **MODERNBERT,
        **_classes('ModernBert', 'SequenceClassification', *_NLI),
    },
}
#: a field, and a model that doesn't open with its value
REFUSED = [
    ('relative_attention_num_buckets', {**MPNET, 'relative_attention_num_buckets': 64}),
    ('pad_token_id', {**MPNET, 'pad_token_id': 0}),
    ('num_hidden_groups', {**ALBERT, 'num_hidden_groups': 24}),
    ('position_embedding_type', {**ALBERT, 'position_embedding_type': 'relative_key'}),
    ('conv_kernel_size', _XLARGE),  # microsoft/deberta-v2-xlarge and -xxlarge
    ('relative_attention', {'model_type': 'deberta-v2', 'position_biased_input': False}),
    *(
        (field, {**DEBERTA, field: value})
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
        (field, {**MODERNBERT, field: value})
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
    with pytest.raises((InputError, UnknownNameError)) as caught:
        FAMILIES[fields['model_type']].base.config_class.from_dict(fields)
    assert field in f'{caught.value.field} {caught.value}'
