"""The backbone of GPT and GPT-2: a stack of layers with causal attention."""

import functools
import math
from operator import attrgetter

import numpy as np
from mxnet.gluon import nn

from ..errors import InputError
from ..layers.attention import BLOCKED, causal_mask, layer_head_mask
from ..layers.cells import DecoderCell
from ..layers.graphs import uses_standard_operators
from ..layers.precision import LayerNorm
from ..layers.sequences import batch_major, bounded, positions_of
from ..mxnet_private import contexts_of
from ..util.arrays import check_array
from ..util.fields import Size
from .attention_block import AttentionBlock
from .config import check_field

__all__ = ['DecoderBlock', 'DecoderModel']


class DecoderBlock(AttentionBlock):
    """Base of `DecoderModel` and of the task blocks."""

    #: without token types: here a zero means the first token of the vocabulary
    export_inputs = ('words', 'valid_length')

    #: the most tokens that the model takes
    context_length = property(attrgetter('config.n_positions'))

    @classmethod
    def from_pretrained(cls, name_or_dir, *args, num_special_tokens=None, **kwargs):
        """See `ZooBlock.from_pretrained`; `num_special_tokens` is for `set_num_special_tokens`."""
        block = super().from_pretrained(name_or_dir, *args, **kwargs)
        if num_special_tokens is not None:
            block.set_num_special_tokens(num_special_tokens)
        return block

    def tensors_in(self, format):
        """See `ZooBlock.tensors_in`; pytorch-pretrained-bert expects further ones."""
        named = super().tensors_in(format)
        if format != 'pytorch_pretrained_bert':
            return named
        config, prefix = self.config, '' if self.backbone is None else f'{self.backbone}.'
        mask = np.tril(np.ones((1, 1, config.n_ctx, config.n_ctx), np.float32))
        named.update({f'{prefix}h.{n}.attn.bias': mask for n in range(config.n_layer)})
        if prefix:
            mapping = self.mappings()['huggingface']
            [(_, _, table)] = mapping.parts(['word_embed.weight'], True)
            named['lm_head.decoder.weight'] = named[next(iter(table))]
        return {name.replace('_head.summary.', '_head.linear.'): named[name] for name in named}

    def example_makers(self, batch_size, length, random):
        config, rows = self.config, self._example_rows(batch_size)
        positions = config.n_positions
        makers = {
            **super().example_makers(batch_size, length, random),
            'token_types': lambda: random.randint(0, config.embedding_rows, (*rows, length)),
            'position_ids': lambda: random.randint(0, positions, (*rows, length)),
            'mc_token_ids': lambda: random.randint(0, length, rows),
        }
        if self.base.has_past:
            before = max(1, min(3, positions - length))
            flat = math.prod(rows)
            heads = [len(config.kept_heads(layer)) for layer in range(config.num_layers)]
            shapes = [(2, flat, count, before, config.head_size) for count in heads]
            makers['past'] = lambda: [random.standard_normal(s).astype('float32') for s in shapes]
        return makers

    def set_num_special_tokens(self, num_special_tokens):
        """Change the number of embeddings after the vocabulary's.

        Existing embeddings are kept; new ones are initialized at random. Create a new Trainer
        afterwards.
        """
        check_field('num_special_tokens', num_special_tokens, Size)
        base = self.base
        if num_special_tokens == base.config.n_special:
            return
        old = base.word_embed.weight
        base.config.n_special = num_special_tokens
        base._make_embedding()
        base._changed()
        new = base.word_embed.weight
        new.cast(old.dtype)
        ctx = contexts_of(old)
        if not ctx:
            return  # not initialized yet
        new.initialize(ctx=ctx)
        rows = min(old.shape[0], new.shape[0])
        value = new.data(ctx[0])
        value[:rows] = old.data(ctx[0])[:rows]
        new.set_data(value)

    def check(self, inputs):
        names = 'words', 'token_types', 'position_ids', 'past'
        words, types, positions, past = map(inputs.get, names)
        axes, before = max(2, getattr(words, 'ndim', 2)), 0
        check_array('words', words, (-1,) * axes)
        if past is not None:
            before = self._check_past(past, words.size // words.shape[-1])
        before = before if positions is None else None
        self.check_text(words, inputs.get('valid_length'), axes, before)
        if types is not None:
            check_array('token_types', types, words.shape, 0, self.config.embedding_rows)
        if positions is not None:
            check_array('position_ids', positions, words.shape, 0, self.context_length)
        if inputs.get('head_mask') is not None:
            inputs['head_mask'] = self.full_head_mask(inputs['head_mask'])

    def _check_past(self, past, batch):
        config = self.config
        if not self.base.has_past:
            raise InputError(f'{type(self.base).__name__} takes no past')
        if not isinstance(past, (list, tuple)) or len(past) != config.num_layers:
            raise InputError(f'past must be the {config.num_layers} presents of an earlier call')
        length = past[0].shape[3] if getattr(past[0], 'ndim', 0) == 5 else -1
        for layer, array in enumerate(past):
            heads = len(config.kept_heads(layer))
            check_array(f'past[{layer}]', array, (2, batch, heads, length, config.head_size))
        return length


class DecoderModel(DecoderBlock):
    """A stack of layers with causal attention.

    A family sets `pre_norm`, where its layers normalize, and `has_past`, whether the model takes
    and returns keys and values of earlier positions.

    Parameters
    ----------
    config : DecoderConfig
    output_attentions, output_all_encodings, keep_multihead_output : bool
        See `AttentionBlock`, and the outputs.

    Inputs
    ------
    words : (..., length)
        Token ids; any number of leading axes.
    token_types : (..., length), optional
        Ids of tokens of the same embedding; their vectors are added.
    valid_length : (...), optional
        Padding doesn't affect the tokens before it; None: there is no padding.
    position_ids : (..., length), optional
        By default 0, 1, ..., or what follows the past.
    past : list of (2, batch, heads, past_length, head_size), optional
        One per layer: the `presents` of an earlier call.
    head_mask : (heads,) or (layers, heads), optional

    Outputs
    -------
    A list of the requested outputs, in this order; a single one isn't wrapped.

    hidden : (..., length, units), or with `output_all_encodings` a list of them
        The embedding's, and one per layer; zero after the valid length.
    presents : list of (2, batch, heads, past_length + length, head_size)
        If the family's model `has_past`. The batch is the product of the leading axes.
    attentions : list of (batch, heads, length, past_length + length)
        With `output_attentions`.
    """

    pre_norm = False
    has_past = False
    outputs = ('hidden', 'presents', 'attentions')

    def __init__(self, config, **options):
        super().__init__(config, **options)
        config = self.config
        self._make_embedding()
        with self.name_scope():
            init, shape = self.initializer, (config.n_positions, config.units)
            self.position_weight = self.params.get('position_weight', shape=shape, init=init)
            self.dropout = nn.Dropout(config.embd_pdrop)
            self.layers = nn.HybridSequential(prefix='')
            with self.layers.name_scope():
                for layer in range(config.num_layers):
                    self.layers.add(DecoderCell(config, layer, self.pre_norm))
            if self.pre_norm:
                self.norm = LayerNorm(epsilon=config.layer_norm_eps, in_channels=config.units)

    @property
    def output_names(self):
        """Names of the outputs, in their order."""
        there = {'presents': self.has_past, 'attentions': self.output_attentions}
        return [name for name in self.outputs if there.get(name, True)]

    def _make_embedding(self):
        config, init = self.config, self.initializer
        sizes = config.embedding_rows, config.units
        with self.name_scope():
            self.word_embed = nn.Embedding(*sizes, weight_initializer=init, prefix='word_embed_')

    def attentions(self):
        """Return the layers' `SelfAttention`."""
        return [cell.attention for cell in self.layers]

    def hybrid_forward(
        self,
        F,
        words,
        token_types=None,
        valid_length=None,
        position_ids=None,
        past=None,
        head_mask=None,
        *,
        position_weight=None,
    ):
        inputs = words, token_types, valid_length, position_ids, past, head_mask
        states, presents, attentions = self.encode(F, inputs, position_weight)
        states = states if self.output_all_encodings else states[-1]
        presents = presents if self.has_past else None
        return self.join_outputs(states, presents, attentions if self.output_attentions else None)

    def encode(self, F, inputs, position_weight):
        """Compute all possible outputs of a call's inputs: states, presents, attentions."""
        words, token_types, valid_length, position_ids, past, head_mask = inputs
        if uses_standard_operators():
            known = words, valid_length, position_ids, past
            return _encode_standard(F, self, *known, position_weight)
        x = self._embed(F, words, token_types, position_ids, past, position_weight)  # (L, N, C)
        if valid_length is not None:
            valid_length = F.reshape(bounded(F, valid_length, words), shape=(-1,))
        dtype = np.dtype(self.position_weight.dtype).name
        if past is not None and self.precision == 'float16':
            past = [F.cast(array, dtype) for array in past]
        mask = causal_mask(F, x, past[0] if past is not None else None, dtype)  # (1, L, P + L)
        # the numbers of heads differ between layers after pruning
        mask_for = functools.cache(lambda count: self._repeat(F, mask, x, count))
        layers = range(len(self.layers))
        heads = [layer_head_mask(F, head_mask, n, self.config, dtype) for n in layers]
        states, presents, attentions = self.run_layers(x, mask_for, heads, past)
        return [self._finish(F, x, valid_length, words) for x in states], presents, attentions

    def run_layers(self, x, mask_for, head_masks, past):
        """Return the states, presents and attentions of the layers, given the embedding.

        ``mask_for(number of heads)`` is the mask of a layer.
        """
        states, presents, attentions = [], [], []
        pasts = [None] * len(self.layers) if past is None else past
        for cell, heads, layer_past in zip(self.layers, head_masks, pasts):
            states.append(x)
            x, attention, present = cell(x, mask_for(cell.attention.num_heads), heads, layer_past)
            attentions.append(attention)
            presents.append(present)
        states.append(self.norm(x) if self.pre_norm else x)
        return states, presents, attentions

    def step(self, F, tokens, positions, mask, key_caches, value_caches, position_weight):
        """Add one more token per row, with keys and values in arrays of a fixed size."""
        tokens, positions = F.expand_dims(tokens, 1), F.expand_dims(positions, 1)
        x = self._embed(F, tokens, None, positions, None, position_weight)  # (1, B, C)
        keys, values = [], []
        counts = {cell.attention.num_heads for cell in self.layers}
        masks = {count: F.repeat(mask, repeats=count, axis=0) for count in counts}
        for cell, key_cache, value_cache in zip(self.layers, key_caches, value_caches):
            row_mask = masks[cell.attention.num_heads]
            x, key, value = cell.step(F, x, row_mask, key_cache, value_cache)
            keys.append(key)
            values.append(value)
        x = self.norm(x) if self.pre_norm else x
        return F.reshape(x, shape=(-3, 0)), keys, values

    def _embed(self, F, words, token_types, position_ids, past, position_weight):
        x = self.word_embed(self._time_major(F, words))
        if token_types is not None:
            x = x + self.word_embed(self._time_major(F, token_types))
        table = {'input_dim': self.config.n_positions, 'output_dim': self.config.units}
        if position_ids is not None:
            positions = self._time_major(F, position_ids)
            x = x + F.Embedding(positions, position_weight, **table)
        else:
            steps = positions_of(F, x)
            if past is not None:
                before = F.cast(F.contrib.arange_like(past[0], axis=3), 'float32')
                before = F.sum(F.ones_like(before), keepdims=True)
                steps = F.broadcast_add(steps, before)
            positions = F.Embedding(steps, position_weight, **table)  # (L, C)
            x = F.broadcast_add(x, F.expand_dims(positions, 1))
        return self.dropout(x)

    @staticmethod
    def _time_major(F, ids):
        return F.transpose(F.reshape(ids, shape=(-1, 0), reverse=True))

    @staticmethod
    def _repeat(F, mask, x, count):
        """Repeat a mask (1, queries, keys) for `count` heads of each row of `x` (L, N, C)."""
        rows = F.contrib.arange_like(x, axis=1)  # (N,)
        rows = F.expand_dims(F.expand_dims(F.repeat(rows, repeats=count), 1), 2)
        return F.broadcast_like(mask, rows, lhs_axes=(0,), rhs_axes=(0,))

    @staticmethod
    def _finish(F, x, valid_length, words):
        """Turn (L, N, C) into (..., L, C), zero behind the valid length."""
        x = batch_major(F, x, valid_length)
        return F.reshape_like(x, words, lhs_begin=0, lhs_end=2, rhs_begin=0, rhs_end=None)


def _encode_standard(F, model, words, mask, position_ids, past, position_weight):
    """Run `DecoderModel.encode` with an attention mask, and with keys and values apart."""
    flat, mask = (F.reshape(ids, shape=(-1, 0), reverse=True) for ids in (words, mask[0]))
    if position_ids is None:
        positions = F.expand_dims(F.contrib.arange_like(flat, axis=1), 0)  # (1, L)
    else:
        positions = F.reshape(position_ids, shape=(-1, 0), reverse=True)
    sizes = dict(zip(('input_dim', 'output_dim'), model.position_weight.shape))
    x = F.broadcast_add(model.word_embed(flat), F.Embedding(positions, position_weight, **sizes))
    blocked = _blocked(F, flat, mask)
    no_masks = [None] * len(model.layers)
    states, presents, attentions = model.run_layers(x, lambda count: blocked, no_masks, past)
    ends = {'lhs_begin': 0, 'lhs_end': 2, 'rhs_begin': 0, 'rhs_end': None}
    return [F.reshape_like(x, words, **ends) for x in states], presents, attentions


def _blocked(F, words, mask):
    """Return the mask to add to the scores (batch, heads, length, past_length + length)."""
    # counted from the end, where the words' positions equal the keys' positions
    queries, keys = (F.reverse(F.contrib.arange_like(x, axis=1), axis=0) for x in (words, mask))
    ahead = F.broadcast_lesser(F.expand_dims(keys, 0), F.expand_dims(queries, 1))  # (L, P + L)
    padding = 1 - F.clip(F.cast(mask, 'float32'), 0, 1)
    for _ in range(2):
        ahead, padding = F.expand_dims(ahead, 0), F.expand_dims(padding, 1)
    return BLOCKED * F.broadcast_maximum(ahead, padding)
