"""The task heads of GPT and GPT-2, and the graph of a step of generation."""

import mxnet as mx
from mxnet.gluon import nn

from ..layers.attention import BLOCKED, unstack
from ..layers.graphs import LockedGraph
from ..layers.losses import cross_entropy
from ..layers.precision import Dense
from ..layers.sequences import vectors_at, without_padding
from ..util.arrays import check_array
from .block import NUM_CHOICES
from .decoder import DecoderBlock
from .stepwise import State, Stepwise, widen, write_at
from .task_mixin import TaskMixin

__all__ = ['DecoderDoubleHeads', 'DecoderLM']


class _Graph(LockedGraph):
    """A part of the generation that is run as one graph."""

    def __init__(self, task, groups):
        super().__init__()
        self.transformer = task.transformer
        self.position_weight = task.transformer.position_weight
        self._scores = task.token_scores
        self._groups = groups

    def _by_group(self, F, arrays):
        """Return the layers' arrays, stacked group by group."""
        return [F.stack(*(arrays[layer] for layer in group)) for group in self._groups]


class _Prompt(_Graph):
    """The prompts: scores at their ends, and keys and values by groups of layers."""

    def hybrid_forward(self, F, words, valid_length, position_weight):
        inputs = words, None, None, None, None, None
        states, presents, _ = self.transformer.encode(F, inputs, position_weight)
        last = vectors_at(F, states[-1], F.cast(valid_length, 'float32') - 1)  # (B, C)
        keys, values = zip(*(unstack(F, present, 2) for present in presents))
        values = [F.swapaxes(value, -1, -2) for value in values]
        return self._scores(F, last), self._by_group(F, keys), self._by_group(F, values)


class _Step(_Graph):
    """One more token per row."""

    def hybrid_forward(self, F, tokens, positions, mask, keys, values, position_weight):
        inputs = tokens, positions, mask, keys, values, position_weight
        hidden, keys, values = self.transformer.step(F, *inputs)
        return self._scores(F, hidden), self._by_group(F, keys), self._by_group(F, values)


class DecoderSteps:
    """The graphs of a `DecoderLM`'s generation."""

    def __init__(self, task):
        base = task.transformer
        by_count = {}
        for layer, attention in enumerate(base.attentions()):
            by_count.setdefault(attention.num_heads, []).append(layer)
        self._groups = list(by_count.values())
        groups = enumerate(self._groups)
        places = {layer: (n, i) for n, group in groups for i, layer in enumerate(group)}
        # where each layer's arrays are: (group, number in the group)
        self._indices = [places[layer] for layer in sorted(places)]
        self._prompt, self._step = _Prompt(task, self._groups), _Step(task, self._groups)
        for graph in (self._prompt, self._step):
            graph.hybridize(static_alloc=True, static_shape=True)

    def start(self, inputs, capacity):
        words, valid_length = inputs['words'], inputs['valid_length']
        scores, keys, values = self._prompt(words, valid_length)
        keys = [widen(key, 3, capacity) for key in keys]
        values = [widen(value, 4, capacity) for value in values]
        positions = valid_length.astype('float32')
        columns = mx.nd.arange(capacity, ctx=words.context).reshape((1, -1))
        mask = BLOCKED * mx.nd.broadcast_greater_equal(columns, positions.reshape((-1, 1)))
        mask = mask.astype(keys[0].dtype, copy=False)
        return scores, State(keys, values, mask, words.shape[1], positions)

    def step(self, tokens, state):
        position = state.position
        keys, values = (
            [arrays[group][i].reshape((-3, 0, 0)) for group, i in self._indices]
            for arrays in (state.keys, state.values)
        )
        scores, new_keys, new_values = self._step(tokens, state.positions, state.mask, keys, values)
        for arrays, new, axis in ((state.keys, new_keys, 3), (state.values, new_values, 4)):
            for array, part in zip(arrays, new):
                write_at(array, part, axis, position)
        write_at(state.mask, mx.nd.zeros_like(state.mask[:, :1]), 1, position)
        state.positions += 1
        state.position += 1
        return scores, state


class DecoderTask(TaskMixin, DecoderBlock):
    """A `DecoderModel` with a language model's head, and perhaps another one."""

    backbone = 'transformer'

    def __init__(self, transformer, predict_special_tokens=True, **options):
        super().__init__(transformer, **options)
        self._predict_special_tokens = predict_special_tokens
        if not predict_special_tokens:
            self.label_inputs = {**self.label_inputs, 'lm_labels': (None, 'vocab_size')}
        # the same object, which another owner of the model may change
        self.config = self.base.config

    def token_scores(self, F, hidden):
        """Return the product with the word embedding, (..., tokens)."""
        config = self.config
        # looked up each time, as `set_num_special_tokens` makes a new one
        weight = self.transformer.word_embed.weight
        is_symbol = isinstance(hidden, mx.sym.Symbol)
        word_weight = weight.var() if is_symbol else weight.data(hidden.context)
        rows = config.total_tokens_embeddings
        if config.n_special and not self._predict_special_tokens:
            rows = config.vocab_size
            word_weight = F.slice_axis(word_weight, axis=0, begin=0, end=rows)
        return self.fully_connected(F, hidden, word_weight, num_hidden=rows, flatten=False)

    def _lm_loss(self, F, hidden, labels, valid_length):
        hidden = F.reshape(hidden, shape=(-1, 0, 0), reverse=True)  # (N, L, C)
        hidden = F.slice_axis(hidden, axis=1, begin=0, end=-1)
        labels = F.reshape(labels, shape=(-1, 0), reverse=True)  # (N, L)
        if valid_length is not None:
            valid_length = F.reshape(valid_length, shape=(-1,))  # (N,)
        labels = without_padding(F, labels, valid_length)
        labels = F.slice_axis(labels, axis=1, begin=1, end=None)
        return cross_entropy(F, self.token_scores(F, hidden), labels)


