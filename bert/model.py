"""BERT's encoder, with GluonNLP's interface."""

from operator import attrgetter

import mxnet as mx
from mxnet.gluon import HybridBlock, nn

from model_zoo.blocks.attention_block import AttentionBlock
from model_zoo.errors import InputError
from model_zoo.layers.cells import ACTIVATIONS, EncoderStack
from model_zoo.layers.graphs import uses_standard_operators
from model_zoo.layers.precision import Dense, LayerNorm, MixedPrecision
from model_zoo.layers.sequences import Mask, batch_major, bounded
from model_zoo.util.arrays import check_array

from .config import BertConfig
from .mapping import bert_mappings

__all__ = ['BertBlock', 'BertModel']

#: values of the input `output_all_encoded_layers`, as lists without arrays
_ALL_LAYERS, _LAST_LAYER = [], [[]]


def _example_mask(shape, random):
    """Make an attention mask with holes and at least one token in each row."""
    mask = random.randint(0, 2, shape)
    mask[..., 0] = 1
    return mask


class BertBlock(AttentionBlock):
    """Base of `BertModel` and of the task blocks."""

    config_class = BertConfig
    optional_parts = ('pooler', 'decoder', 'classifier')
    dropout_rate = 0  # of a head, before its dense layer
    #: rules for the names of the head's parameters, before those that all classes share
    head_rules = ()
    #: ``make_mappings(head_rules, has_dropout)``: `Mapping` by format
    make_mappings = staticmethod(bert_mappings)

    @classmethod
    def name_maps(cls, config):
        # GluonNLP's names depend on whether there is a dropout, which a file doesn't say
        plain, other = (cls.make_mappings(cls.head_rules, has) for has in (False, True))
        more = {f'{name}, dropout': other[name] for name in other if other[name] != plain[name]}
        return {**plain, **more}

    def mappings(self):
        return self.make_mappings(self.head_rules, bool(self.dropout_rate))

    @property
    def fuses_in_onnx(self):
        """Whether ONNX Runtime's optimizer knows the graph: it has one text per example."""
        return self.word_axes == 2

    #: the most positions that the model takes
    context_length = property(attrgetter('config.position_rows'))

    def example_makers(self, batch_size, length, random):
        types, rows = self.config.type_vocab_size, self._example_rows(batch_size)
        return {
            **super().example_makers(batch_size, length, random),
            'token_types': lambda: random.randint(0, types, (*rows, length)),
            'attention_mask': lambda: Mask([_example_mask((*rows, length), random)]),
            'masked_positions': lambda: random.randint(0, length, (batch_size, min(4, length))),
        }

    def check(self, inputs):
        words, valid, positions = map(inputs.get, ('words', 'valid_length', 'masked_positions'))
        if isinstance(valid, Mask):  # a head has checked the inputs
            return
        is_mask = getattr(valid, 'ndim', 1) > 1 and valid.ndim == getattr(words, 'ndim', 0)
        self.check_text(words, None if is_mask else valid)
        if is_mask:
            check_array('valid_length', valid, words.shape, 0, 2)
            inputs['valid_length'] = Mask([valid])
        types, count = inputs['token_types'], self.config.type_vocab_size
        if types is not None:
            check_array('token_types', types, words.shape, 0, count)
        if positions is not None:
            if not self.base.has_decoder:
                raise InputError('masked_positions needs a model with use_decoder=True')
            rows, length = words.shape
            check_array('masked_positions', positions, (rows, -1), 0, length)
        if inputs['head_mask'] is not None:
            inputs['head_mask'] = self.full_head_mask(inputs['head_mask'])


