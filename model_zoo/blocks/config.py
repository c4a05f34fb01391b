"""The base of the families' configurations."""

import copy
import dataclasses
import difflib
import json
import logging
import operator
import os
from operator import attrgetter

from ..errors import InputError, UnknownNameError, ZooError
from ..layers.cells import ACTIVATIONS
from ..util.files import write_json
from ..util.reading import read_json

__all__ = ['PYTORCH_FORMATS', 'AttentionConfig', 'Config', 'check_count']

_log = logging.getLogger(__name__)
#: formats whose folders have config.json as transformers writes it
PYTORCH_FORMATS = ('huggingface', 'pytorch', 'pytorch_pretrained_bert')
#: elements of an array
LARGEST_SIZE = 2**31 - 1
# of float32's normal numbers, as which MXNet reads the operators' arguments
_LEAST_FLOAT, _LARGEST_FLOAT = 1.2e-38, 3.4e38
# unknown fields that are read somewhere -> their types
_EXTRAS = {
    'architectures': list,
    'id2label': dict,
    'label2id': dict,
    'sentence_transformers': dict,
    'sbert_ce_default_activation_function': str,
}


class _ConfigType(type):
    """Lets configurations also take a file's path first, as pytorch-pretrained-bert's do."""

    def __call__(cls, *args, vocab_size_or_config_json_file=None, **kwargs):
        if vocab_size_or_config_json_file is not None:
            args = (vocab_size_or_config_json_file, *args)
        if args and isinstance(args[0], (str, os.PathLike)):
            return cls.from_json_file(args[0])  # which has all fields, as in the original
        return super().__call__(*args, **kwargs)


@dataclasses.dataclass
class Config(metaclass=_ConfigType):
    """Hyper-parameters of a model, with the field names of the originals' JSON files.

    A subclass is a dataclass: it lists the fields with their defaults. Their types check them: an
    int is positive unless `lowest` names it, a float isn't negative, and one with "drop" in its
    name is a rate. Unknown fields of a file (such as ``"transformers_version"``) are kept in
    `extras` and written back, so that no field is lost. A warning names those that look misspelt.

    As in pytorch-pretrained-bert, the first argument may be the path of a file with the fields, and
    may be named ``vocab_size_or_config_json_file``.
    """

    #: what transformers calls the family in its files' "model_type"
    model_type = None
    #: fields of other programs -> the only value with which the family's blocks compute
    fixed = {}
    #: fields of whole numbers -> the least value, where that isn't 1
    lowest = {}

    def __post_init__(self):
        self.extras = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type in (int, 'int'):
                check_count(field.name, value, self.lowest.get(field.name, 1))
            elif field.type in (float, 'float'):
                _check_number(field.name, value)
            elif field.type in (str, 'str') and not isinstance(value, str):
                raise InputError(f'{field.name} must be a text, but is {value!r:.80}')

    @classmethod
    def field_value(cls, field, value):
        """The field's value for a GluonNLP hyper-parameter; usually the same."""
        return value

    @classmethod
    def from_dict(cls, values):
        """Build a configuration from a dict; unknown fields go to `extras`."""
        names = {field.name for field in dataclasses.fields(cls)}
        for name, value in cls.fixed.items():
            if values.get(name, value) != value:
                raise InputError(
                    f'{name} is {values[name]!r:.80}, and only {value!r} is supported: this model '
                    'would give other results than the one that it was saved from'
                )
        labels = values.get('id2label')  # the Hugging Face files count the labels so
        if 'num_labels' in names and 'num_labels' not in values and isinstance(labels, dict):
            values = {**values, 'num_labels': len(labels)}
        config = cls(**{name: value for name, value in values.items() if name in names})
        config.extras = {name: value for name, value in values.items() if name not in names}
        for name, json_type in _EXTRAS.items():
            value = config.extras.get(name)
            parts = value if json_type is list and isinstance(value, list) else ()
            if value is None or (
                isinstance(value, json_type) and all(isinstance(part, str) for part in parts)
            ):
                continue
            wanted = {list: 'a list of names', dict: 'an object', str: 'a text'}[json_type]
            raise InputError(f'{name} must be {wanted}, but is {value!r:.80}')
        free = names - values.keys()
        for name in config.extras:
            close = difflib.get_close_matches(name, free, 1, 0.9)
            if close:
                _log.warning(
                    '%s is not known to a %s, and has no effect: is %s meant?',
                    name,
                    cls.__name__,
                    close[0],
                )
        if config.extras.get('model_type') == cls.model_type:  # said by the class
            config.extras.pop('model_type', None)
        return config

    @classmethod
    def from_json_file(cls, path):
        """Read a configuration such as ``bert_config.json`` or ``config.json``."""
        return cls.from_fields(read_json(path, 'the configuration', dict), path)

    @classmethod
    def from_fields(cls, values, path):
        """Build a configuration from the content of the file `path`, which may be of any family."""
        family = values.get('model_type', cls.model_type)
        if None not in (family, cls.model_type) and family != cls.model_type:
            raise InputError(
                f'the configuration {str(path)!r} is of another family, {family!r}: '
                f'a {cls.__name__} is wanted, {cls.model_type!r}'
            )
        try:
            return cls.from_dict(values)
        except ZooError as error:
            raise InputError(f'the configuration {str(path)!r}: {error}') from error

    #: rows of the embedding: the number of tokens that the model knows
    embedding_rows = property(attrgetter('vocab_size'))

    def to_dict(self):
        """A new dict with the fields, and the unknown ones of `from_dict`."""
        return {**copy.deepcopy(self.extras), **dataclasses.asdict(self)}

    def changed(self, fields):
        """A configuration with other values of some fields."""
        return type(self).from_dict({**self.to_dict(), **fields})

    def to_format(self, format, architecture):
        """The configuration as another program's file."""
        fields = self.to_dict()
        if format in PYTORCH_FORMATS:
            fields.update(model_type=self.model_type, architectures=[architecture])
        return 'config.json', fields

    def to_json_string(self):
        """The configuration as indented JSON, with its keys sorted."""
        return json.dumps(self.to_dict(), indent=2, sort_keys=True) + '\n'

    def to_json_file(self, path, architecture=None):
        """Write the configuration and the family's name to `path`, completely or not at all."""
        fields = self.to_dict()
        if self.model_type is not None:
            fields['model_type'] = self.model_type
        if architecture is not None:
            fields['architectures'] = [architecture]
        write_json(path, fields)


