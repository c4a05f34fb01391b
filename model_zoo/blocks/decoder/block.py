"""What the decoders' models and task blocks share: inputs, and their checks."""

import math

import mxnet as mx
import numpy as np

from ...checkpoint.mapping import Padded
from ...errors import InputError
from ...util.checks import check_ids, check_range, check_shape
from ..heads import AttentionBlock

__all__ = ['DecoderBlock']


class DecoderBlock(AttentionBlock):
    """Base of `DecoderModel` and of the task blocks."""

    #: the padding of `FeedForward` doesn't belong into files
    stored_as = (
        (r'layers\.\d+\.ffn\.ffn_1\.(weight|bias)$', Padded(0)),
        (r'layers\.\d+\.ffn\.ffn_2\.weight$', Padded(1)),
    )
    text_inputs = ('words', 'token_types', 'valid_length', 'position_ids')
    #: without token types: zeros aren't nothing here, but the first token of the vocabulary
    export_inputs = ('words', 'valid_length')

    @property
    def context_length(self):
        """The most tokens that the model takes."""
        return self.config.n_positions

    @classmethod
    def from_pretrained(cls, name_or_dir, *args, num_special_tokens=None, **kwargs):
        """See `ZooBlock.from_pretrained`; `num_special_tokens` is for `set_num_special_tokens`."""
        block = super().from_pretrained(name_or_dir, *args, **kwargs)
        if num_special_tokens is not None:
            block.set_num_special_tokens(num_special_tokens)
        return block

    def tensors_in(self, format):
        """See `ZooBlock.tensors_in`; pytorch-pretrained-bert wants some of its own."""
        named = super().tensors_in(format)
        if format != 'pytorch_pretrained_bert':
            return named
        config, prefix = self.config, '' if self.backbone is None else f'{self.backbone}.'
        mask = np.tril(np.ones((1, 1, config.n_ctx, config.n_ctx), np.float32))
        named.update({f'{prefix}h.{n}.attn.bias': mask for n in range(config.n_layer)})
        if prefix:
            table = self.mappings()['huggingface'].names('word_embed.weight', named, True)[0]
            named['lm_head.decoder.weight'] = named[table]
        return {name.replace('_head.summary.', '_head.linear.'): named[name] for name in named}

    def example_makers(self, batch_size, length, random):
        config, rows = self.config, self._example_rows(batch_size)
        places = config.n_positions
        makers = {
            **super().example_makers(batch_size, length, random),
            'token_types': lambda: random.randint(0, config.embedding_rows, (*rows, length)),
            'position_ids': lambda: random.randint(0, places, (*rows, length)),
            'mc_token_ids': lambda: random.randint(0, length, rows),
        }
        if self.base.has_past:
            before = max(1, min(3, places - length))
            flat = math.prod(rows)
            makers['past'] = lambda: [
                random.standard_normal(
                    (2, flat, len(config.kept_heads(layer)), before, config.head_size)
                ).astype('float32')
                for layer in range(config.num_layers)
            ]
        return makers

    def set_num_special_tokens(self, num_special_tokens):
        """Change the number of embeddings behind the vocabulary's.

        Existing embeddings are kept; new ones are initialized at random. Make a new Trainer
        afterwards.

        Parameters
        ----------
        num_special_tokens : int
        """
        if isinstance(num_special_tokens, bool) or not isinstance(num_special_tokens, int):
            raise InputError(f'num_special_tokens must be an integer: {num_special_tokens!r}')
        if num_special_tokens < 0:
            raise InputError(f'num_special_tokens must be at least 0: {num_special_tokens}')
        base = self.base
        if num_special_tokens != base.config.n_special:
            base._resize_embedding(num_special_tokens)

    def check_inputs(self, words, token_types, valid_length, position_ids=None, past=None):
        """Raise InputError if the inputs can't be right."""
        if isinstance(words, mx.sym.Symbol):  # in a graph there are no values
            return
        config = self.config
        if not isinstance(words, mx.nd.NDArray):
            check_shape('words', words, (-1, -1))
        axes = max(2, words.ndim)
        check_shape('words', words, (-1,) * axes)
        length = words.shape[-1]
        total = length
        if past is not None:
            total += self._check_past(past, words.size // length)
        if total > config.n_positions and position_ids is None:
            raise InputError(
                f'words has length {length}'
                + (f' after {total - length} past positions' if past is not None else '')
                + f', and the position table of this model ends at {config.n_positions}: '
                'truncate the text, or split it into windows'
            )
        rows = config.total_tokens_embeddings
        check_ids('words', words, rows)
        if token_types is not None:
            check_shape('token_types', token_types, words.shape)
            check_ids('token_types', token_types, rows)
        if position_ids is not None:
            check_shape('position_ids', position_ids, words.shape)
            check_range('position_ids', position_ids, 0, config.n_positions)
        if valid_length is not None:
            check_shape('valid_length', valid_length, words.shape[:-1])
            check_range('valid_length', valid_length, 0, length + 1)

    def _check_past(self, past, batch):
        """Check the shapes of the past, and return its length."""
        config = self.config
        if not self.base.has_past:
            raise InputError(f'{type(self.base).__name__} takes no past')
        if not isinstance(past, (list, tuple)) or len(past) != config.num_layers:
            raise InputError(
                f'past must be a list of {config.num_layers} arrays, one a layer: the presents of '
                'an earlier call'
            )
        length = past[0].shape[3] if getattr(past[0], 'ndim', 0) == 5 else -1
        for layer, one in enumerate(past):
            heads = len(config.kept_heads(layer))
            check_shape(f'past[{layer}]', one, (2, batch, heads, length, config.head_size))
        return length
