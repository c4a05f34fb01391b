"""What the models like BERT share: blocks without token types, heads that pool for themselves."""

from mxnet.gluon import nn

from model_zoo.layers.feed_forward import Activation
from model_zoo.opening import build_model
from model_zoo.registry import Family, register_family, register_model

from .catalogue import HPARAMS
from .model import BertModel

__all__ = [
    'OwnPooler', 'Typeless', 'TypelessModel', 'VariantBlock', 'variant_family', 'variant_model',
]  # fmt: skip


class VariantBlock:
    """A block whose parameters have other names in other programs' files than BERT's."""

    #: what the head of the class is called, and that of another class otherwise
    head_rules = ()

    @staticmethod
    def make_mappings(head_rules, has_dropout):
        """Name of a format -> `Mapping`; see `gluonnlp_mapping` and `huggingface_mapping`."""
        raise NotImplementedError

    @classmethod
    def name_maps(cls, config):
        # GluonNLP's names depend on whether there is a dropout, which a file doesn't say
        other = cls.make_mappings(cls.head_rules, True)
        others = {f'{name}, dropout': mapping for name, mapping in other.items()}
        return {**cls.make_mappings(cls.head_rules, False), **others}

    def mappings(self):
        return self.make_mappings(self.head_rules, bool(getattr(self, 'dropout_rate', 0)))


class Typeless:
    """A block without token types: it accepts them and leaves them out."""

    takes_token_types = False
    export_inputs = ('words', 'valid_length')


class TypelessModel(Typeless, BertModel):
    """A backbone without token types, with the inputs of GluonNLP's."""

    def __call__(
        self, words, valid_length=None, masked_positions=None, head_mask=None, token_types=None
    ):
        return super().__call__(words, None, valid_length, masked_positions, head_mask)

    def _make_embeddings(self, initializer):
        self.word_embed = nn.Embedding(
            self.config.vocab_size,
            self.config.embedding_units,
            weight_initializer=initializer,
            prefix='word_embed_',
        )

    def _embed(self, F, words, token_types):
        return self.word_embed(words)


class OwnPooler:
    """A head on a sequence with a dense layer of its own in the place of the backbone's pooler."""

    parts = {'use_pooler': False}
    pooler_activation = 'tanh'
    #: whether there is a dropout before the dense layer, too
    drops_twice = True

    def _make_classifier(self, units, dropout):
        super()._make_classifier(units, dropout)
        with self.name_scope():
            self.dense = self._dense(self.config.hidden_size, prefix='dense_')
            self.activation = Activation(self.pooler_activation)

    def _pool(self, F, encoded):
        x = F.slice_axis(encoded.sequence, axis=1, begin=0, end=1)
        x = F.reshape(x, shape=(0, -1))  # (B, C)
        x = self.dropout(x) if self.drops_twice else x
        return self.dropout(self.activation(self.dense(x)))


def variant_family(name, base, open_tokenizer, vocab_kinds, hparams=HPARAMS, **tasks):
    """Register a `Family` that BERT's scripts and embedding take; the arguments are its own."""
    return register_family(
        Family(name, base, tasks, open_tokenizer, vocab_kinds, hparams, variant_of='bert')
    )


def variant_model(family, name, title, decoder=None):
    """Register a function that builds a model of a family like BERT; returns it.

    Parameters
    ----------
    family : Family
    name : str
        A key of the family's architectures.
    title : str
        First line of the function's documentation.
    decoder : bool, optional
        The default of `use_decoder`; None is what the weights have.
    """

    def build(
        dataset_name=None, vocab=None, pretrained=True, ctx=None, use_decoder=decoder, root=None,
        hparam_allow_override=False, *, num_layers=None, units=None, embed_size=None,
        hidden_size=None, num_heads=None, max_length=None, activation=None, layer_norm_eps=None,
        dropout=None, use_pooler=False, pretrained_allow_missing=False, ignore_extra=None,
        output_attention=False, output_all_encodings=False, keep_multihead_output=False,
    ):  # fmt: skip
        options = {
            'use_pooler': use_pooler,
            'use_decoder': use_decoder,
            'output_attentions': output_attention,
            'output_all_encodings': output_all_encodings,
            'keep_multihead_output': keep_multihead_output,
        }
        return build_model(
            family, name, dataset_name, vocab, pretrained, ctx, root, hparam_allow_override,
            ('decoder',) if pretrained_allow_missing else (), options, num_layers=num_layers,
            units=units, embed_size=embed_size, hidden_size=hidden_size, num_heads=num_heads,
            max_length=max_length, activation=activation, layer_norm_eps=layer_norm_eps,
            dropout=dropout,
        )  # fmt: skip

    build.__name__ = build.__qualname__ = name
    build.__module__ = family.base.__module__
    build.__doc__ = f"""{title}

    Parameters
    ----------
    dataset_name, vocab, pretrained, ctx, root, use_decoder, pretrained_allow_missing, \
ignore_extra, hparam_allow_override, output_attention, output_all_encodings, keep_multihead_output
        See `bert.zoo.bert_12_768_12`.
    use_pooler : bool, default False
        Whether to have the pooler, if the model has one.
    num_layers, units, embed_size, hidden_size, num_heads, max_length, activation, \
layer_norm_eps, dropout : optional
        Hyper-parameters; to override them needs `hparam_allow_override`, except `dropout`.

    Returns
    -------
    ({family.base.__name__}, gluonnlp.Vocab)
    """
    return register_model(build)
