"""What BERT's heads share."""

from dataclasses import replace

import mxnet as mx
from mxnet.gluon import nn

from model_zoo.blocks.task import TaskMixin
from model_zoo.errors import InputError
from model_zoo.layers.precision import Dense
from model_zoo.util.checks import check_range, check_shape

from ..block import BertBlock
from ..model import BertModel

__all__ = ['BertTask', 'check_labels']


def check_labels(name, labels, like, axes, size=None):
    """Check that `labels` has the first `axes` sizes of `like`, and classes below `size`."""
    if labels is None or isinstance(like, mx.sym.Symbol):  # in a graph there are no values
        return
    check_shape(name, labels, like.shape[:axes])
    if size is not None:
        check_range(name, labels, -1, size)


class BertTask(TaskMixin, BertBlock):
    """A `BertModel` with something on top.

    Parameters
    ----------
    bert : BertConfig or BertModel
        A model is used as it is and shared; a configuration makes a new one.
    **options
        For the new model, such as ``output_attentions=True``. With `output_attentions`, the
        result is a list of the head's own result and the attentions.
    """

    backbone = 'bert'
    model_class = BertModel
    parts = {'use_pooler': False}
    #: of the configuration: the usual rate before the head's dense layer
    dropout_field = 'hidden_dropout_prob'

    def __init__(self, bert, prefix=None, params=None, **options):
        super().__init__(bert, prefix=prefix, params=params, **options)
        self._check_parts()
        # the same dict, so that it tells of the heads that were pruned by another owner of `bert`
        self.config.pruned_heads = self.base.config.pruned_heads

    def encode(self, words, token_types, *others):
        types = [token_types] if self.takes_token_types else []
        return super().encode(words, *types, *others)

    def _check_parts(self):
        has = {
            'use_pooler': self.base.has_pooler,
            'use_decoder': self.base.has_decoder,
            'use_classifier': self.base.has_classifier,
        }
        lacking = [name for name, needed in self.parts.items() if needed and not has[name]]
        if lacking:
            raise InputError(
                f'{type(self).__name__} needs a {self.model_class.__name__} with '
                + ', '.join(f'{name}=True' for name in lacking)
            )

    def _set_num_labels(self, num_labels):
        if num_labels is not None:
            # a new configuration, which checks the value
            self.config.num_labels = replace(self.config, num_labels=num_labels).num_labels
        self.num_labels = self.config.num_labels

    def _dense(self, units, prefix='classifier_'):
        """The head's dense layer."""
        return Dense(
            units,
            in_units=self.config.hidden_size,
            flatten=False,
            weight_initializer=mx.init.Normal(self.config.initializer_range),
            prefix=prefix,
        )

    def _make_classifier(self, units, dropout):
        """The head's dense layer as `classifier`, and the `dropout` before it."""
        usual = getattr(self.config, self.dropout_field)
        self.dropout_rate = usual if dropout is None else dropout
        with self.name_scope():
            self.dropout = nn.Dropout(self.dropout_rate)
            self.classifier = self._dense(units)

    def _pool(self, F, encoded):
        """What the classifier of a sequence gets (B, C)."""
        return self.dropout(encoded.pooled)
