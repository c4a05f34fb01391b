"""BERT's parameter names in other programs, as reversible tables."""

from dataclasses import replace

from model_zoo.checkpoint.mapping import Fused, Mapping, Padded, Rule, Transposed


def pairs(ours, theirs, ours_names=('weight', 'bias'), theirs_names=('weight', 'bias'), **kwargs):
    """Rules for the parameters of one layer: weight and bias, or gamma and beta."""
    return [
        Rule(f'{ours}.{our_name}', f'{theirs}.{their_name}', **kwargs)
        for our_name, their_name in zip(ours_names, theirs_names)
    ]


_NORM = ('gamma', 'beta')


def _gluonnlp_rules(has_dropout):
    """Names of ``gluonnlp.model.BERTModel``, ``BERTClassifier`` and ``BertForQA`` (0.10)."""
    cell = 'encoder.transformer_cells.{i}'
    layer = 'encoder.layers.{i}'
    rules = [
        Rule(
            'word_embed.weight',
            'word_embed.0.weight',
            tied=('decoder.3.weight',),
            tied_to='decoder.bias',
        ),
        Rule('token_type_embed.weight', 'token_type_embed.0.weight'),
        Rule('encoder.position_weight', 'encoder.position_weight'),
        *pairs('encoder.norm', 'encoder.layer_norm', _NORM, _NORM),
        *[
            Rule(
                f'{layer}.attention.qkv.{kind}',
                tuple(
                    f'{cell}.attention_cell.proj_{part}.{kind}'
                    for part in ('query', 'key', 'value')
                ),
                Fused(),
            )
            for kind in ('weight', 'bias')
        ],
        *pairs(f'{layer}.attention.proj', f'{cell}.proj'),
        *pairs(f'{layer}.attention_norm', f'{cell}.layer_norm', _NORM, _NORM),
        *pairs(f'{layer}.ffn.ffn_1', f'{cell}.ffn.ffn_1', convert=Padded(0)),
        Rule(f'{layer}.ffn.ffn_2.weight', f'{cell}.ffn.ffn_2.weight', Padded(1)),
        Rule(f'{layer}.ffn.ffn_2.bias', f'{cell}.ffn.ffn_2.bias'),
        *pairs(f'{layer}.ffn_norm', f'{cell}.ffn.layer_norm', _NORM, _NORM),
        *pairs('pooler', 'pooler'),
        *pairs('classifier', 'classifier'),
        *pairs('decoder.dense', 'decoder.0'),
        *pairs('decoder.norm', 'decoder.2', _NORM, _NORM),
        Rule('decoder.bias', 'decoder.3.bias'),
        *pairs('^span_classifier', '^span_classifier'),
    ]
    # the task's dense layer comes after the dropout, if there is one; on loading either will do
    first, second = (1, 0) if has_dropout else (0, 1)
    rules += pairs('^classifier', f'^classifier.{first}')
    rules += pairs('^classifier', f'^classifier.{second}')
    return rules


def _huggingface_rules():
    """Names of pytorch-pretrained-bert 0.6.2 and transformers."""
    theirs = 'encoder.layer.{i}'
    layer = 'encoder.layers.{i}'
    weights = ('weight', 'bias')
    return [
        Rule(
            'word_embed.weight',
            'embeddings.word_embeddings.weight',
            tied=('cls.predictions.decoder.weight',),
            tied_to='decoder.bias',
        ),
        Rule('token_type_embed.weight', 'embeddings.token_type_embeddings.weight'),
        Rule('encoder.position_weight', 'embeddings.position_embeddings.weight'),
        *pairs('encoder.norm', 'embeddings.LayerNorm', _NORM, weights),
        *[
            Rule(
                f'{layer}.attention.qkv.{kind}',
                tuple(
                    f'{theirs}.attention.self.{part}.{kind}' for part in ('query', 'key', 'value')
                ),
                Fused(),
            )
            for kind in weights
        ],
        *pairs(f'{layer}.attention.proj', f'{theirs}.attention.output.dense'),
        *pairs(f'{layer}.attention_norm', f'{theirs}.attention.output.LayerNorm', _NORM, weights),
        *pairs(f'{layer}.ffn.ffn_1', f'{theirs}.intermediate.dense', convert=Padded(0)),
        Rule(f'{layer}.ffn.ffn_2.weight', f'{theirs}.output.dense.weight', Padded(1)),
        Rule(f'{layer}.ffn.ffn_2.bias', f'{theirs}.output.dense.bias'),
        *pairs(f'{layer}.ffn_norm', f'{theirs}.output.LayerNorm', _NORM, weights),
        *pairs('pooler', 'pooler.dense'),
        *pairs('classifier', 'cls.seq_relationship'),
        *pairs('decoder.dense', 'cls.predictions.transform.dense'),
        *pairs('decoder.norm', 'cls.predictions.transform.LayerNorm', _NORM, weights),
        Rule('decoder.bias', 'cls.predictions.bias', tied=('cls.predictions.decoder.bias',)),
        *pairs('^classifier', 'classifier'),
        *pairs('^span_classifier', 'qa_outputs'),
    ]


