"""Transformer-XL: layers with relative positions and a memory of earlier segments."""

import mxnet as mx
from mxnet.gluon import nn

from model_zoo.blocks.block import ZooBlock
from model_zoo.errors import InputError
from model_zoo.layers.attention import BLOCKED
from model_zoo.layers.sequences import batch_major, bounded, positions_of, without_nan
from model_zoo.util.arrays import check_array

from .adaptive import AdaptiveEmbedding
from .config import TransfoXLConfig
from .mapping import transfo_xl_mappings
from .relative_attention import RelativeCell, sinusoids

__all__ = ['TransfoXLBlock']


class TransfoXLBlock(ZooBlock):
    """Base of `TransfoXLModel` and `TransfoXLLMHeadModel`: lengths, memories, checks."""

    config_class = TransfoXLConfig
    _graph_lengths = None

    @property
    def export_inputs(self):
        """The inputs that an exported graph has by default."""
        mems = ['mems'] if self.base.mem_len else []
        return ('words', *mems, 'valid_length')

    def example_makers(self, batch_size, length, random):
        base = self.base
        shape = base.mem_len, batch_size, base.config.d_model
        return {
            **super().example_makers(batch_size, length, random),
            'mems': lambda: [
                *(random.standard_normal(shape).astype('float32') for _ in base.layers),
                random.randint(0, base.mem_len + 1, batch_size).astype('float32'),
            ],
        }

    @classmethod
    def name_maps(cls, config):
        return transfo_xl_mappings(config)

    def reset_length(self, tgt_len, ext_len, mem_len):
        """Change the lengths, for example to evaluate with a longer memory than in training.

        Earlier memories no longer fit. `config` doesn't change.
        """
        base = self.base
        base.config.changed({'tgt_len': tgt_len, 'ext_len': ext_len, 'mem_len': mem_len})  # a check
        base.tgt_len, base.ext_len, base.mem_len = tgt_len, ext_len, mem_len

    def init_mems(self, batch_size, ctx=None):
        """Return the memory before the first segment, zeros that take part in the attention.

        This is as in pytorch-pretrained-bert, transformers and the original for TensorFlow. The
        original for PyTorch begins with an empty memory, whose numbers of used positions, the last
        item, are 0.
        """
        base = self.base
        if not base.mem_len:
            return []
        parameter = base.word_embed.tables[0]
        ctx = ctx or parameter.list_ctx()[0]
        shape = (base.mem_len, batch_size, base.config.d_model)
        mems = [mx.nd.zeros(shape, ctx, parameter.dtype) for _ in range(base.config.n_layer)]
        return [*mems, mx.nd.full((batch_size,), base.mem_len, ctx)]

    def check(self, inputs):
        words, mems, base = inputs['words'], inputs['mems'], self.base
        self.check_text(words, inputs['valid_length'])
        batch = words.shape[0]
        lengths = (base.ext_len, base.mem_len)
        if lengths != self._graph_lengths:  # the graphs were made for others
            self._clear_cached_op()
            self._graph_lengths = lengths
        if mems is None:
            inputs['mems'] = self.init_mems(batch, words.context)
            return
        wanted = base.config.n_layer + 1 if base.mem_len else 0
        if not isinstance(mems, (list, tuple)) or len(mems) != wanted:
            raise InputError(f'mems must be the {wanted} arrays of the last call, or None')
        for layer, memory in enumerate(mems[:-1]):
            check_array(f'mems[{layer}]', memory, (base.mem_len, batch, base.config.d_model))
        if mems:
            check_array('mems[-1]', mems[-1], (batch,), 0, base.mem_len + 1)
        inputs['mems'] = list(mems)


