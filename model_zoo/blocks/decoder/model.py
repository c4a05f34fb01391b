"""What the decoders have in common: the model, its task heads, and steps of generation."""

import mxnet as mx
import numpy as np
from mxnet.gluon import nn

from ...checkpoint.mapping import Padded
from ...errors import InputError
from ...layers.attention import layer_head_mask
from ...layers.causal_attention import causal_mask
from ...layers.cells import DecoderCell
from ...layers.losses import cross_entropy
from ...layers.precision import Dense, LayerNorm, positions_of
from ...util.checks import check_ids, check_range, check_shape
from ..attention_block import AttentionBlock
from .steps import DecoderSteps

__all__ = ['DecoderBlock', 'DecoderDoubleHeads', 'DecoderLM', 'DecoderModel']


class DecoderBlock(AttentionBlock):
    """What a decoder's model and its task blocks share: inputs and checks."""

    #: the padding of `FeedForward` doesn't belong into files
    stored_as = (
        (r'layers\.\d+\.ffn\.ffn_1\.(weight|bias)$', Padded(0)),
        (r'layers\.\d+\.ffn\.ffn_2\.weight$', Padded(1)),
    )
    #: the family's `BPETokenizer`
    tokenizer_class = None
    text_inputs = ('words', 'token_types', 'valid_length', 'position_ids')
    #: without token types: zeros aren't nothing here, but the first token of the vocabulary
    export_inputs = ('words', 'valid_length')
    #: axes of `words` in an exported graph: one more where an example has several texts
    word_axes = 2

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

    def own_tokenizer(self):
        file = self.base.vocab_file
        # GluonNLP's vocabularies come without merges
        has_merges = file is not None and file.kind == 'bpe'
        return self.tokenizer_class.from_vocab_file(file) if has_merges else None

    def example_makers(self, batch_size, length, random):
        config = self.config
        rows = (batch_size,) + (2,) * (self.word_axes - 2)
        tokens, places = config.total_tokens_embeddings, config.n_positions
        mask_shape = config.num_layers, config.num_heads
        makers = {
            'words': lambda: random.randint(0, tokens, (*rows, length)),
            'token_types': lambda: random.randint(0, tokens, (*rows, length)),
            'valid_length': lambda: random.randint(1, length + 1, rows),
            'position_ids': lambda: random.randint(0, places, (*rows, length)),
            'mc_token_ids': lambda: random.randint(0, length, rows),
            'head_mask': lambda: random.randint(0, 2, mask_shape).astype('float32'),
        }
        if self.base.has_past:
            before = max(1, min(3, places - length))
            flat = batch_size * 2 ** (self.word_axes - 2)
            makers['past'] = lambda: [
                random.standard_normal(
                    (2, flat, len(config.kept_heads(layer)), before, config.head_size)
                ).astype('float32')
                for layer in range(config.num_layers)
            ]
        return makers

    def set_num_special_tokens(self, num_special_tokens):
        """Change the number of embeddings behind the vocabulary's.

        The vocabulary's embeddings are kept, and those of special tokens that there were before;
        new ones are initialized at random. Make a new Trainer afterwards.

        Parameters
        ----------
        num_special_tokens : int

        Raises
        ------
        InputError
            If it isn't a number of at least 0.
        """
        if isinstance(num_special_tokens, bool) or not isinstance(num_special_tokens, int):
            raise InputError(f'num_special_tokens must be an integer: {num_special_tokens!r}')
        if num_special_tokens < 0:
            raise InputError(f'num_special_tokens must be at least 0: {num_special_tokens}')
        base = self.base
        if num_special_tokens != base.config.n_special:
            base._resize_embedding(num_special_tokens)