class BertEncoder(HybridBlock):
    """Position embedding, normalization and the encoder layers."""

    stack_class, norm_class = EncoderStack, LayerNorm
    #: whether vectors of positions are added
    has_positions = True

    def __init__(self, config, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        units, scale = config.embedding_units, config.initializer_range
        with self.name_scope():
            if self.has_positions:
                shape, init = (config.position_rows, units), mx.init.Normal(scale)
                self.position_weight = self.params.get('position_weight', shape=shape, init=init)
            self.norm = self.norm_class(epsilon=config.layer_norm_eps, in_channels=units)
            self.dropout = nn.Dropout(config.dropout)
            self.layers = self.stack_class(config)

    def hybrid_forward(
        self, F, x, valid_length=None, head_mask=None, rows=None, position_weight=None
    ):
        standard = uses_standard_operators()
        x = x if standard else F.transpose(x, axes=(1, 0, 2))  # (L, B, C)
        x = self._embed(F, x, position_weight, rows)
        states, attentions = self.layers(x, valid_length, head_mask)
        if standard:
            return states, attentions
        return [batch_major(F, x, valid_length) for x in states], attentions

    def _embed(self, F, x, position_weight, rows):
        """Return the first layer's input (L, B, units) for embeddings (L, B, embedding_units)."""
        if not self.has_positions:
            return self.dropout(self.norm(x))
        standard = uses_standard_operators()
        if standard or rows is not None:
            if rows is None:
                rows = F.expand_dims(F.contrib.arange_like(x, axis=1), 0)  # (1, L)
            table = dict(zip(('input_dim', 'output_dim'), self.position_weight.shape))
            positions = F.Embedding(rows, position_weight, **table)  # (B, L, C)
            if not standard:
                positions = F.transpose(positions, axes=(1, 0, 2))
            return self.dropout(self.norm(F.broadcast_add(x, positions)))
        positions = F.slice_like(position_weight, x, axes=(0,))  # (L, C)
        x = F.broadcast_add(x, F.expand_dims(positions, 1))
        return self.dropout(self.norm(x))


class Transform(HybridBlock):
    """A dense layer, an activation and a normalization."""

    norm_class = LayerNorm

    def __init__(self, config, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        units, init = config.embedding_units, mx.init.Normal(config.initializer_range)
        options = {'use_bias': config.transform_bias, 'weight_initializer': init}
        with self.name_scope():
            self.dense = Dense(units, in_units=config.units, **options)
            self.activation = nn.HybridLambda(ACTIVATIONS[config.decoder_act])
            self.norm = self.norm_class(epsilon=config.layer_norm_eps, in_channels=units)

    def hybrid_forward(self, F, x):
        return self.norm(self.activation(self.dense(x)))


class BertDecoder(MixedPrecision, Transform):
    """The masked language model head: transform, and product with the word embedding."""

    def __init__(self, config, prefix=None, params=None):
        super().__init__(config, prefix=prefix, params=params)
        self._vocab_size = config.vocab_size
        with self.name_scope():
            self.bias = self.params.get('bias', shape=(config.vocab_size,), init='zeros')

    def hybrid_forward(self, F, x, weight, bias):
        x = super().hybrid_forward(F, x)
        return self.fully_connected(F, x, weight, bias, num_hidden=self._vocab_size, flatten=False)


class BertModel(BertBlock):
    """BERT: a bidirectional transformer encoder.

    Parameters
    ----------
    config : BertConfig
    use_pooler : bool, optional
        Whether the model has the pooler: a dense layer with tanh on the first token. Default: True;
        some variants of BERT never have it.
    use_decoder : bool
        Whether the model has the masked language model head.
    use_classifier : bool
        Whether the model has the next sentence classifier, which needs the pooler.
    output_attentions, output_all_encodings, keep_multihead_output : bool
        See `AttentionBlock`, and the outputs.

    Inputs
    ------
    words : (batch, length)
        Token ids.
    token_types : (batch, length), optional
        0 for the first sentence, 1 for the second. None means zeros.
    valid_length : (batch,), or (batch, length), optional
        None means that nothing is padding. An array of the words' shape is an attention mask: 1 for
        tokens to attend to, 0 elsewhere, in any order, so padding may come first.
    masked_positions : (batch, positions), optional
        Where to predict words; None means everywhere. Only with `use_decoder`.
    head_mask : (heads,) or (layers, heads), optional
        Factors of the heads' attention probabilities: 1 keeps, 0 turns off.
    output_all_encoded_layers : bool, optional
        `output_all_encodings` for this call.

    Outputs
    -------
    A list of the requested outputs, in this order; a single one isn't wrapped.

    sequence : (batch, length, units), or with `output_all_encodings` a list of them, one per layer
        Zero after the valid length.
    attentions : list of (batch, heads, length, length)
        With `output_attentions`.
    pooled : (batch, units)
    next_sentence : (batch, 2)
        Unnormalized scores: 0 is "the second follows the first".
    masked_lm : (batch, positions, vocab_size)
        Unnormalized scores.

    References
    ----------
    Devlin et al., "BERT", section 3; google-research/bert's modeling.py; the interface follows
    ``gluonnlp.model.BERTModel``.
    """

    outputs = ('sequence', 'attentions', 'pooled', 'next_sentence', 'masked_lm')
    graph_options = ('output_all_encodings',)
    #: tables of embeddings -> their sizes in the configuration
    embeddings = {'word_embed': 'vocab_size', 'token_type_embed': 'type_vocab_size'}
    #: units, for GluonNLP's heads
    _units = property(attrgetter('config.hidden_size'))
    encoder_class, decoder_class = BertEncoder, BertDecoder
    #: has a decoder, has a classifier -> the class of transformers with the same parts
    huggingface_names = {
        (True, True): 'BertForPreTraining',
        (True, False): 'BertForMaskedLM',
        (False, True): 'BertForNextSentencePrediction',
    }

    def __init__(self, config, use_pooler=None, use_decoder=False, use_classifier=False, **options):
        use_pooler = 'pooler' in self.optional_parts if use_pooler is None else use_pooler
        parts = {'pooler': use_pooler, 'decoder': use_decoder, 'classifier': use_classifier}
        for part in parts.keys() - self.optional_parts:
            if parts[part]:
                raise InputError(f'use_{part}=True: a {type(self).__name__} has no {part}')
        if use_classifier and not use_pooler:
            raise InputError('use_classifier=True needs use_pooler=True')
        super().__init__(config, **options)
        config = self.config
        self.has_pooler = use_pooler
        self.has_decoder = use_decoder
        self.has_classifier = use_classifier
        with self.name_scope():
            for name, size in self.embeddings.items():
                sizes, init = (getattr(config, size), config.embedding_units), self.initializer
                embedding = nn.Embedding(*sizes, weight_initializer=init, prefix=f'{name}_')
                setattr(self, name, embedding)
            self.encoder = self.encoder_class(config, prefix='encoder_')
            if use_pooler:
                options = {**self.dense_options, 'activation': 'tanh'}
                self.pooler = Dense(config.units, prefix='pooler_', **options)
            if use_classifier:
                self.classifier = Dense(2, prefix='classifier_', **self.dense_options)
            if use_decoder:
                self.decoder = self.decoder_class(config, prefix='decoder_')
                self.word_weight = self.word_embed.weight  # the decoder's weight is the same

    def _embed(self, F, words, token_types):
        """Return the encoder's input, (B, L, C)."""
        if token_types is None:
            token_types = F.zeros_like(words)
        return self.word_embed(words) + self.token_type_embed(token_types)

    def _table_rows(self, F, words, valid_length):
        """Return the rows of the position table (B, L), or None for 0, 1, 2, ..."""
        return

    @property
    def output_names(self):
        """Names of the outputs, in their order."""
        has = True, self.output_attentions, self.has_pooler, self.has_classifier, self.has_decoder
        return [name for name, exists in zip(self.outputs, has) if exists]

    def run(self, *inputs):
        *inputs, all_layers = inputs
        if all_layers is not None:  # Gluon's graphs take nothing but arrays and lists of them
            all_layers = _ALL_LAYERS if all_layers else _LAST_LAYER
        return super().run(*inputs, all_layers)

    def hybrid_forward(
        self,
        F,
        words,
        token_types=None,
        valid_length=None,
        masked_positions=None,
        head_mask=None,
        output_all_encoded_layers=None,
        *,
        word_weight=None,
    ):
        if not uses_standard_operators():
            valid_length = bounded(F, valid_length, words)
        embedding = self._embed(F, words, token_types)  # (B, L, C)
        rows = self._table_rows(F, words, valid_length)
        states, attentions = self.encoder(embedding, valid_length, head_mask, rows)
        sequence = states[-1]
        pooled = next_sentence = masked_lm = None
        if self.has_pooler:
            first = F.slice_axis(sequence, axis=1, begin=0, end=1)  # (B, 1, C)
            pooled = self.pooler(F.reshape(first, shape=(0, -1)))  # (B, C)
        if self.has_classifier:
            next_sentence = self.classifier(pooled)  # (B, 2)
        if self.has_decoder:
            vectors = sequence
            if masked_positions is not None:
                vectors = self._gather(F, sequence, masked_positions)  # (B, M, C)
            masked_lm = self.decoder(vectors, word_weight)  # (B, M, V)
        all_layers = self.output_all_encodings
        if output_all_encoded_layers is not None:
            all_layers = output_all_encoded_layers == _ALL_LAYERS
        sequence = states if all_layers else sequence
        attentions = attentions if self.output_attentions else None
        return self.join_outputs(sequence, attentions, pooled, next_sentence, masked_lm)

    @staticmethod
    def _gather(F, sequence, positions):
        """Return the vectors at `positions` (B, M) of `sequence` (B, L, C): (B, M, C)."""
        rows = F.expand_dims(F.contrib.arange_like(positions, axis=0), 1)
        rows = F.broadcast_like(rows, positions)  # (B, M)
        index = F.stack(F.cast(rows, 'int32'), F.cast(positions, 'int32'), axis=0)  # (2, B, M)
        return F.gather_nd(sequence, index)

    @property
    def huggingface_name(self):
        """The class of transformers with the same parts."""
        parts = self.has_decoder, self.has_classifier
        return self.huggingface_names.get(parts, type(self).__name__)

    def attentions(self):
        """Return the layers' `SelfAttention`."""
        return self.encoder.layers.attentions()
