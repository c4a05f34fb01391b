"""Models of Pytorchic BERT (dhlee347/pytorchic-bert): configuration, initial values, files."""

import collections

import numpy as np

from bert import BertConfig, BertForPreTraining, BertModel
from model_zoo.checkpoint.torch_file import write_torch
from model_zoo.errors import CheckpointError

#: field of its model's JSON file -> this project's name, and the default
CONFIG_FIELDS = {
    'vocab_size': ('vocab_size', None),
    'dim': ('hidden_size', 768),
    'n_layers': ('num_hidden_layers', 12),
    'n_heads': ('num_attention_heads', 12),
    'dim_ff': ('intermediate_size', 3072),
    'p_drop_hidden': ('hidden_dropout_prob', 0.1),
    'p_drop_attn': ('attention_probs_dropout_prob', 0.1),
    'max_len': ('max_position_embeddings', 512),
    'n_segments': ('type_vocab_size', 2),
    'n_seg': ('type_vocab_size', 2),  # its name in 2018
}
_TRANSFORMER = 'transformer.'


def make_config(fields, vocab_size, **options):
    """Return the configuration of a model's JSON file.

    `fields` have the names of `CONFIG_FIELDS`. Missing fields have the original's defaults.
    """
    given = {ours: fields[name] for name, (ours, _) in CONFIG_FIELDS.items() if name in fields}
    values = {**dict(CONFIG_FIELDS.values()), **given}
    values['vocab_size'] = values['vocab_size'] or vocab_size
    return BertConfig(**values, **options)


def reset_parameters(model, seed, ctx=None):
    """Set a model's parameters to random values, as the original does at first.

    These are PyTorch's: embeddings are normal with deviation 1, dense layers uniform within the
    inverse root of their inputs. (The numbers differ from PyTorch's with the same seed.)
    """
    model.initialize(ctx=ctx)
    random = np.random.default_rng(seed)
    shapes = {name: array.shape for name, array in _tensors_of(model).items()}
    shapes.pop('decoder.weight', None)  # it is the word embedding
    tensors = {}
    for name, shape in shapes.items():
        if 'embed.' in name and name.endswith('.weight'):
            value = random.standard_normal(shape, np.float32)
        elif name.endswith(('.weight', '.bias')):
            inputs = shapes[name.rpartition('.')[0] + '.weight'][1]
            value = random.uniform(-1, 1, shape).astype(np.float32) / np.float32(inputs**0.5)
        else:  # layer norms, and the bias of the scores of words
            value = np.full(shape, name.endswith('.gamma'), np.float32)
        tensors[name] = value
    _load(model, tensors)


def load_model(model, path):
    """Load all parameters from ``model_steps_N.pt``, or another file that `read_tensors` reads."""
    model.load_parameters(path, cast_dtype=True)


def load_transformer(model, path):
    """Load the embeddings and layers alone, as the original does from a pretrained file.

    The file is a TensorFlow checkpoint, or another that `load_model` takes. Pooler and head keep
    their values.
    """
    ours = BertModel.read_weights(path, model.config).tensors
    parts = 'word_embed.', 'token_type_embed.', 'encoder.'
    ours = {name: array for name, array in ours.items() if name.startswith(parts)}
    loaded = _by_their_names(model, ours)
    tensors = _tensors_of(model)
    missing = [name for name in tensors if name.startswith(_TRANSFORMER) and name not in loaded]
    if missing:
        raise CheckpointError(f'{path} lacks parameters: {", ".join(missing[:20])}')
    _load(model, {**tensors, **loaded})


def save_model(model, path):
    """Write the parameters as the original does, for torch's ``load`` and `load_model`."""
    write_torch(path, collections.OrderedDict(_tensors_of(model)))


def _load(model, tensors):
    model.load_weights(model.read_weights(tensors, model.config))


def _by_their_names(model, tensors):
    name = 'pytorchic_pretraining' if isinstance(model, BertForPreTraining) else 'pytorchic'
    return model.mappings()[name].save(tensors, model.config, with_prefix=True)


def _tensors_of(model):
    return _by_their_names(model, model.own_tensors())