class DecoderModel(DecoderBlock):
    """A stack of layers that look back only.

    A family says with `pre_norm` where its layers normalize, and with `has_past` whether the
    model takes and returns keys and values of earlier positions.

    Parameters
    ----------
    config : AttentionConfig
        With `vocab_size`, `n_special`, `n_positions`, `intermediate_size`, `activation`,
        `embd_pdrop`, `attn_pdrop`, `resid_pdrop`, `layer_norm_epsilon` and `initializer_range`.
    output_attentions, output_all_encodings, keep_multihead_output : bool
        See the outputs.

    Inputs
    ------
    words : (..., length)
        Token ids; any number of leading axes.
    token_types : (..., length), optional
        Ids of further tokens, whose embeddings are added: they are rows of the same matrix.
    valid_length : (...), optional
        The padding behind it has no influence on what is before it; None means that there is none.
    position_ids : (..., length), optional
        By default 0, 1, ..., or what follows the past.
    past : list of (2, batch, heads, past_length, head_size), optional
        One a layer: the `presents` of an earlier call.
    head_mask : (heads,) or (layers, heads), optional

    Outputs
    -------
    A list of those that were asked for, in this order; a single one isn't wrapped.

    hidden : (..., length, units), or with `output_all_encodings` a list of them
        The embedding's, and one a layer; zero behind the valid length.
    presents : list of (2, batch, heads, past_length + length, head_size)
        If the family's model `has_past`. The batch is the product of the leading axes.
    attentions : list of (batch, heads, length, past_length + length)
        With `output_attentions`.
    """

    pre_norm = False
    has_past = False

    def __init__(
        self,
        config,
        output_attentions=False,
        output_all_encodings=False,
        keep_multihead_output=False,
        prefix=None,
        params=None,
    ):
        super().__init__(config, prefix=prefix, params=params)
        config = self.config
        self.output_attentions = output_attentions
        self.output_all_encodings = output_all_encodings
        self.keep_multihead_output = keep_multihead_output
        self.vocab_file = None  # of the pretrained weights that it began with
        initializer = mx.init.Normal(config.initializer_range)
        self._make_embedding()
        with self.name_scope():
            self.position_weight = self.params.get(
                'position_weight', shape=(config.n_positions, config.units), init=initializer
            )
            self.dropout = nn.Dropout(config.embd_pdrop)
            self.layers = nn.HybridSequential(prefix='')
            with self.layers.name_scope():
                for layer in range(config.num_layers):
                    cell = DecoderCell(
                        config.units,
                        config.intermediate_size,
                        len(config.kept_heads(layer)),
                        config.head_size,
                        config.attn_pdrop,
                        config.resid_pdrop,
                        config.activation,
                        config.layer_norm_epsilon,
                        initializer,
                        pre_norm=self.pre_norm,
                        prefix=f'layer{layer}_',
                    )
                    self.layers.add(cell)
            if self.pre_norm:
                self.norm = LayerNorm(
                    epsilon=config.layer_norm_epsilon, in_channels=config.units
                )

    def _make_embedding(self):
        config = self.config
        with self.name_scope():
            self.word_embed = nn.Embedding(
                config.total_tokens_embeddings,
                config.units,
                weight_initializer=mx.init.Normal(config.initializer_range),
                prefix='word_embed_',
            )

    def _resize_embedding(self, num_special_tokens):
        old = self.word_embed.weight
        self.config.n_special = num_special_tokens
        self._make_embedding()
        self._changed()
        new = self.word_embed.weight
        new.cast(old.dtype)
        try:
            ctx = old.list_ctx()
        except RuntimeError:
            return  # not initialized yet
        new.initialize(ctx=ctx)
        rows = min(old.shape[0], new.shape[0])
        value = new.data(ctx[0])
        value[:rows] = old.data(ctx[0])[:rows]
        new.set_data(value)

    def attentions(self):
        """The layers' `SelfAttention`."""
        return [cell.attention for cell in self.layers]

    def __call__(
        self,
        words,
        token_types=None,
        valid_length=None,
        position_ids=None,
        past=None,
        head_mask=None,
        probes=None,
    ):
        if not isinstance(words, mx.sym.Symbol):
            self.check_inputs(words, token_types, valid_length, position_ids, past)
        inputs = [words, token_types, valid_length, position_ids, past]
        return self._run(words, inputs, head_mask, probes)

    def check_inputs(self, words, token_types, valid_length, position_ids=None, past=None):
        """Raise InputError if the inputs can't be right."""
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
        """The length of the past, after a look at its shapes."""
        config = self.config
        if not self.has_past:
            raise InputError(f'{type(self).__name__} takes no past')
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

    def hybrid_forward(
        self,
        F,
        words,
        token_types=None,
        valid_length=None,
        position_ids=None,
        past=None,
        head_mask=None,
        probes=None,
        position_weight=None,
    ):
        states, attentions, heads, presents = self.encode(
            F, words, token_types, valid_length, position_ids, past, head_mask, probes,
            position_weight,
        )  # fmt: skip
        outputs = [states if self.output_all_encodings else states[-1]]
        if self.has_past:
            outputs.append(presents)
        if self.output_attentions:
            outputs.append(attentions)
        result = outputs[0] if len(outputs) == 1 else outputs
        return result if probes is None else (result, heads)

    def encode(
        self, F, words, token_types, valid_length, position_ids, past, head_mask, probes,
        position_weight,
    ):  # fmt: skip
        """`hybrid_forward` with all that it can return: states, attentions, heads, presents."""
        x = self._embed(F, words, token_types, position_ids, past, position_weight)  # (L, N, C)
        if valid_length is not None:
            valid_length = F.reshape(F.cast(valid_length, 'float32'), shape=(-1,))
        states, attentions, heads, presents = [], [], [], []
        dtype = np.dtype(self.position_weight.dtype).name
        if past is not None and self.precision == 'float16':
            past = [F.cast(each, dtype) for each in past]
        mask = causal_mask(F, x, past[0] if past is not None else None, dtype)
        masks = {}  # by number of heads, which differs between layers after pruning
        for layer, cell in enumerate(self.layers):
            states.append(x)
            count = cell.attention.num_heads
            if count not in masks:
                masks[count] = self._repeat(F, mask, x, count)
            x, attention, head, present = cell(
                x,
                masks[count],
                layer_head_mask(F, head_mask, layer, self.config, dtype),
                None if probes is None else probes[layer],
                None if past is None else past[layer],
            )
            attentions.append(attention)
            heads.append(head)
            presents.append(present)
        states.append(self.norm(x) if self.pre_norm else x)
        states = [self._finish(F, x, valid_length, words) for x in states]
        return states, attentions, heads, presents

    def step(self, F, tokens, positions, mask, key_caches, value_caches, position_weight):
        """One more token a row, with keys and values in arrays of a fixed size.

        Parameters
        ----------
        F : module
        tokens, positions : (batch,)
        mask : (batch, capacity)
            0 at the places of the caches that are in use, -10000 at the others.
        key_caches : list of (batch * heads, capacity, head_size)
            One a layer.
        value_caches : list of (batch * heads, head_size, capacity)

        Returns
        -------
        hidden : (batch, units)
        keys : list of (batch, heads, 1, head_size)
            To be written to the caches.
        values : list of (batch, heads, head_size, 1)
        """
        x = self._embed(
            F, F.expand_dims(tokens, 1), None, F.expand_dims(positions, 1), None, position_weight
        )  # (1, B, C)
        keys, values = [], []
        masks = {
            count: F.repeat(mask, repeats=count, axis=0)
            for count in {cell.attention.num_heads for cell in self.layers}
        }
        for cell, key_cache, value_cache in zip(self.layers, key_caches, value_caches):
            row_mask = masks[cell.attention.num_heads]
            x, key, value = cell.step(F, x, row_mask, key_cache, value_cache)
            keys.append(key)
            values.append(value)
        x = self.norm(x) if self.pre_norm else x
        return F.reshape(x, shape=(-3, 0)), keys, values

    def _embed(self, F, words, token_types, position_ids, past, position_weight):
        """The sum of the embeddings, (length, batch, units)."""
        x = self.word_embed(self._time_major(F, words))
        if token_types is not None:
            x = x + self.word_embed(self._time_major(F, token_types))
        if position_ids is not None:
            positions = F.Embedding(
                self._time_major(F, position_ids), position_weight, **self._table()
            )
            x = x + positions
        else:
            steps = positions_of(F, x)
            if past is not None:
                before = F.cast(F.contrib.arange_like(past[0], axis=3), 'float32')
                before = F.sum(F.ones_like(before), keepdims=True)
                steps = F.broadcast_add(steps, before)
            positions = F.Embedding(steps, position_weight, **self._table())  # (L, C)
            x = F.broadcast_add(x, F.expand_dims(positions, 1))
        return self.dropout(x)

    def _table(self):
        return {'input_dim': self.config.n_positions, 'output_dim': self.config.units}

    @staticmethod
    def _time_major(F, ids):
        """(..., length) as (length, batch)."""
        return F.transpose(F.reshape(ids, shape=(-1, 0), reverse=True))

    @staticmethod
    def _repeat(F, mask, x, count):
        """A mask of (1, queries, keys) for each of `count` heads of each row of `x` (L, N, C)."""
        rows = F.contrib.arange_like(x, axis=1)  # (N,)
        rows = F.expand_dims(F.expand_dims(F.repeat(rows, repeats=count), 1), 2)
        return F.broadcast_like(mask, rows, lhs_axes=(0,), rhs_axes=(0,))

    @staticmethod
    def _finish(F, x, valid_length, words):
        """(length, batch, units) -> (..., length, units), zero behind the valid length."""
        if valid_length is not None:
            x = F.SequenceMask(x, sequence_length=valid_length, use_sequence_length=True, axis=0)
        x = F.transpose(x, axes=(1, 0, 2))
        return F.reshape_like(x, words, lhs_begin=0, lhs_end=2, rhs_begin=0, rhs_end=None)


