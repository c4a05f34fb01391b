"""Parts that the variants of BERT share: blocks without token types, heads with a pooler."""

import sys

import mxnet as mx
from mxnet.gluon import nn

from model_zoo.layers.cells import ACTIVATIONS
from model_zoo.layers.precision import Dense
from model_zoo.registry import Family, register_family
from model_zoo.zoo import model_function

from .catalogue import FIXED, HPARAMS, OPTIONS
from .model import BertEncoder, BertModel


class Typeless:
    """A block without token types, which it accepts and leaves out, and mostly without a pooler."""

    optional_parts = ('decoder',)
    unused_inputs = ('token_types',)
    export_inputs = ('words', 'valid_length')


class TypelessModel(Typeless, BertModel):
    """A backbone without token types, with the inputs of GluonNLP's."""

    call_order = ('words', 'valid_length', 'masked_positions', 'head_mask', 'token_types')
    embeddings = {'word_embed': 'vocab_size'}

    def _embed(self, F, words, token_types):
        return self.word_embed(words)


class ProjectingEncoder(BertEncoder):
    """An encoder with a dense layer behind its embeddings, at least if these have other units."""

    always_projects = False

    def __init__(self, config, **kwargs):
        super().__init__(config, **kwargs)
        self.project = None
        if self.always_projects or config.embedding_units != config.units:
            with self.name_scope():
                initializer = mx.init.Normal(config.initializer_range)
                options = {'in_units': config.embedding_units, 'weight_initializer': initializer}
                self.project = Dense(config.units, prefix='project_', **options)

    def _embed(self, F, *inputs):
        x = super()._embed(F, *inputs)
        return x if self.project is None else self.project(x)


class OwnPooler:
    """A head on a sequence with a dense layer instead of the backbone's pooler."""

    parts = {'use_pooler': False}
    pooler_activation = 'tanh'
    #: whether there is a dropout before the dense layer, too
    drops_twice = True

    def _make_classifier(self, units, dropout):
        super()._make_classifier(units, dropout)
        if self.pooling is not None:  # instead of this layer
            return
        with self.name_scope():
            self.dense = Dense(self.config.units, prefix='dense_', **self.dense_options)
            self.activation = nn.HybridLambda(ACTIVATIONS[self.pooler_activation])

    def _pool(self, F, encoded, valid_length=None):
        x = F.slice_axis(encoded.sequence, axis=1, begin=0, end=1)
        x = F.reshape(x, shape=(0, -1))  # (B, C)
        x = self._drop_before(x)
        return self.dropout(self.activation(self.dense(x)))

    def _drop_before(self, x):
        return self.dropout(x) if self.drops_twice else x


#: a model's parts, a decoder and a classifier -> the task of the head with the same parts
_HEADS = {(True, True): 'pretraining', (True, False): 'masked_lm'}


def add_family(name, base, *tokenizers, hparams=HPARAMS, backbone=None):
    """Register a `Family` for BERT's scripts and embedding, with the heads in the base's module.

    They get the attribute with the backbone, `backbone` or the family's name, and its class.
    """
    found = [each for each in vars(sys.modules[base.__module__]).values() if hasattr(each, 'task')]
    tasks = {head.task: head for head in found if head.__module__ == base.__module__}
    for head in tasks.values():
        head.model_class, head.backbone = base, backbone or name
    names = {parts: tasks[task].__name__ for parts, task in _HEADS.items() if task in tasks}
    base.huggingface_names = names
    family = Family(name, base, tasks, tokenizers, hparams, fixed=FIXED, variant_of='bert')
    return register_family(family)


def add_model(family, name, title, decoder=None, pooler=False):
    """Register a function that builds a model of a family like BERT; returns it."""
    parts = {'use_decoder': decoder, 'use_pooler': pooler, 'use_classifier': False}
    options = {**OPTIONS, **parts}
    return model_function(family, name, title, family.base.__module__, options, ('decoder',))


def public_names(family):
    """Return the names that a family's module offers: its classes, itself and its models."""
    module = family.base.__module__
    classes = family.base.config_class, *family.blocks
    names = [each.__name__ for each in classes if each.__module__ == module]
    return [*names, family.name.upper(), *family.base.architectures]