def _tensorflow_rules():
    """Names of google-research/bert: its models, and those of its run_*.py."""
    theirs = 'bert/encoder/layer_{i}'
    layer = 'encoder.layers.{i}'

    def dense(ours, theirs, inner=None):
        """Rules of a dense layer; `inner` is the axis of the feed-forward layer's inner units."""
        pad = () if inner is None else (Padded(inner),)
        bias = (Padded(0),) if inner == 0 else ()
        return [
            Rule(f'{ours}.weight', f'{theirs}/kernel', Transposed(*pad)),
            Rule(f'{ours}.bias', f'{theirs}/bias', *bias),
        ]

    def norm(ours, theirs):
        return [Rule(f'{ours}.{kind}', f'{theirs}/LayerNorm/{kind}') for kind in _NORM]

    parts = [f'{theirs}/attention/self/{part}' for part in ('query', 'key', 'value')]
    return [
        Rule('word_embed.weight', 'bert/embeddings/word_embeddings'),
        Rule('token_type_embed.weight', 'bert/embeddings/token_type_embeddings'),
        Rule('encoder.position_weight', 'bert/embeddings/position_embeddings'),
        *norm('encoder.norm', 'bert/embeddings'),
        Rule(f'{layer}.attention.qkv.weight', tuple(f'{part}/kernel' for part in parts),
             Transposed(Fused())),
        Rule(f'{layer}.attention.qkv.bias', tuple(f'{part}/bias' for part in parts), Fused()),
        *dense(f'{layer}.attention.proj', f'{theirs}/attention/output/dense'),
        *norm(f'{layer}.attention_norm', f'{theirs}/attention/output'),
        *dense(f'{layer}.ffn.ffn_1', f'{theirs}/intermediate/dense', inner=0),
        *dense(f'{layer}.ffn.ffn_2', f'{theirs}/output/dense', inner=1),
        *norm(f'{layer}.ffn_norm', f'{theirs}/output'),
        *dense('pooler', 'bert/pooler/dense'),
        *dense('decoder.dense', 'cls/predictions/transform/dense'),
        *norm('decoder.norm', 'cls/predictions/transform'),
        Rule('decoder.bias', 'cls/predictions/output_bias'),
        # these kernels are stored as (outputs, inputs)
        Rule('classifier.weight', 'cls/seq_relationship/output_weights'),
        Rule('classifier.bias', 'cls/seq_relationship/output_bias'),
        Rule('^classifier.weight', 'output_weights'),
        Rule('^classifier.bias', 'output_bias'),
        Rule('^span_classifier.weight', 'cls/squad/output_weights'),
        Rule('^span_classifier.bias', 'cls/squad/output_bias'),
    ]  # fmt: skip


class _Reversed:
    """The rows in reverse: there class 1 of next sentences, and not 0, says that they follow."""

    def load(self, arrays, config):
        return arrays[0][::-1]

    def save(self, array, config):
        return [array[::-1]]


def _pytorchic_rules(pretraining):
    """Names of dhlee347/pytorchic-bert: those of classify.py, or of pretrain.py."""
    theirs = 'blocks.{i}'
    layer = 'encoder.layers.{i}'
    rules = [
        Rule(
            'word_embed.weight', 'embed.tok_embed.weight',
            tied=('decoder.weight',), tied_to='decoder.bias',
        ),
        Rule('token_type_embed.weight', 'embed.seg_embed.weight'),
        Rule('encoder.position_weight', 'embed.pos_embed.weight'),
        *pairs('encoder.norm', 'embed.norm', _NORM, _NORM),
        *[
            Rule(
                f'{layer}.attention.qkv.{kind}',
                tuple(f'{theirs}.attn.proj_{part}.{kind}' for part in 'qkv'),
                Fused(),
            )
            for kind in ('weight', 'bias')
        ],
        *pairs(f'{layer}.attention.proj', f'{theirs}.proj'),
        *pairs(f'{layer}.attention_norm', f'{theirs}.norm1', _NORM, _NORM),
        *pairs(f'{layer}.ffn.ffn_1', f'{theirs}.pwff.fc1', convert=Padded(0)),
        Rule(f'{layer}.ffn.ffn_2.weight', f'{theirs}.pwff.fc2.weight', Padded(1)),
        Rule(f'{layer}.ffn.ffn_2.bias', f'{theirs}.pwff.fc2.bias'),
        *pairs(f'{layer}.ffn_norm', f'{theirs}.norm2', _NORM, _NORM),
        *pairs('pooler', 'fc'),
    ]  # fmt: skip
    if not pretraining:
        return rules + pairs('^classifier', 'classifier')
    return [
        *rules,
        *pairs('classifier', 'classifier', convert=_Reversed()),
        *pairs('decoder.dense', 'linear'),
        *pairs('decoder.norm', 'norm', _NORM, _NORM),
        Rule('decoder.bias', 'decoder_bias'),
    ]


_TENSORFLOW = Mapping(
    _tensorflow_rules(),
    '',
    mark_heads=False,
    ignore=(r'.*/adam_[mv]$', r'(global_step|beta\d_power)$'),  # the training's
)


def gluonnlp_mapping(backbone, has_dropout, *own_rules):
    """A `Mapping` of GluonNLP's files of a model like BERT."""
    return Mapping([*own_rules, *_gluonnlp_rules(has_dropout)], f'{backbone}.')


def huggingface_mapping(backbone, names, outside, before=(), after=()):
    """A `Mapping` of transformers' files of a model like BERT."""

    def renamed(name):
        for old, new in names.items():
            name = name.replace(old, new)
        return name

    rules = [
        replace(each, theirs=tuple(map(renamed, each.theirs)), tied=tuple(map(renamed, each.tied)))
        for each in _huggingface_rules()
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
