"""The base of the families' configurations."""

import copy
import dataclasses
import functools
import json
import os
import typing
from operator import attrgetter
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from ..errors import InputError, UnknownNameError, ZooError, reporting
from ..layers.cells import ACTIVATIONS
from ..util.fields import Count, Number, Text, requirement
from ..util.files import write_json
from ..util.reading import read_json

__all__ = ['PYTORCH_FORMATS', 'AttentionConfig', 'Config', 'check_field']

#: formats whose folders have config.json as transformers writes it
PYTORCH_FORMATS = ('huggingface', 'pytorch', 'pytorch_pretrained_bert')
_Rate = Annotated[Number, Field(ge=0, lt=1)]
# 0 and float32's normal numbers, as which MXNet reads the operators' arguments
_Amount = Annotated[Number, Field(ge=0, le=0)] | Annotated[Number, Field(ge=1.2e-38, le=3.4e38)]
# unknown fields that are read somewhere -> their types
_EXTRAS = {'architectures': list[str], 'sbert_ce_default_activation_function': str}
_EXTRAS.update(dict.fromkeys(('id2label', 'label2id', 'sentence_transformers'), dict))


@dataclasses.dataclass
class Config:
    """Hyper-parameters of a model, with the field names of the originals' JSON files.

    A subclass is a dataclass: it lists the fields with their defaults. Pydantic checks their types:
    a plain int is positive, a float isn't negative, and a float with "drop" in its name is a rate.
    Unknown fields of a file (such as ``"transformers_version"``) are kept in `extras` and written
    back, so that no field is lost.

    As in pytorch-pretrained-bert, `vocab_size` may be the path of a file with the fields. It may
    also be named ``vocab_size_or_config_json_file``.
    """

    #: the family's "model_type" in transformers' files
    model_type = None
    #: fields of other programs -> the only value with which the family's blocks compute
    fixed = {}
    #: fields of other programs -> this class's fields
    other_names = {}
    # of models that have them
    num_layers = units = num_heads = pruned_heads = None

    _: dataclasses.KW_ONLY
    vocab_size_or_config_json_file: dataclasses.InitVar[Any] = None

    def __post_init__(self, vocab_size_or_config_json_file):
        values = vars(self)
        if vocab_size_or_config_json_file is not None:
            self.vocab_size = vocab_size_or_config_json_file
        if isinstance(values.get('vocab_size'), (str, os.PathLike)):
            values.update(vars(self.from_json_file(self.vocab_size)))
            return
        self.extras = {}
        types = typing.get_type_hints(type(self), include_extras=True)
        for field in dataclasses.fields(self):
            check_field(field.name, values[field.name], types[field.name])

    @classmethod
    def field_value(cls, field, value):
        """Return the field's value for a GluonNLP hyper-parameter; usually the same."""
        return value

    @classmethod
    def from_dict(cls, values):
        """Build a configuration from a file's fields; unknown ones go to `extras`."""
        values = dict(values)
        family = values.pop('model_type', None) or cls.model_type
        if family != (cls.model_type or family):
            raise InputError(f'model_type is {family!r}, and must be {cls.model_type!r}')
        for theirs, ours in cls.other_names.items():
            if theirs in values:
                values.setdefault(ours, values[theirs])
        names = {field.name for field in dataclasses.fields(cls)}
        for name, value in cls.fixed.items():
            if values.get(name, value) != value:
                problem = f'is {values[name]!r:.80}; only {value!r} is supported'
                raise InputError(problem, field=name)
        labels = values.get('id2label')  # Hugging Face's files have no other number
        if 'num_labels' in names and 'num_labels' not in values and isinstance(labels, dict):
            values['num_labels'] = len(labels)
        check_field('vocab_size', values.get('vocab_size', 1), int)  # not the path of another file
        config = cls(**{name: value for name, value in values.items() if name in names})
        known = {*names, *cls.other_names}
        config.extras = {name: value for name, value in values.items() if name not in known}
        for name, kind in _EXTRAS.items():
            check_field(name, config.extras.get(name), kind | None)
        return config

    @classmethod
    def from_json_file(cls, path):
        """Read a configuration such as ``bert_config.json`` or ``config.json``."""
        values = read_json(path, 'the configuration', dict)
        with reporting(f'the configuration {os.fspath(path)!r}', errors=ZooError):
            return cls.from_dict(values)

    #: rows of the embedding: the number of tokens that the model knows
    embedding_rows = property(attrgetter('vocab_size'))

    def to_dict(self):
        """Return a new dict with the fields, and the unknown ones of `from_dict`."""
        return {**copy.deepcopy(self.extras), **dataclasses.asdict(self)}

    def changed(self, fields):
        """Return a configuration with other values of some fields."""
        return type(self).from_dict({**self.to_dict(), **fields})

    def to_format(self, format, architecture=None):
        """Return the name and the fields of a format's file; `architecture` is a block's class."""
        named = {'model_type': self.model_type, 'architectures': architecture and [architecture]}
        if format in ('tensorflow', 'numpy'):
            named = {}
        said = {name: value for name, value in named.items() if value is not None}
        return 'config.json', {**self.to_dict(), **said}

    def to_json_string(self):
        """Return the configuration as indented JSON, with its keys sorted."""
        return json.dumps(self.to_dict(), indent=2, sort_keys=True) + '\n'

    def to_json_file(self, path, architecture=None):
        """Write the configuration and the family's name to `path`, completely or not at all."""
        write_json(path, self.to_format('native', architecture)[1])