class TransfoXLModel(TransfoXLBlock):
    """Transformer-XL: a decoder that remembers the hidden states of earlier segments.

    Parameters
    ----------
    config : TransfoXLConfig

    Inputs
    ------
    words : (batch, length)
        Token ids.
    mems : list, optional
        One array (mem_len, batch, d_model) per layer: the layer's inputs in the last segments. The
        last item, (batch,), is the number of used positions at the end; the others are masked. None
        stands for `init_mems`.
    valid_length : (batch,), optional
        Padding doesn't affect the tokens before it and isn't remembered. None: no padding.

    Outputs
    -------
    hidden : (batch, length, d_model)
        Zero after the valid length.
    mems : list
        The memory for the next segment, in the shapes of the input, so that a static graph isn't
        planned again. No gradient flows into it.

    Source: Dai et al., "Transformer-XL: Attentive Language Models Beyond a Fixed-Length Context",
    section 3; ``TransfoXLModel`` of pytorch-pretrained-bert's modeling_transfo_xl.py.

    Examples
    --------
    >>> from transfo_xl import TransfoXLConfig
    >>> config = TransfoXLConfig(vocab_size=100, cutoffs=[20, 50], n_layer=2, d_model=16,
    ...     d_embed=16, n_head=2, d_head=8, d_inner=32, mem_len=8)
    >>> model = TransfoXLModel(config)
    >>> model.initialize()
    >>> hidden, mems = model(mx.nd.array([[31, 51, 99], [15, 5, 0]]))
    >>> hidden, mems = model(mx.nd.array([[53, 21, 1], [64, 23, 10]]), mems)
    """

    def __init__(self, config, prefix=None, params=None):
        super().__init__(config, prefix=prefix, params=params)
        config = self.config
        self.tgt_len, self.ext_len, self.mem_len = config.tgt_len, config.ext_len, config.mem_len
        with self.name_scope():
            self.word_embed = AdaptiveEmbedding(config, prefix='word_embed_')
            self.dropout = nn.Dropout(config.dropout)
            self.layers = nn.HybridSequential(prefix='')
            biases = None
            with self.layers.name_scope():
                for layer in range(config.n_layer):
                    cell = RelativeCell(config, biases, prefix=f'layer{layer}_')
                    self.layers.add(cell)
                    if not config.untie_r:
                        biases = cell.attention.content_bias, cell.attention.position_bias

    def hybrid_forward(self, F, words, mems=None, valid_length=None):
        if mems is None and self.mem_len:
            raise InputError('in a graph mems must be given: begin with the result of init_mems()')
        valid_length = bounded(F, valid_length, words)
        x, mems, _, _ = self.encode(F, words, mems, valid_length)
        return batch_major(F, x, valid_length), mems

    def encode(self, F, words, mems, valid_length):
        """Run the layers."""
        x = self.dropout(self.word_embed(F.transpose(words)))  # (L, B, C)
        *memories, counts = mems or [None]
        if counts is not None:
            counts = F.clip(without_nan(F, counts), 0, self.mem_len)
        steps = self.steps_of(F, memories[0]) if memories else None
        mask, distances, frame = self._relations(F, x, steps, counts)
        positions = self.dropout(self._positions(F, distances, x))
        contexts, keys, values = [], [], []
        for layer, cell in enumerate(self.layers):
            memory = memories[layer] if memories else None
            x, context, key, value = cell(x, memory, positions, mask, frame)
            contexts.append(context)
            keys.append(key)
            values.append(value)
        mems = self._remember(F, contexts, counts, words, valid_length) if memories else []
        return self.dropout(x), mems, keys, values

    def distance_keys(self, F, distances, states):
        """Return the layers' keys of distances."""
        positions = self._positions(F, distances, states)
        return [cell.attention.distance_keys(F, positions) for cell in self.layers]

    def _positions(self, F, distances, states):
        """Return the encodings of distances: (length,) -> (length, d_model)."""
        if self.config.clamp_len > 0:
            distances = F.clip(distances, 0, self.config.clamp_len)
        return self._like_parameters(F, sinusoids(F, distances, self.config.d_model, states))

    def read(self, F, words, counts, keys, values, distance_keys):
        """Run the layers with a memory of keys and values."""
        x = self.word_embed(F.transpose(words))
        steps = self.steps_of(F, keys[0], axis=1)
        mask, _, frame = self._relations(F, x, steps, counts)
        last, memories = {'axis': 1, 'begin': -self.mem_len, 'end': None}, []
        for cell, *arrays in zip(self.layers, keys, values, distance_keys):
            x, *both = cell.read(F, x, *arrays, mask, frame)
            memories.append([F.slice_axis(array, **last) for array in both])
        length = F.sum(F.ones_like(F.cast(words, 'float32')), axis=1)
        return x, F.clip(counts + length, 0, self.mem_len), *zip(*memories)

    def step(self, F, tokens, mask, index, layers):
        """Add one more token per row, with keys and values in arrays of a fixed size."""
        x = F.expand_dims(self.dropout(self.word_embed(tokens)), 0)  # (1, B, C)
        mask = F.repeat(self._like_parameters(F, mask), repeats=self.config.n_head, axis=0)
        mask = F.expand_dims(mask, 1)
        keys, values = [], []
        for cell, arrays in zip(self.layers, layers):
            x, key, value = cell.step(F, x, mask, index, *arrays, first=self.mem_len)
            keys.append(key)
            values.append(value)
        return F.reshape(self.dropout(x), shape=(-3, 0)), keys, values

    def _relations(self, F, x, steps, counts):
        """Return the mask (1, batch or 1, L, K), the distances K, ..., 1, 0, and the frame."""
        # `steps` are the memory's, (mem_len,), or None.
        queries = self.steps_of(F, x)  # (L,)
        keys = queries
        frame = F.expand_dims(queries, 0)
        if steps is not None:
            queries = queries + self.mem_len
            keys = F.concat(steps, queries, dim=0)  # (K,)
        zero = F.slice_axis(F.zeros_like(keys), axis=0, begin=0, end=1)
        distances = F.concat(F.reverse(keys, axis=0) + 1, zero, dim=0)
        frame = F.broadcast_add(F.expand_dims(distances, 1), frame)  # (K + 1, L)
        columns = F.expand_dims(keys, 0)
        blocked = F.broadcast_greater(columns, F.expand_dims(queries, 1))
        if self.config.same_length:
            first = F.expand_dims(queries - self.mem_len, 1)
            blocked = blocked + F.broadcast_lesser_equal(columns, first)
        blocked = F.expand_dims(blocked, 0)  # (1, L, K)
        if steps is not None:
            absent = F.broadcast_lesser(columns, self.mem_len - F.expand_dims(counts, 1))
            blocked = F.broadcast_maximum(blocked, F.expand_dims(absent, 1))  # (B, L, K)
        mask = BLOCKED * F.expand_dims(blocked, 0)
        return F.BlockGrad(self._like_parameters(F, mask)), distances, frame

    def steps_of(self, F, x, axis=0):
        """Return 0, 1, 2, ... along an axis of `x`."""
        is_half = self.precision == 'float16'  # float16 counts to 2048
        return positions_of(F, x, axis) if is_half else F.contrib.arange_like(x, axis=axis)

    def _like_parameters(self, F, x):
        """Return `x`, float32, in the type of the parameters."""
        return F.cast(x, 'float16') if self.precision == 'float16' else x

    def _remember(self, F, contexts, counts, words, valid_length):
        """Return the last positions of the memory and the segment, the memory after it."""
        # With `ext_len` it ends that many positions before the segment does, but at most the old
        # memory's number. (The original passes two lengths in the wrong order, which matters only
        # where one of them is less than `ext_len`; its results are kept.)
        is_last = valid_length is None and not self.ext_len
        if valid_length is None:
            valid_length = F.sum(F.ones_like(words), axis=1)
        shift = F.cast(valid_length, 'float32')  # (B,)
        if self.ext_len:
            # a row without words keeps its memory
            shift = (shift - F.clip(counts, 0, self.ext_len)) * (shift > 0)
        new_counts = F.clip(counts + shift, 0, self.mem_len)
        if is_last:
            mems = [F.slice_axis(x, axis=0, begin=-self.mem_len, end=None) for x in contexts]
        else:
            last = F.slice_axis(contexts[0], axis=0, begin=-self.mem_len, end=None)
            steps = F.expand_dims(self.steps_of(F, last), 1)
            steps = F.broadcast_add(steps, F.expand_dims(shift, 0))  # (mem_len, B)
            rows = F.broadcast_like(F.expand_dims(F.contrib.arange_like(counts, axis=0), 0), steps)
            index = F.stack(F.maximum(steps, 0), rows, axis=0)
            mems = [F.gather_nd(x, F.cast(index, 'int32')) for x in contexts]
        return [F.BlockGrad(array) for array in (*mems, new_counts)]