class DecoderTask(DecoderBlock):
    """A `DecoderModel` with a language model's head, and perhaps another one.

    Parameters
    ----------
    transformer : DecoderModel or its configuration
        A model is used as it is and shared; a configuration makes a new one.
    predict_special_tokens : bool
        Whether the language model's scores include the special tokens behind the vocabulary.
    **options
        For the new model, such as ``output_attentions=True``.
    """

    backbone = 'transformer'
    #: the family's `DecoderModel`
    model_class = None

    def __init__(
        self, transformer, predict_special_tokens=True, prefix=None, params=None, **options
    ):
        is_model = isinstance(transformer, DecoderModel)
        config = transformer.config if is_model else transformer
        super().__init__(config, prefix=prefix, params=params)
        if is_model and options:
            raise InputError(f'{", ".join(options)}: set this where the model is made')
        self._predict_special_tokens = predict_special_tokens
        with self.name_scope():
            self.transformer = transformer if is_model else self.model_class(self.config, **options)
        # the same one, so that it tells of what another owner of the model has changed
        self.config = self.transformer.config

    def token_scores(self, F, hidden):
        """The product with the word embedding, (..., tokens)."""
        config = self.config
        # looked up each time, for `set_num_special_tokens` makes a new one
        weight = self.transformer.word_embed.weight
        is_symbol = isinstance(hidden, mx.sym.Symbol)
        word_weight = weight.var() if is_symbol else weight.data(hidden.context)
        rows = config.total_tokens_embeddings
        if config.n_special and not self._predict_special_tokens:
            rows = config.vocab_size
            word_weight = F.slice_axis(word_weight, axis=0, begin=0, end=rows)
        return self.fully_connected(F, hidden, word_weight, num_hidden=rows, flatten=False)

    def _lm_loss(self, F, hidden, labels, valid_length):
        """Mean cross-entropy of each token given those before it."""
        hidden = F.reshape(hidden, shape=(-1, 0, 0), reverse=True)  # (N, L, C)
        hidden = F.slice_axis(hidden, axis=1, begin=0, end=-1)
        labels = F.reshape(F.cast(labels, 'float32'), shape=(-1, 0), reverse=True)  # (N, L)
        if valid_length is not None:
            steps = F.expand_dims(F.contrib.arange_like(labels, axis=1), 0)
            ends = F.reshape(F.cast(valid_length, 'float32'), shape=(-1, 1))
            outside = F.broadcast_greater_equal(steps, ends)
            labels = labels * (1 - outside) - outside
        labels = F.slice_axis(labels, axis=1, begin=1, end=None)
        return cross_entropy(F, self.token_scores(F, hidden), labels)

    def _encode(self, words, token_types, valid_length, position_ids, past, head_mask, probes):
        """Run the model: (last hidden state, its other outputs, the heads' outputs or None)."""
        outputs = self.transformer(
            words, token_types, valid_length, position_ids, past, head_mask, probes
        )
        heads = None
        if probes is not None:
            outputs, heads = outputs
        base = self.transformer
        hidden, *others = outputs if base.has_past or base.output_attentions else [outputs]
        return (hidden[-1] if base.output_all_encodings else hidden), others, heads

    @staticmethod
    def _result(result, heads):
        result = result[0] if len(result) == 1 else result
        return result if heads is None else (result, heads)

    def _check_labels(self, labels, words, name='lm_labels'):
        if labels is not None and isinstance(words, mx.nd.NDArray):
            check_shape(name, labels, words.shape)
            rows = self.config.vocab_size
            rows += self.config.n_special if self._predict_special_tokens else 0
            check_range(name, labels, -1, rows)
            if words.shape[-1] < 2:
                raise InputError(f'{name} needs words of at least length 2, not {words.shape}')


