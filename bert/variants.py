"""Parts that the variants of BERT share: blocks without token types, heads with a pooler."""

import sys

import mxnet as mx
from mxnet.gluon import nn

from model_zoo.layers.cells import ACTIVATIONS
from model_zoo.layers.precision import Dense
from model_zoo.registry import Family, register_family
from model_zoo.zoo import add_models

from .heads import TASKS
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
        return self.dropout(self.activation(self.dense(self._drop_before(x))))

    def _drop_before(self, x):
        return self.dropout(x) if self.drops_twice else x


#: a model's parts, a decoder and a classifier -> the task of the head with the same parts
_HEADS = {(True, True): 'pretraining', (True, False): 'masked_lm'}
#: tasks of BERT's heads that variants don't have, unless their module says so
_RARE = ('pretraining', 'next_sentence')


def add_family(name, base, *tokenizers, heads=TASKS, backbone=None):
    """Register a variant as a `Family` for BERT's scripts and embedding, and its models.

    The family has the heads of the base's module. For other tasks of `heads`, a dict of tasks and
    heads, a head like the given one is made; it has the first base of `base`, too. Heads get the
    attribute with the backbone, `backbone` or the family's name. The module gets what is made,
    and ``__all__``.
    """
    module = sys.modules[base.__module__]
    found = [each for each in vars(module).values() if getattr(each, 'task', None)]
    own = {head.task: head for head in found if head.__module__ == module.__name__}
    made = (task for task in heads if task in own or task not in _RARE)
    usual = {task: own.get(task) or _head_like(heads[task], base) for task in made}
    tasks = {**{task: own[task] for task in own if task not in usual}, **usual}
    for head in tasks.values():
        head.model_class, head.backbone = base, backbone or name
    names = {parts: tasks[task].__name__ for parts, task in _HEADS.items() if task in tasks}
    base.huggingface_names = names
    family = Family(name, base, tasks, tokenizers, variant_of='bert')
    models = add_models(family, module.__name__)
    classes = base.config_class, *family.blocks
    public = [each.__name__ for each in classes if each.__module__ == module.__name__]
    module.__all__ = [*public, name.upper(), *models]
    return register_family(family)


def _head_like(head, base):
    """Make a variant's head that differs from another one by its backbone alone."""
    theirs, ours = (cls.__name__.removesuffix('Model') for cls in (head.model_class, base))
    name, about = head.__name__.replace(theirs, ours), f'Like `{head.__name__}`.'
    made = type(name, (base.__bases__[0], head), {'__doc__': about, '__module__': base.__module__})
    setattr(sys.modules[base.__module__], name, made)
    return made
