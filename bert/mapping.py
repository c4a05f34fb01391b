"""BERT's parameter names in other programs, as reversible tables."""

from dataclasses import replace

from model_zoo.checkpoint.mapping import Mapping, Rule, Transposed, cell_layers, layer_rules

_TABLES = 'word', 'token_type', 'position'
#: the rules of transformers' classifiers with a dense layer in front
CLASSIFIER = layer_rules({'^dense': 'classifier.dense', '^classifier': 'classifier.out_proj'})
_OURS = 'encoder.layers.{i}.'


def _embeddings(names, **word_options):
    """Make the rules of the tables for words, types and positions."""
    ours = 'word_embed.weight', 'token_type_embed.weight', 'encoder.position_weight'
    word, *others = zip(ours, names)
    return [Rule(*word, **word_options), *(Rule(*pair) for pair in others)]


def _gluonnlp_rules(has_dropout):
    """Make the rules of GluonNLP 0.10's ``BERTModel``, ``BERTClassifier`` and ``BertForQA``."""
    layers = cell_layers(
        _OURS,
        'encoder.transformer_cells.{i}.',
        'attention_cell.proj_query attention_cell.proj_key attention_cell.proj_value proj '
        'layer_norm ffn.ffn_1 ffn.ffn_2 ffn.layer_norm',
    )
    layers.update({'encoder.norm': 'encoder.layer_norm', 'pooler': 'pooler'})
    layers.update({'classifier': 'classifier', '^span_classifier': '^span_classifier'})
    layers.update({'decoder.dense': 'decoder.0', 'decoder.norm': 'decoder.2'})
    tables = 'word_embed.0.weight', 'token_type_embed.0.weight', 'encoder.position_weight'
    # the task's dense layer comes after the dropout, if there is one; on loading either will do
    numbers = (1, 0) if has_dropout else (0, 1)
    return [
        *_embeddings(tables, tied=('decoder.3.weight',), tied_to='decoder.bias'),
        *layer_rules(layers),
        Rule('decoder.bias', 'decoder.3.bias'),
        *(rule for n in numbers for rule in layer_rules({'^classifier': f'^classifier.{n}'})),
    ]


_HUGGINGFACE_CELLS = cell_layers(
    _OURS,
    'encoder.layer.{i}.',
    'attention.self.query attention.self.key attention.self.value attention.output.dense '
    'attention.output.LayerNorm intermediate.dense output.dense output.LayerNorm',
)
_HUGGINGFACE_LAYERS = {
    'encoder.norm': 'embeddings.LayerNorm',
    'pooler': 'pooler.dense',
    'decoder.dense': 'cls.predictions.transform.dense',
    'decoder.norm': 'cls.predictions.transform.LayerNorm',
}


def _huggingface_rules(cells):
    """Make the rules of pytorch-pretrained-bert 0.6.2 and transformers."""
    heads = {'classifier': 'cls.seq_relationship', '^classifier': 'classifier'}
    heads['^span_classifier'] = 'qa_outputs'
    tables = [f'embeddings.{name}_embeddings.weight' for name in _TABLES]
    return [
        *_embeddings(tables, tied=('cls.predictions.decoder.weight',), tied_to='decoder.bias'),
        *layer_rules({**cells, **_HUGGINGFACE_LAYERS, **heads}, norm=('.weight', '.bias')),
        Rule('decoder.bias', 'cls.predictions.bias', tied=('cls.predictions.decoder.bias',)),
    ]


def _tensorflow_name(name):
    """Turn a layer's name in pytorch-pretrained-bert into Google's, from which it was made."""
    path = name.replace('layer.{i}', 'layer_{i}').replace('.', '/')
    return path if path.startswith('cls/') else f'bert/{path}'