class DecoderLM(DecoderTask):
    """A decoder with a language model's head; see the family's class."""

    _steps = None

    def _clear_cached_op(self):
        super()._clear_cached_op()
        self._steps = None  # made of the layers as they were

    def start(self, words, valid_length, capacity):
        """Run the prompts and make room for what follows them.

        Parameters
        ----------
        words : (batch, length)
            Token ids.
        valid_length : (batch,)
            Of the prompts, at least 1.
        capacity : int
            The most tokens of a row, prompt and continuation, that the state can hold.

        Returns
        -------
        scores : (batch, tokens)
            For the token after each prompt.
        state : DecoderState

        Raises
        ------
        InputError
            If the inputs are of the wrong shape, or the capacity is more than the model takes.
        """
        check_shape('words', words, (-1, -1))
        self.transformer.check_inputs(words, None, valid_length)
        check_range('valid_length', valid_length, 1, words.shape[1] + 1)
        if not words.shape[1] < capacity + 1 <= self.context_length + 1:
            raise InputError(
                f'capacity is {capacity}, and must be between the length of the prompts, '
                f'{words.shape[1]}, and the {self.context_length} tokens that the model takes'
            )
        return self._get_steps().start(words, valid_length, capacity)

    def step(self, tokens, state):
        """One more token a row.

        Parameters
        ----------
        tokens : (batch,)
        state : DecoderState
            Of `start` or another step; changed in place.

        Returns
        -------
        scores : (batch, tokens)
            For the next token.
        state : DecoderState

        Raises
        ------
        InputError
            If the state is full, or the tokens are of the wrong shape or out of range.
        """
        check_shape('tokens', tokens, state.positions.shape)
        check_ids('tokens', tokens, self.config.total_tokens_embeddings)
        return self._get_steps().step(tokens, state)

    def _get_steps(self):
        self._follow_changes()
        if self._steps is None:
            self._steps = DecoderSteps(self)
        return self._steps

    def __call__(
        self,
        words,
        token_types=None,
        valid_length=None,
        position_ids=None,
        lm_labels=None,
        past=None,
        head_mask=None,
        probes=None,
    ):
        if not isinstance(words, mx.sym.Symbol):
            self.transformer.check_inputs(words, token_types, valid_length, position_ids, past)
            self._check_labels(lm_labels, words)
        inputs = [words, token_types, valid_length, position_ids, lm_labels, past]
        return self._run(words, inputs, head_mask, probes)

    def hybrid_forward(
        self,
        F,
        words,
        token_types=None,
        valid_length=None,
        position_ids=None,
        lm_labels=None,
        past=None,
        head_mask=None,
        probes=None,
    ):
        hidden, others, heads = self._encode(
            words, token_types, valid_length, position_ids, past, head_mask, probes
        )
        if lm_labels is not None:
            loss = self._lm_loss(F, hidden, lm_labels, valid_length)
            attentions = others[-1:] if self.transformer.output_attentions else []
            return self._result([loss, *attentions], heads)
        return self._result([self.token_scores(F, hidden), *others], heads)