def check_count(name, value, least=1):
    """Raise InputError unless a field is a whole number from `least` on."""
    if type(value) is int and least <= value <= LARGEST_SIZE:
        return
    wanted = 'a positive integer' if least == 1 else f'an integer of at least {least}'
    bound = f'; {LARGEST_SIZE} is the most' if type(value) is int and value > 0 else ''
    raise InputError(f'{name} must be {wanted}, but is {value!r:.80}{bound}')


def _check_number(name, value):
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if 'drop' in name:
        if not is_number or not 0 <= value < 1:
            raise InputError(f'{name} must be a rate in [0, 1), but is {value!r:.80}')
    elif not is_number or not (value == 0 or _LEAST_FLOAT <= value <= _LARGEST_FLOAT):
        raise InputError(f'{name} must be a number of at least 0, but is {value!r:.80}')


@dataclasses.dataclass
class AttentionConfig(Config):
    """A configuration of layers with attention heads; some heads may be pruned.

    A subclass has the field `pruned_heads`, and fields or properties `num_layers`, `num_heads`,
    `units`, `intermediate_size` and `dropout`, because the families' files name these differently.
    """

    #: name of the layers' activation function
    activation = 'gelu'
    #: rate on the attention probabilities
    attention_dropout = property(attrgetter('dropout'))
    layer_norm_eps = 1e-5
    #: standard deviation of the normal initializer
    initializer_range = 0.02

    def __post_init__(self):
        super().__post_init__()
        if self.activation not in ACTIVATIONS:
            raise UnknownNameError.of('activation', self.activation, ACTIVATIONS)
        if self.units % self.num_heads:
            raise InputError(
                f'{self.units} units are not a multiple of {self.num_heads} attention heads'
            )
        given, self.pruned_heads = self.pruned_heads, {}
        if given not in (None, {}):
            try:
                self.pruned_heads = self.add_pruned(given)
            except InputError as error:
                raise InputError(f'pruned_heads: {error}') from error

    def to_format(self, format, architecture):
        if self.pruned_heads and format not in PYTORCH_FORMATS:
            raise InputError(f'the format {format!r} has no place for pruned heads')
        return super().to_format(format, architecture)

    @property
    def head_size(self):
        """Units of one attention head."""
        return self.units // self.num_heads

    def kept_heads(self, layer):
        """The heads that `layer` still has, by their original numbers."""
        pruned = set(self.pruned_heads.get(layer, ()))
        return [head for head in range(self.num_heads) if head not in pruned]

    def add_pruned(self, heads_to_prune):
        """`pruned_heads` with more heads."""
        merged = {layer: set(heads) for layer, heads in self.pruned_heads.items()}
        for layer, heads in _as_numbers(heads_to_prune).items():
            if not 0 <= layer < self.num_layers:
                raise InputError(f'there is no layer {layer}: the model has {self.num_layers}')
            wrong = [head for head in heads if not 0 <= head < self.num_heads]
            if wrong:
                raise InputError(f'layer {layer} has no head {wrong[0]}: it has {self.num_heads}')
            merged.setdefault(layer, set()).update(heads)
            if len(merged[layer]) == self.num_heads:
                raise InputError(f'layer {layer} would be left without heads')
        return {layer: sorted(heads) for layer, heads in merged.items() if heads}


def _as_numbers(heads_to_prune):
    """A dict of ints to lists of ints; JSON turns the keys of a dict into strings."""
    try:
        return {
            int(layer) if isinstance(layer, str) else operator.index(layer): [
                operator.index(head) for head in heads
            ]
            for layer, heads in heads_to_prune.items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f'the heads must be a dict of layers to lists of heads, but are {heads_to_prune!r:.80}'
        ) from error