def check_field(name, value, kind):
    """Return a field's value as a type, or raise InputError; see `Config`."""
    usual = {int: Count, float: _Rate if 'drop' in name else _Amount, str: Text}
    try:
        return _adapter(usual.get(kind, kind)).validate_python(value)
    except ValidationError as error:
        problem = requirement(error.errors()[-1]['msg'])
        raise InputError(f'{name} is {value!r:.80}; {problem}') from None


@functools.lru_cache(None)
def _adapter(kind):
    return TypeAdapter(kind, config={'arbitrary_types_allowed': True})


@dataclasses.dataclass
class AttentionConfig(Config):
    """A configuration of layers with attention heads; some heads may be pruned.

    A subclass has the field `pruned_heads`, and fields or properties `num_layers`, `num_heads`,
    `units`, `intermediate_size` and `dropout`, because the families' files name these differently.

    Attributes
    ----------
    head_size : int
        Units of one attention head.
    """

    fixed = {'tie_word_embeddings': True, 'add_cross_attention': False}
    #: name of the layers' activation function
    activation = 'gelu'
    #: rate on the attention probabilities
    attention_dropout = property(attrgetter('dropout'))
    layer_norm_eps = 1e-5
    #: standard deviation of the normal initializer
    initializer_range = 0.02
    #: whether the dense layer of the masked language model's head has a bias
    transform_bias = True

    def __post_init__(self, vocab_size_or_config_json_file):
        super().__post_init__(vocab_size_or_config_json_file)
        UnknownNameError.check('activation', self.activation, ACTIVATIONS)
        self.head_size, rest = divmod(self.units, self.num_heads)
        if rest:
            raise InputError(f'{self.units} units are not a multiple of {self.num_heads} heads')
        given, self.pruned_heads = self.pruned_heads, {}
        if given:
            self.pruned_heads = self.add_pruned(given)

    def to_format(self, format, architecture=None):
        if self.pruned_heads and format in ('tensorflow', 'numpy'):
            raise InputError(f'the format {format!r} has no place for pruned heads')
        return super().to_format(format, architecture)

    def kept_heads(self, layer):
        """Return the heads that `layer` still has, by their original numbers."""
        pruned = set(self.pruned_heads.get(layer, ()))
        return [head for head in range(self.num_heads) if head not in pruned]

    def layers_like(self, layer):
        """Return the layers with the same parameters as `layer`, and itself."""
        return [layer]

    def add_pruned(self, heads_to_prune):
        """Return `pruned_heads` with more heads."""
        merged = {layer: set(heads) for layer, heads in self.pruned_heads.items()}
        heads_to_prune = check_field('pruned_heads', heads_to_prune, dict[int, list[int]])
        for layer, heads in heads_to_prune.items():
            if not 0 <= layer < self.num_layers:
                raise InputError(f'there is no layer {layer}: the model has {self.num_layers}')
            wrong = [head for head in heads if not 0 <= head < self.num_heads]
            if wrong:
                raise InputError(f'layer {layer} has no head {wrong[0]}: it has {self.num_heads}')
            merged.setdefault(layer, set()).update(heads)
            if len(merged[layer]) == self.num_heads:
                raise InputError(f'layer {layer} would be left without heads')
        return {layer: sorted(heads) for layer, heads in merged.items() if heads}