def _tensorflow_rules():
    """Make the rules of google-research/bert: its models, and the models of its run_*.py."""
    layers = {}
    for ours, theirs in {**_HUGGINGFACE_CELLS, **_HUGGINGFACE_LAYERS}.items():
        layers[ours] = tuple(map(_tensorflow_name, [theirs] if isinstance(theirs, str) else theirs))
    heads = {  # these kernels are stored as (outputs, inputs)
        'classifier': 'cls/seq_relationship/output',
        '^classifier': 'output',
        '^span_classifier': 'cls/squad/output',
    }
    return [
        *_embeddings([f'bert/embeddings/{name}_embeddings' for name in _TABLES]),
        *layer_rules(layers, ('/kernel', '/bias'), ('/gamma', '/beta'), weight=Transposed),
        Rule('decoder.bias', 'cls/predictions/output_bias'),
        *layer_rules(heads, ('_weights', '_bias')),
    ]


class _Reversed:
    """The rows in reverse: in pytorchic-bert the class 1 says that sentences follow each other."""

    def load(self, arrays, config):
        return arrays[0][::-1]

    def save(self, array, config):
        return [array[::-1]]


def _pytorchic_rules(pretraining):
    """Make the rules of dhlee347/pytorchic-bert's classify.py, or of its pretrain.py."""
    names = 'attn.proj_q attn.proj_k attn.proj_v proj norm1 pwff.fc1 pwff.fc2 norm2'
    layers = {**cell_layers(_OURS, 'blocks.{i}.', names), 'encoder.norm': 'embed.norm'}
    layers['pooler'] = 'fc'
    tables = [f'embed.{name}_embed.weight' for name in ('tok', 'seg', 'pos')]
    rules = _embeddings(tables, tied=('decoder.weight',), tied_to='decoder.bias')
    rules += layer_rules(layers)
    if not pretraining:
        return rules + layer_rules({'^classifier': 'classifier'})
    return [
        *rules,
        *(replace(rule, convert=_Reversed()) for rule in layer_rules({'classifier': 'classifier'})),
        *layer_rules({'decoder.dense': 'linear', 'decoder.norm': 'norm'}),
        Rule('decoder.bias', 'decoder_bias'),
    ]


_OF_TRAINING = (r'.*/adam_[mv]$', r'(global_step|beta\d_power)$')
_TENSORFLOW = Mapping(_tensorflow_rules(), '', mark_heads=False, ignore=_OF_TRAINING)


def gluonnlp_mapping(backbone, has_dropout, *head_rules):
    """Make the `Mapping` of GluonNLP's files of a model like BERT."""
    return Mapping([*head_rules, *_gluonnlp_rules(has_dropout)], f'{backbone}.')


def huggingface_mapping(
    backbone, names, outside, before=(), after=(), cells=_HUGGINGFACE_CELLS, ignore=()
):
    """Make the `Mapping` of transformers' files of a model like BERT."""

    def renamed(name):
        for old, new in names.items():
            name = name.replace(old, new)
        return name

    rules = []
    for rule in _huggingface_rules(cells):
        tied = tuple(filter(None, map(renamed, rule.tied)))
        rules.append(replace(rule, theirs=tuple(map(renamed, rule.theirs)), tied=tied))
    return Mapping(
        [*before, *rules, *after],
        f'{backbone}.',
        mark_heads=False,
        outside=('classifier.', 'qa_outputs.', *outside),
        ignore=(r'embeddings\.position_ids$', *ignore),
        rename=(
            (r'LayerNorm\.gamma$', 'LayerNorm.weight'),
            (r'LayerNorm\.beta$', 'LayerNorm.bias'),
        ),
    )


_HUGGINGFACE = huggingface_mapping('bert', {}, ('cls.',))
_GLUONNLP = {has_dropout: gluonnlp_mapping('bert', has_dropout) for has_dropout in (False, True)}

_OUTSIDE = ('fc.', 'classifier.', 'linear.', 'norm.', 'decoder.', 'decoder_bias')
_PYTORCHIC = [
    Mapping(_pytorchic_rules(pretraining), 'transformer.', mark_heads=False, outside=_OUTSIDE)
    for pretraining in (False, True)
]


def bert_mappings(head_rules, has_dropout):
    """Return the `Mapping` of each format, by its name; BERT's heads need no further rules."""
    return {
        'gluonnlp': _GLUONNLP[has_dropout],
        'huggingface': _HUGGINGFACE,
        'tensorflow': _TENSORFLOW,
        'pytorchic': _PYTORCHIC[False],
        'pytorchic_pretraining': _PYTORCHIC[True],
    }
