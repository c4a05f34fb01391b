"""BERT's parameter names in other programs, as reversible tables."""

from dataclasses import replace

from model_zoo.checkpoint.mapping import Mapping, Rule, Transposed, layer_rules

_LAYER = 'encoder.layers.{i}.'


def _embeddings(word, types, positions, **word_options):
    """Rules of the tables."""
    return [
        Rule('word_embed.weight', word, **word_options),
        Rule('token_type_embed.weight', types),
        Rule('encoder.position_weight', positions),
    ]


def _gluonnlp_rules(has_dropout):
    """Names of ``gluonnlp.model.BERTModel``, ``BERTClassifier`` and ``BertForQA`` (0.10)."""
    cell = 'encoder.transformer_cells.{i}.'
    layers = {
        'encoder.norm': 'encoder.layer_norm',
        f'{_LAYER}attention.qkv': tuple(
            f'{cell}attention_cell.proj_{part}' for part in ('query', 'key', 'value')
        ),
        f'{_LAYER}attention.proj': f'{cell}proj',
        f'{_LAYER}attention_norm': f'{cell}layer_norm',
        f'{_LAYER}ffn.ffn_1': f'{cell}ffn.ffn_1',
        f'{_LAYER}ffn.ffn_2': f'{cell}ffn.ffn_2',
        f'{_LAYER}ffn_norm': f'{cell}ffn.layer_norm',
        'pooler': 'pooler',
        'classifier': 'classifier',
        'decoder.dense': 'decoder.0',
        'decoder.norm': 'decoder.2',
        '^span_classifier': '^span_classifier',
    }
    # the task's dense layer comes after the dropout, if there is one; on loading either will do
    numbers = (1, 0) if has_dropout else (0, 1)
    return [
        *_embeddings(
            'word_embed.0.weight',
            'token_type_embed.0.weight',
            'encoder.position_weight',
            tied=('decoder.3.weight',),
            tied_to='decoder.bias',
        ),
        *layer_rules(layers),
        Rule('decoder.bias', 'decoder.3.bias'),
        *(rule for n in numbers for rule in layer_rules({'^classifier': f'^classifier.{n}'})),
    ]


def _huggingface_rules():
    """Names of pytorch-pretrained-bert 0.6.2 and transformers."""
    theirs = 'encoder.layer.{i}.'
    layers = {
        'encoder.norm': 'embeddings.LayerNorm',
        f'{_LAYER}attention.qkv': tuple(
            f'{theirs}attention.self.{part}' for part in ('query', 'key', 'value')
        ),
        f'{_LAYER}attention.proj': f'{theirs}attention.output.dense',
        f'{_LAYER}attention_norm': f'{theirs}attention.output.LayerNorm',
        f'{_LAYER}ffn.ffn_1': f'{theirs}intermediate.dense',
        f'{_LAYER}ffn.ffn_2': f'{theirs}output.dense',
        f'{_LAYER}ffn_norm': f'{theirs}output.LayerNorm',
        'pooler': 'pooler.dense',
        'classifier': 'cls.seq_relationship',
        'decoder.dense': 'cls.predictions.transform.dense',
        'decoder.norm': 'cls.predictions.transform.LayerNorm',
        '^classifier': 'classifier',
        '^span_classifier': 'qa_outputs',
    }
    tables = (f'embeddings.{name}_embeddings.weight' for name in ('word', 'token_type', 'position'))
    return [
        *_embeddings(*tables, tied=('cls.predictions.decoder.weight',), tied_to='decoder.bias'),
        *layer_rules(layers, norm=('.weight', '.bias')),
        Rule('decoder.bias', 'cls.predictions.bias', tied=('cls.predictions.decoder.bias',)),
    ]


