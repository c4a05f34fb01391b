"""Transformer-XL's parameter names in other programs, as reversible tables.

They depend on the shared parameters and the clusters of the configuration. Our blocks have a table
and a bias for each cluster; the other programs have a common one if all clusters have the same
units.
"""

import numpy as np

from model_zoo.checkpoint.mapping import Mapping, Rule, Transposed, layer_rules
from model_zoo.errors import CheckpointError


class _SplitMapping(Mapping):
    """A `Mapping` that joins several of our tensors to one tensor of the other program."""

    def __init__(self, splits, constants, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._splits = splits
        self._constants = constants

    def load(self, tensors, config):
        ours, unknown = super().load(tensors, config)
        for name, parts in self._splits.items():
            if name not in ours:
                continue
            whole, ends = ours.pop(name), np.cumsum([rows or 1 for rows in parts.values()])
            if len(whole) != ends[-1]:
                problem = f'the tensor for {name} has {len(whole)} rows, and must have {ends[-1]}'
                raise CheckpointError(f'{problem}: are these the weights of the configuration?')
            for (part, rows), array in zip(parts.items(), np.split(whole, ends[:-1])):
                ours[part] = array[0] if rows is None else array
        return ours, unknown

    def save(self, tensors, config, with_prefix):
        tensors = dict(tensors)
        for name, parts in self._splits.items():
            if all(part in tensors for part in parts):
                arrays = [(tensors.pop(part), rows) for part, rows in parts.items()]
                tensors[name] = np.concatenate([a[None] if n is None else a for a, n in arrays])
        result = super().save(tensors, config, with_prefix)
        prefix = self.backbone if with_prefix else ''
        return {**result, **{prefix + name: value for name, value in self._constants.items()}}


def _clusters(config, name):
    """Return the `splits` of a table or bias of all clusters; none for one cluster."""
    if len(config.sizes) == 1:
        return {}
    return {name: {f'{name}{i}': rows for i, rows in enumerate(config.sizes)}}


def _name(config, name):
    """Return the name in the rules of a table or bias that all clusters have in common."""
    return f'{name}0' if len(config.sizes) == 1 else name


def _cell_rules(theirs, names, dense, norm, weight=None):
    """Make the rules of a layer, whose parts have these names in another program."""
    ours, names = 'layers.{i}.', [theirs + name for name in names.split()]
    layers = 'ffn.ffn_1', 'ffn.ffn_2', 'attention_norm', 'ffn_norm'
    options = {} if weight is None else {'convert': weight()}
    return [
        *(
            Rule(f'{ours}attention.{part}', name + dense[0], **options)
            for part, name in zip(('qkv_weight', 'relative.weight', 'proj.weight'), names)
        ),
        *layer_rules(dict(zip((ours + n for n in layers), names[3:])), dense, norm, weight=weight),
    ]


def _huggingface(config):
    """Make the `Mapping` of pytorch-pretrained-bert 0.6.2 and transformers."""
    ours, theirs = 'layers.{i}', 'layers.{i}.dec_attn'
    names = 'dec_attn.qkv_net dec_attn.r_net dec_attn.o_net pos_ff.CoreNet.0 pos_ff.CoreNet.3 '
    names += 'dec_attn.layer_norm pos_ff.layer_norm'
    rules = _cell_rules('layers.{i}.', names, ('.weight', '.bias'), ('.weight', '.bias'))
    for name, their_name in (('content_bias', 'r_w_bias'), ('position_bias', 'r_r_bias')):
        if config.untie_r:
            rules.append(Rule(f'{ours}.attention.{name}', f'{theirs}.{their_name}'))
        else:
            first = f'layers.0.attention.{name}'
            tied = tuple(f'layers.{i}.dec_attn.{their_name}' for i in range(config.n_layer))
            rules.append(Rule(first, their_name, tied=tied, tied_to=first))
    rules += _huggingface_words(config)
    steps = np.arange(0, config.d_model, 2, dtype='float32') / np.float32(config.d_model)
    constants = {'pos_emb.inv_freq': (1 / np.float32(10000) ** steps).astype('float32')}
    splits = {}
    if config.div_val == 1:
        for name in ('word_embed.table', '^softmax.table', '^softmax.bias'):
            splits.update(_clusters(config, name))
    others = {'mark_heads': False, 'outside': ('crit.',), 'ignore': (r'pos_emb\.inv_freq$',)}
    return _SplitMapping(splits, constants, rules, 'transformer.', **others)


def _huggingface_words(config):
    """Make the rules of the embedding and the softmax."""
    common = config.div_val == 1
    clusters = range(1 if common else len(config.sizes))

    def name(part, cluster):
        return _name(config, part) if common else f'{part}{cluster}'

    softmax_bias = name('^softmax.bias', 0)  # a model with a softmax has it
    clustered = 'cluster_weight', 'cluster_bias'
    rules = [Rule(f'^softmax.{each}', f'crit.{each}') for each in clustered]
    for i in clusters:
        embedding, output = f'word_emb.emb_layers.{i}.weight', f'crit.out_layers.{i}'
        tied = {'tied': (f'{output}.weight',), 'tied_to': softmax_bias} if config.tie_weight else {}
        rules.append(Rule(name('word_embed.table', i), embedding, **tied))
        if not config.tie_weight:
            rules.append(Rule(name('^softmax.table', i), f'{output}.weight'))
        rules.append(Rule(name('^softmax.bias', i), f'{output}.bias'))
    if config.has_projections:
        tied_by = {}  # the embedding's projection -> the softmax's that share it
        for i, is_tied in enumerate(config.tie_projs):
            if is_tied:
                tied_by.setdefault(0 if common else i, []).append(f'crit.out_projs.{i}')
            else:
                rules.append(Rule(f'^softmax.proj{i}', f'crit.out_projs.{i}'))
        for i in clusters:
            tied = {'tied': tuple(tied_by.get(i, ())), 'tied_to': softmax_bias}
            rules.append(Rule(f'word_embed.proj{i}', f'word_emb.emb_projs.{i}', **tied))
    return rules


def _tensorflow(config):
    """Make the `Mapping` of kimiyoung/transformer-xl for TensorFlow, without `pre_lnorm`."""
    names = (
        'rel_attn/qkv rel_attn/r rel_attn/o ff/layer_1 ff/layer_2 rel_attn/LayerNorm ff/LayerNorm'
    )
    ends = ('/kernel', '/bias'), ('/gamma', '/beta')
    rules = [
        *_cell_rules('transformer/layer_{i}/', names, *ends, Transposed),
        Rule('^softmax.cluster_weight', 'transformer/adaptive_softmax/cutoff_0/cluster_W'),
        Rule('^softmax.cluster_bias', 'transformer/adaptive_softmax/cutoff_0/cluster_b'),
    ]
    splits = {}
    for parameter, their_name in (('content_bias', 'r_w_bias'), ('position_bias', 'r_r_bias')):
        if config.untie_r:  # the original has one tensor for all layers
            layers = range(config.n_layer)
            splits[parameter] = {f'layers.{i}.attention.{parameter}': None for i in layers}
        name = parameter if config.untie_r else f'layers.0.attention.{parameter}'
        rules.append(Rule(name, f'transformer/{their_name}'))
    embed = 'transformer/adaptive_embed'
    softmax = 'transformer/adaptive_softmax/cutoff_{i}'
    if config.div_val == 1:
        rules.append(Rule(_name(config, 'word_embed.table'), f'{embed}/lookup_table'))
        rules.append(Rule('word_embed.proj0', f'{embed}/proj_W', Transposed()))
        splits.update(_clusters(config, 'word_embed.table'))
    else:
        rules.append(Rule('word_embed.table{i}', f'{embed}/cutoff_{{i}}/lookup_table'))
        rules.append(Rule('word_embed.proj{i}', f'{embed}/cutoff_{{i}}/proj_W', Transposed()))
    is_single = len(config.sizes) == 1
    bias = 'transformer/adaptive_softmax/bias' if is_single else f'{softmax}/b'
    rules.append(Rule('^softmax.bias0' if is_single else '^softmax.bias{i}', bias))
    rules.append(Rule('^softmax.proj{i}', f'{softmax}/proj', Transposed()))
    of_training = (r'.*/Adam(_1)?$', r'(global_step|beta\d_power)$')
    return _SplitMapping(splits, {}, rules, '', mark_heads=False, ignore=of_training)


def transfo_xl_mappings(config):
    """Return the `Mapping` of each format, by its name."""
    return {'huggingface': _huggingface(config), 'tensorflow': _tensorflow(config)}