class DecoderLM(Stepwise, DecoderTask):
    """A decoder with a language model head: the product with the word embedding.

    Parameters
    ----------
    transformer : DecoderModel or its configuration
        A model is used as it is and shared; a configuration makes a new one.
    predict_special_tokens : bool
        Whether the scores include the special tokens after the vocabulary.
    **options
        For the new model, such as ``output_attentions=True``.

    Inputs
    ------
    words, token_types, valid_length, position_ids, past, head_mask
        See `DecoderModel`.
    lm_labels : (..., length), optional
        Token ids, usually `words`: the score at position i is compared with the label at position i
        + 1. -1 and labels after the valid length are ignored.

    Outputs
    -------
    With labels the loss, (1,). Without, the scores (..., length, tokens), and the presents if the
    family's model has them. With `output_attentions` the attentions follow. Several are a list.
    """

    label_inputs = {'lm_labels': (None, 'total_tokens_embeddings')}
    generates_in_onnx = True
    steps_class = DecoderSteps

    def get_steps(self):
        self._follow_changes()
        return super().get_steps()

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
    ):
        encoded = self.encode(words, token_types, valid_length, position_ids, past, head_mask)
        if lm_labels is not None:
            loss = self._lm_loss(F, encoded.hidden, lm_labels, valid_length)
            return self.join_outputs(loss, encoded.attentions)
        scores = self.token_scores(F, encoded.hidden)
        return self.join_outputs(scores, encoded.presents, encoded.attentions)


class DecoderDoubleHeads(DecoderTask):
    """A decoder with a language model head and a multiple choice head.

    The multiple choice head is a dense layer on the hidden state of one token of each choice.

    Inputs
    ------
    words : (batch, choices, length)
    mc_token_ids : (batch, choices)
        Position of the token in each choice that the multiple choice head reads, usually a special
        token at the end.
    token_types, valid_length, position_ids, lm_labels, past, head_mask
        See `DecoderLM`.
    mc_labels : (batch,), optional
        The right choices; -1 is ignored.

    Outputs
    -------
    With labels the losses, (1,) each: the language model's, the multiple choice's, or both.
    Without, the scores (batch, choices, length, tokens), the choices' (batch, choices), and the
    presents if the family's model has them. With `output_attentions` the attentions follow.
    Several are a list.
    """

    label_inputs = {'lm_labels': (None, 'total_tokens_embeddings'), 'mc_labels': (1, NUM_CHOICES)}
    labels_together = False
    export_inputs = ('words', 'mc_token_ids', 'valid_length')
    word_axes = 3

    def __init__(self, transformer, predict_special_tokens=True, **options):
        super().__init__(transformer, predict_special_tokens, **options)
        config = self.config
        with self.name_scope():
            # a unit is dropped in all choices alike, as in OpenAI's code
            self.mc_dropout = nn.Dropout(config.mc_pdrop, axes=(1,))
            self.mc_head = Dense(1, prefix='mc_head_', **self.dense_options)

    def check(self, inputs):
        words = inputs['words']
        check_array('words', words, (-1, -1, -1))
        super().check(inputs)
        check_array('mc_token_ids', inputs['mc_token_ids'], words.shape[:2], 0, words.shape[2])

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
    ):
        encoded = self.encode(words, token_types, valid_length, position_ids, past, head_mask)
        losses = []
        if lm_labels is not None:
            losses.append(self._lm_loss(F, encoded.hidden, lm_labels, valid_length))
        if lm_labels is None or mc_labels is not None:
            flat = F.reshape(encoded.hidden, shape=(-3, 0, 0))  # (batch * choices, length, units)
            chosen = vectors_at(F, flat, F.reshape(mc_token_ids, shape=(-1,)))
            ends = {'lhs_begin': 0, 'lhs_end': 1, 'rhs_begin': 0, 'rhs_end': 2}
            chosen = F.reshape_like(chosen, mc_token_ids, **ends)  # (batch, choices, units)
            choices = F.reshape(self.mc_head(self.mc_dropout(chosen)), shape=(0, 0))
        if mc_labels is not None:
            losses.append(cross_entropy(F, choices, mc_labels))
        if losses:
            return self.join_outputs(*losses, encoded.attentions)
        scores = self.token_scores(F, encoded.hidden)
        return self.join_outputs(scores, choices, encoded.presents, encoded.attentions)