def _tensorflow_rules():
    """Names of google-research/bert: its models, and those of its run_*.py."""
    theirs = 'bert/encoder/layer_{i}/'
    layers = {
        'encoder.norm': 'bert/embeddings',
        f'{_LAYER}attention.qkv': tuple(
            f'{theirs}attention/self/{part}' for part in ('query', 'key', 'value')
        ),
        f'{_LAYER}attention.proj': f'{theirs}attention/output/dense',
        f'{_LAYER}attention_norm': f'{theirs}attention/output',
        f'{_LAYER}ffn.ffn_1': f'{theirs}intermediate/dense',
        f'{_LAYER}ffn.ffn_2': f'{theirs}output/dense',
        f'{_LAYER}ffn_norm': f'{theirs}output',
        'pooler': 'bert/pooler/dense',
        'decoder.dense': 'cls/predictions/transform/dense',
        'decoder.norm': 'cls/predictions/transform',
    }
    heads = {  # these kernels are stored as (outputs, inputs)
        'classifier': 'cls/seq_relationship/output',
        '^classifier': 'output',
        '^span_classifier': 'cls/squad/output',
    }
    norm = '/LayerNorm/gamma', '/LayerNorm/beta'
    return [
        *_embeddings(
            *(f'bert/embeddings/{name}_embeddings' for name in ('word', 'token_type', 'position'))
        ),
        *layer_rules(layers, ('/kernel', '/bias'), norm, weight=Transposed),
        Rule('decoder.bias', 'cls/predictions/output_bias'),
        *layer_rules(heads, ('_weights', '_bias')),
    ]


class _Reversed:
    """The rows in reverse: pytorchic-bert's class 1 of next sentences says that they follow."""

    def load(self, arrays, config):
        return arrays[0][::-1]

    def save(self, array, config):
        return [array[::-1]]


def _pytorchic_rules(pretraining):
    """Names of dhlee347/pytorchic-bert: those of classify.py, or of pretrain.py."""
    theirs = 'blocks.{i}.'
    layers = {
        'encoder.norm': 'embed.norm',
        f'{_LAYER}attention.qkv': tuple(f'{theirs}attn.proj_{part}' for part in 'qkv'),
        f'{_LAYER}attention.proj': f'{theirs}proj',
        f'{_LAYER}attention_norm': f'{theirs}norm1',
        f'{_LAYER}ffn.ffn_1': f'{theirs}pwff.fc1',
        f'{_LAYER}ffn.ffn_2': f'{theirs}pwff.fc2',
        f'{_LAYER}ffn_norm': f'{theirs}norm2',
        'pooler': 'fc',
    }
    rules = _embeddings(
        *(f'embed.{name}_embed.weight' for name in ('tok', 'seg', 'pos')),
        tied=('decoder.weight',),
        tied_to='decoder.bias',
    )
    rules += layer_rules(layers)
    if not pretraining:
        return rules + layer_rules({'^classifier': 'classifier'})
    return [
        *rules,
        *(replace(rule, convert=_Reversed()) for rule in layer_rules({'classifier': 'classifier'})),
        *layer_rules({'decoder.dense': 'linear', 'decoder.norm': 'norm'}),
        Rule('decoder.bias', 'decoder_bias'),
    ]


_TENSORFLOW = Mapping(
    _tensorflow_rules(),
    '',
    mark_heads=False,
    ignore=(r'.*/adam_[mv]$', r'(global_step|beta\d_power)$'),  # the optimizer's
)


class _Flat:
    """A tensor of attention whose heads have an axis of their own -> what `then` makes of it."""

    def __init__(self, then, outputs_last=False):
        self._then, self._outputs_last = then, outputs_last

    def load(self, arrays, config):
        flat = [self._matrix(array) if array.ndim == 3 else array.reshape(-1) for array in arrays]
        return self._then.load(flat, config)

    def _matrix(self, array):
        return array.reshape((-1, array.shape[2]) if self._outputs_last else (len(array), -1))