class DecoderDoubleHeads(DecoderTask):
    """A decoder with a language model's and a multiple choice head; see the family's class.

    The multiple choice head is a dense layer on the hidden state of one token of each choice.
    """

    text_inputs = (*DecoderTask.text_inputs, 'mc_token_ids')
    export_inputs = ('words', 'mc_token_ids', 'valid_length')
    word_axes = 3

    def __init__(
        self, transformer, predict_special_tokens=True, prefix=None, params=None, **options
    ):
        super().__init__(transformer, predict_special_tokens, prefix, params, **options)
        config = self.config
        with self.name_scope():
            # a unit is dropped in all choices alike, as in OpenAI's code
            self.mc_dropout = nn.Dropout(config.mc_pdrop, axes=(1,))
            self.mc_head = Dense(
                1,
                in_units=config.units,
                flatten=False,
                weight_initializer=mx.init.Normal(config.initializer_range),
                prefix='mc_head_',
            )

    def __call__(
        self,
        words,
        mc_token_ids,
        token_types=None,
        valid_length=None,
        position_ids=None,
        lm_labels=None,
        mc_labels=None,
        past=None,
        head_mask=None,
        probes=None,
    ):
        if not isinstance(words, mx.sym.Symbol):
            self.transformer.check_inputs(words, token_types, valid_length, position_ids, past)
            self._check_choices(words, mc_token_ids, mc_labels)
            self._check_labels(lm_labels, words)
        inputs = [
            words, mc_token_ids, token_types, valid_length, position_ids, lm_labels, mc_labels, past
        ]  # fmt: skip
        return self._run(words, inputs, head_mask, probes)

    @staticmethod
    def _check_choices(words, mc_token_ids, mc_labels):
        check_shape('words', words, (-1, -1, -1))
        check_shape('mc_token_ids', mc_token_ids, words.shape[:2])
        check_range('mc_token_ids', mc_token_ids, 0, words.shape[2])
        if mc_labels is not None:
            check_shape('mc_labels', mc_labels, words.shape[:1])
            check_range('mc_labels', mc_labels, -1, words.shape[1])

    def hybrid_forward(
        self,
        F,
        words,
        mc_token_ids,
        token_types=None,
        valid_length=None,
        position_ids=None,
        lm_labels=None,
        mc_labels=None,
        past=None,
        head_mask=None,
        probes=None,
    ):
        hidden, others, heads = self._encode(
            words, token_types, valid_length, position_ids, past, head_mask, probes
        )
        losses = []
        if lm_labels is not None:
            losses.append(self._lm_loss(F, hidden, lm_labels, valid_length))
        if lm_labels is None or mc_labels is not None:
            choices = self._choose(F, hidden, mc_token_ids)  # (batch, choices)
        if mc_labels is not None:
            losses.append(cross_entropy(F, choices, mc_labels))
        if losses:
            attentions = others[-1:] if self.transformer.output_attentions else []
            return self._result([*losses, *attentions], heads)
        return self._result([self.token_scores(F, hidden), choices, *others], heads)

    def _choose(self, F, hidden, mc_token_ids):
        """The choices' scores from `hidden` (batch, choices, length, units)."""
        flat = F.reshape(hidden, shape=(-3, 0, 0))
        index = _rows_and(F, F.reshape(mc_token_ids, shape=(-1,)))
        chosen = F.gather_nd(flat, index)  # (batch * choices, units)
        chosen = F.reshape_like(
            chosen, mc_token_ids, lhs_begin=0, lhs_end=1, rhs_begin=0, rhs_end=2
        )
        return F.reshape(self.mc_head(self.mc_dropout(chosen)), shape=(0, 0))


def _rows_and(F, positions):
    """Indices for ``gather_nd``: of each row (batch,) the place at its position."""
    rows = F.contrib.arange_like(positions, axis=0)
    return F.stack(F.cast(rows, 'int32'), F.cast(positions, 'int32'), axis=0)
