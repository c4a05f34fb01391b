"""ALBERT (Lan et al. 2020): BERT whose layers share parameters, on sentence pieces."""

import functools

from mxnet.gluon import nn

from model_zoo.checkpoint.mapping import cell_layers, layer_rules
from model_zoo.layers.cells import EncoderCell, EncoderStack

from . import heads, variants
from .config import AlbertConfig
from .mapping import huggingface_mapping
from .model import BertModel
from .roberta_tokenizer import AlbertTokenizer

_NAMES = {
    'pooler.dense': 'pooler',
    'cls.predictions.transform': 'predictions',
    'cls.predictions': 'predictions',
    'cls.seq_relationship': 'sop_classifier.classifier',
}
_CELLS = cell_layers(
    'encoder.layers.{i}.{i}.',
    'encoder.albert_layer_groups.{i}.albert_layers.{i}.',
    'attention.query attention.key attention.value attention.dense attention.LayerNorm ffn '
    'ffn_output full_layer_layer_norm',
)


@functools.lru_cache(None)
def _mappings(head, has_dropout):
    outside = 'predictions.', 'sop_classifier.'
    dense = layer_rules({'encoder.project': 'encoder.embedding_hidden_mapping_in'})
    options = {'after': dense, 'cells': _CELLS}
    return {'huggingface': huggingface_mapping('albert', _NAMES, outside, **options)}


class SharedStack(EncoderStack):
    """Groups of layers, each of which computes several times."""

    def __init__(self, config):
        nn.HybridSequential.__init__(self, prefix='')
        self._config = config
        with self.name_scope():
            for layer in range(config.num_layers):
                group, inner = config.cell_of(layer)
                if group == len(self):
                    self.add(nn.HybridSequential(prefix=''))
                if inner == len(self[group]):
                    self[group].add(EncoderCell(config, layer))

    def cells(self):
        layers = map(self._config.cell_of, range(self._config.num_layers))
        return [self[group][inner] for group, inner in layers]


class AlbertEncoder(variants.ProjectingEncoder):
    stack_class = SharedStack
    always_projects = True


class AlbertBlock:
    config_class = AlbertConfig
    make_mappings = staticmethod(_mappings)
    dropout_field = 'classifier_dropout_prob'


class AlbertModel(AlbertBlock, BertModel):
    """Like `BertModel`; the classifier says whether two sentences are in their order."""

    encoder_class = AlbertEncoder


class AlbertForPreTraining(AlbertBlock, heads.BertForPreTraining):
    """Like `BertForPreTraining`, with the order of sentences.

    The next sentence's label is 0 if the sentences are in their order, and 1 if they are swapped.
    """

    pretraining_terms = ('mlm', 'sop')


#: what ``open_model`` knows of ALBERT
ALBERT = variants.add_family('albert', AlbertModel, AlbertTokenizer)
