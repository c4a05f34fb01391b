"""What Transformer-XL's model and language model have in common."""

import math

import mxnet as mx

from model_zoo.blocks.block import ZooBlock
from model_zoo.blocks.config import LARGEST_SIZE
from model_zoo.checkpoint.mapping import Padded
from model_zoo.errors import InputError
from model_zoo.util.checks import check_range, check_shape

from .catalogue import ARCHITECTURES
from .config import TransfoXLConfig
from .mapping import transfo_xl_mappings

__all__ = ['TransfoXLBlock']


class TransfoXLBlock(ZooBlock):
    """Base of `TransfoXLModel` and `TransfoXLLMHeadModel`: lengths, memories, checks."""

    config_class = TransfoXLConfig
    architectures = ARCHITECTURES
    #: the padding of `FeedForward` doesn't belong into files
    stored_as = (
        (r'layers\.\d+\.ffn\.ffn_1\.(weight|bias)$', Padded(0, 'd_inner')),
        (r'layers\.\d+\.ffn\.ffn_2\.weight$', Padded(1, 'd_inner')),
    )
    text_inputs = ('words', 'mems', 'valid_length')
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
        """Change the lengths, for instance to evaluate with a longer memory than in training.

        Earlier memories don't fit any more. `config` doesn't change.

        Parameters
        ----------
        tgt_len, ext_len, mem_len : int
            See `TransfoXLConfig`.
        """
        base = self.base
        base.config.check_lengths(tgt_len, ext_len, mem_len)
        base.tgt_len, base.ext_len, base.mem_len = tgt_len, ext_len, mem_len

    def init_mems(self, batch_size, ctx=None, empty=False):
        """The memory before the first segment.

        Parameters
        ----------
        batch_size : int
        ctx : mx.Context, optional
            Default: where the parameters are.
        empty : bool
            Whether all places are unused, as in the original for PyTorch. By default they hold
            zeros, which take part in the attention, as in pytorch-pretrained-bert, transformers
            and the original for TensorFlow.

        Returns
        -------
        list
            See `TransfoXLModel`; an empty list where `mem_len` is 0.
        """
        base = self.base
        if not base.mem_len:
            return []
        parameter = base.word_embed.tables[0]
        ctx = ctx or parameter.list_ctx()[0]
        shape = (base.mem_len, batch_size, base.config.d_model)
        if math.prod(shape) >= LARGEST_SIZE:
            raise InputError(
                f'mem_len is {base.mem_len}: a memory of {shape} (mem_len, batch, d_model) is more '
                'than an array can hold; shorten it with reset_length'
            )
        mems = [mx.nd.zeros(shape, ctx, parameter.dtype) for _ in range(base.config.n_layer)]
        return [*mems, mx.nd.full((batch_size,), 0 if empty else base.mem_len, ctx)]

    def _check_inputs(self, words, mems, valid_length):
        """Check the inputs; return the memories."""
        base = self.base
        if isinstance(words, mx.sym.Symbol):
            if mems is None and base.mem_len:
                raise InputError('in a graph mems must be given: begin with those of init_mems()')
            return mems or []
        self.check_text(words, valid_length)
        batch = words.shape[0]
        lengths = (base.ext_len, base.mem_len)
        if lengths != self._graph_lengths:  # the graphs were made for others
            self._clear_cached_op()
            self._graph_lengths = lengths
        if mems is None:
            return self.init_mems(batch, words.context)
        wanted = base.config.n_layer + 1 if base.mem_len else 0
        if not isinstance(mems, (list, tuple)) or len(mems) != wanted:
            what = f'has {len(mems)}' if isinstance(mems, (list, tuple)) else f'is a {type(mems)}'
            raise InputError(
                f'mems must be a list of {wanted} arrays, one a layer and the numbers of valid '
                f'places, but {what}: pass what the last call returned, or None'
            )
        for layer, memory in enumerate(mems[:-1]):
            check_shape(f'mems[{layer}]', memory, (base.mem_len, batch, base.config.d_model))
        if mems:
            check_shape('mems[-1], the numbers of valid places,', mems[-1], (batch,))
            check_range('mems[-1], the numbers of valid places,', mems[-1], 0, base.mem_len + 1)
        return list(mems)