def _keras_rules():
    """Names of TensorFlow 2's BERT (official/nlp of tensorflow/models), after `_keras_name`."""
    theirs = 'layer_{i}/'
    layers = {
        'encoder.norm': 'norm',
        f'{_LAYER}attention.qkv': tuple(
            f'{theirs}_attention_layer/_{part}_dense' for part in ('query', 'key', 'value')
        ),
        f'{_LAYER}attention.proj': f'{theirs}_attention_output_dense',
        f'{_LAYER}attention_norm': f'{theirs}_attention_layer_norm',
        f'{_LAYER}ffn.ffn_1': f'{theirs}_intermediate_dense',
        f'{_LAYER}ffn.ffn_2': f'{theirs}_output_dense',
        f'{_LAYER}ffn_norm': f'{theirs}_output_layer_norm',
        'pooler': 'pooler',
    }
    rules = layer_rules(layers, ('/kernel', '/bias'), ('/gamma', '/beta'), weight=Transposed)
    return [
        *_embeddings(*(f'{name}/embeddings' for name in ('word', 'type', 'position'))),
        *(
            replace(rule, convert=_Flat(rule.convert, '.proj.' in rule.ours))
            if '.attention.' in rule.ours
            else rule
            for rule in rules
        ),
    ]


def _keras_name(match):
    """What the number of a layer with weights stands for."""
    number, rest = int(match[1]), match[2]
    if number < 4:
        return f'{("word", "position", "type", "norm")[number]}/{rest}'
    return f'pooler/{rest}' if rest in ('kernel', 'bias') else f'layer_{number - 4}/{rest}'


#: checkpoints by objects, which are only read
KERAS = Mapping(
    _keras_rules(),
    '',
    mark_heads=False,
    ignore=(r'save_counter$', r'optimizer/', r'.*/OPTIMIZER_SLOT/'),
    rename=(
        (r'/\.ATTRIBUTES/VARIABLE_VALUE$', ''),
        (r'^(?:model|encoder)/layer_with_weights-(\d+)/(.+)', _keras_name),
        (r'_attention_layer/_output_dense/', '_attention_output_dense/'),
    ),
)


def gluonnlp_mapping(backbone, has_dropout, *head_rules):
    """A `Mapping` of GluonNLP's files of a model like BERT."""
    return Mapping([*head_rules, *_gluonnlp_rules(has_dropout)], f'{backbone}.')


def huggingface_mapping(backbone, names, outside, before=(), after=()):
    """A `Mapping` of transformers' files of a model like BERT."""

    def renamed(name):
        for old, new in names.items():
            name = name.replace(old, new)
        return name

    rules = [
        replace(rule, theirs=tuple(map(renamed, rule.theirs)), tied=tuple(map(renamed, rule.tied)))
        for rule in _huggingface_rules()
    ]
    return Mapping(
        [*before, *rules, *after],
        f'{backbone}.',
        mark_heads=False,
        outside=('classifier.', 'qa_outputs.', *outside),
        ignore=(r'embeddings\.position_ids$',),
        rename=(
            (r'LayerNorm\.gamma$', 'LayerNorm.weight'),
            (r'LayerNorm\.beta$', 'LayerNorm.bias'),
        ),
    )


_HUGGINGFACE = huggingface_mapping('bert', {}, ('cls.',))
_GLUONNLP = {has_dropout: gluonnlp_mapping('bert', has_dropout) for has_dropout in (False, True)}

_PYTORCHIC = {
    pretraining: Mapping(
        _pytorchic_rules(pretraining),
        'transformer.',
        mark_heads=False,
        outside=('fc.', 'classifier.', 'linear.', 'norm.', 'decoder.', 'decoder_bias'),
    )
    for pretraining in (False, True)
}


def bert_mappings(dropout=0):
    """Name of a format -> `Mapping`."""
    return {
        'gluonnlp': _GLUONNLP[bool(dropout)],
        'huggingface': _HUGGINGFACE,
        'tensorflow': _TENSORFLOW,
        'pytorchic': _PYTORCHIC[False],
        'pytorchic_pretraining': _PYTORCHIC[True],
    }
