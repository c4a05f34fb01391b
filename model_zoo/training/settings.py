"""Settings: dataclasses whose fields are keywords in Python, and flags on the command line.

A field has a type, a default, a line of help and bounds, and checks its value. The command's parser
is made from the fields, and a run's results.json has their values.
"""

import copy
import dataclasses
import math
import os
import types
import typing

from ..errors import InputError, UnknownNameError
from ..util.choices import (
    BACKENDS,
    CALIBRATION_MODES,
    ENGINES,
    QUANTIZED_DTYPES,
    SCHEDULE_NAMES,
)

__all__ = [
    'YES_OR_NO',
    'BackendSettings',
    'BatchTokensSettings',
    'BertSettings',
    'CheckpointSettings',
    'DeploySettings',
    'DeviceSettings',
    'FileSettings',
    'FinetuneSettings',
    'ModelSettings',
    'NamedModelSettings',
    'OptimizerSettings',
    'OutputSettings',
    'ScheduleSettings',
    'Settings',
    'SplitSettings',
    'TrainingSettings',
    'check_fields',
    'lower_case',
    'setting',
    'settings',
    'text_encoding',
    'token_limit',
    'value_type',
]


_NAMES = {int: 'a whole number', float: 'a number', str: 'a text', bool: 'true or false'}


def setting(
    default=None,
    help=None,
    *,
    at_least=None,
    above=None,
    below=None,
    at_most=None,
    choices=None,
    usual=False,
    on_resume='same',
    needs=(),
    excludes=(),
    takes_numbers=False,
    flag=None,
    aliases=(),
):
    """A field of a `Settings` class.

    Parameters
    ----------
    default : object
    help : str, optional
        The line that ``--help`` shows.
    at_least, above, below, at_most : float, optional
        Bounds of a number.
    choices : sequence, optional
        All allowed values.
    usual : bool
        Whether ``--help`` of a command with many flags shows it.
    on_resume : str
        What another value means when a run is resumed. 'same': the run is refused. 'free': nothing.
        'run': nothing, and a file of settings leaves it out, since it is of one run. 'total':
        another number of updates. 'size', 'number': the size of a worker's batch, and how many
        batches an update has, whose product must be the same.
    needs, excludes : tuple of str
        Other fields that must, or can't, be given with this one.
    takes_numbers : bool
        Whether a text may be given as a number.
    flag : dict, optional
        Further arguments of argparse's ``add_argument``, if the command line accepts other forms.
    aliases : tuple of str
        Other names, of earlier versions and other projects, that the command line, files of
        settings, Python and saved jobs accept.
    """
    bounds = {'at_least': at_least, 'above': above, 'below': below, 'at_most': at_most}
    bounds = {name: value for name, value in bounds.items() if value is not None}
    metadata = {'help': help, 'bounds': bounds, 'choices': choices, 'flag': flag or {}}
    metadata.update(usual=usual, on_resume=on_resume, needs=needs, excludes=excludes)
    metadata.update(takes_numbers=takes_numbers, aliases=aliases)
    if isinstance(default, list):
        return dataclasses.field(default_factory=lambda: list(default), metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


#: `flag` of a field for which the command line takes yes or no, or the flag alone
YES_OR_NO = {'type': 'boolean', 'nargs': '?', 'const': True}


def lower_case():
    """The field for lower-casing texts."""
    return setting(None, 'lower-case the text; default: as the vocabulary requires', flag=YES_OR_NO)


def text_encoding():
    """The field with the encoding of text files."""
    return setting(
        None,
        'encoding of the text files, such as latin-1 or utf-16; default: UTF-8',
        on_resume='free',
        flag={'rank_last': True},
    )


def token_limit(default, help='in tokens, including special tokens', *, aliases=(), **options):
    """The field with the largest number of tokens."""
    aliases = ('max_len', 'max_seq_length', 'max_seq_len', *aliases)
    return setting(default, help, usual=True, aliases=aliases, **options)


def settings(helps=types.MappingProxyType({}), **defaults):
    """Decorator: make a dataclass, with other defaults, and lines of help, for inherited fields."""

    def make(cls):
        annotations = cls.__dict__.get('__annotations__', {})
        for name in {**defaults, **helps}:
            inherited = next(
                base.__dataclass_fields__[name]
                for base in cls.__mro__[1:]
                if name in getattr(base, '__dataclass_fields__', {})
            )
            annotations[name] = inherited.type
            default = defaults.get(name, inherited.default)
            metadata = {**inherited.metadata, **({'help': helps[name]} if name in helps else {})}
            setattr(cls, name, dataclasses.field(default=default, metadata=metadata))
        cls.__annotations__ = annotations
        return dataclasses.dataclass(cls)

    return make


def value_type(field):
    """The type of a field's value, or of its items, and whether it is a list of them."""
    item_type = field.type
    arguments = [item for item in typing.get_args(item_type) if item is not type(None)]
    if typing.get_origin(item_type) in (typing.Union, types.UnionType):
        (item_type,) = arguments
        arguments = typing.get_args(item_type)
    if typing.get_origin(item_type) is list:
        return arguments[0], True
    return item_type, False


def check_fields(cls, values):
    """Raise InputError, naming the field, if one of `values`' attributes can't be used.

    They are converted in place: paths to texts, and whole floats to ints.
    """
    for field in dataclasses.fields(cls):
        value = getattr(values, field.name)
        if value is not None:
            setattr(values, field.name, _checked(field, value))


def _checked(field, value):
    item_type, is_list = value_type(field)
    if is_list:
        if isinstance(value, str) and item_type is str:
            value = [part.strip() for part in value.split(',')]
        if isinstance(value, dict) and field.name == 'hparams':
            value = [f'{name}={number}' for name, number in value.items()]
        if not isinstance(value, (list, tuple)):
            raise InputError(f'must be a list, not {value!r}', field=field.name)
        if item_type is str:
            value = [str(item) if type(item) is int else item for item in value]
        return [_converted(field, item_type, item) for item in value]
    return _converted(field, item_type, value)


def _converted(field, item_type, value):
    if item_type is str and isinstance(value, os.PathLike):
        value = os.fspath(value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if item_type is str and is_number and field.metadata['takes_numbers']:
        value = str(value)
    if item_type is int and is_number and value == int(value):
        value = int(value)
    fits = is_number if item_type is float else isinstance(value, item_type)
    if not fits or (item_type is int and isinstance(value, bool)):
        raise InputError(f'must be {_NAMES[item_type]}, not {value!r}', field=field.name)
    choices, bounds = field.metadata['choices'], field.metadata['bounds']
    if choices is not None and value not in choices:
        raise UnknownNameError.of('value', value, choices, field.name)
    if bounds and not _is_within(value, **bounds):
        range_ = _describe(**bounds) if math.isfinite(value) else 'a finite number'
        raise InputError(f'must be {range_}, not {value}', field=field.name)
    return value


def _is_within(
    value, at_least=-float('inf'), above=-float('inf'), below=float('inf'), at_most=float('inf')
):
    return above < value < below and at_least <= value <= at_most


def _describe(at_least=None, above=None, below=None, at_most=None):
    texts = {'at least': at_least, 'greater than': above, 'less than': below, 'at most': at_most}
    shown = {text: bound for text, bound in texts.items() if bound not in (None, float('inf'))}
    return ' and '.join(f'{text} {bound:g}' for text, bound in shown.items())


class _Given:
    """Holds the names of the fields that were given, apart from the fields."""

    __slots__ = ('given',)


class _TakesAliases(type):
    """Lets the keywords of a class of settings have other names; see `setting`."""

    def __call__(cls, **fields):
        return super().__call__(**cls.by_names(fields))


@dataclasses.dataclass
class Settings(_Given, metaclass=_TakesAliases):
    """Base of all settings. Creating one checks the fields, then calls `check`."""

    #: title of the fields' group in a command's help
    title = 'training'

    def __new__(cls, *args, **fields):
        self = super().__new__(cls)
        self.given = frozenset(fields)
        return self

    def __post_init__(self):
        check_fields(type(self), self)
        self._check_relations(self.defaults())
        self.check()

    def _check_relations(self, names):
        """Raise InputError if one of the fields lacks another, or excludes one."""
        for field in filter(lambda field: self.is_given(field.name), dataclasses.fields(self)):
            for other in field.metadata['needs']:
                if not self.is_given(other) and (other in names or field.name in names):
                    raise InputError(f'needs `{other}`', field=field.name)
            for other in field.metadata['excludes']:
                if self.is_given(other) and (other in names or field.name in names):
                    raise InputError(
                        f'and `{other}` exclude each other: give one', field=field.name
                    )

    def check(self):
        """Raise InputError if fields contradict each other; a subclass calls its base's method."""

    @classmethod
    def defaults(cls):
        """The default of each field, by name."""
        return {
            field.name: field.default_factory()
            if field.default is dataclasses.MISSING
            else field.default
            for field in dataclasses.fields(cls)
        }

    @classmethod
    def aliases(cls):
        """The names of the fields, by their other names."""
        fields = dataclasses.fields(cls)
        return {alias: field.name for field in fields for alias in field.metadata['aliases']}

    @classmethod
    def by_names(cls, values):
        """Return values by the names of their fields instead of other names of these."""
        aliases, named = cls.aliases(), {}
        for name, value in values.items():
            field = name if name in cls.__dataclass_fields__ else aliases.get(name, name)
            if field in named:
                raise InputError(f'and `{name}` are the same setting: use one', field=field)
            named[field] = value
        return named

    @classmethod
    def on_resume(cls, *kinds):
        """Names of the fields of some kinds of `on_resume`; see `setting`."""
        return tuple(
            field.name for field in dataclasses.fields(cls) if field.metadata['on_resume'] in kinds
        )

    def is_given(self, name):
        """Whether a field has a value that isn't its default."""
        return vars(self).get(name) not in (None, self.defaults().get(name))

    def copy(self, **changes):
        """Return settings with other values of some fields, which are checked."""
        changes = self.by_names(changes)
        made = copy.copy(self)
        made.given = self.given.union(changes)
        for field in dataclasses.fields(self):
            if field.name in changes:
                value = changes[field.name]
                value = value if value is None else _checked(field, value)
                setattr(made, field.name, value)
        made._check_relations(
            {name for name in changes if getattr(made, name) != getattr(self, name)}
        )
        made.check()
        return made

    def with_defaults(self, **values):
        """Return settings with other values of some fields, which don't count as given."""
        made = self.copy(**values)
        made.given = self.given
        return made

    def fit_length(self, name, longest):
        """Return settings with a default number of tokens that a model takes.

        InputError for a given number that is larger.
        """
        length = getattr(self, name)
        if length > longest and (name in self.given or self.is_given(name)):
            raise InputError(f'{length}: the model takes {longest} tokens at most', field=name)
        if length <= longest:
            return self
        return self.with_defaults(**{name: longest})


@dataclasses.dataclass
class DeviceSettings(Settings):
    """Device and precision of a training run."""

    gpu: int | None = setting(
        None,
        'number of the GPU; no number: 0; default: the CPU',
        flag={'nargs': '?', 'const': 0},
        on_resume='free',
    )
    gpus: str | None = setting(
        None, "such as 0 or 0,2,5; each GPU takes its own batches; '': the CPU", on_resume='free'
    )
    dtype: str = setting('float32', choices=['float32', 'float16', 'bfloat16'], usual=True)
    loss_scale: float | None = setting(
        None, 'with float16: fixed loss scale, such as 128; default, and 0: dynamic', at_least=0
    )
    mirror: bool = setting(
        False, 'save memory: recompute layers in the backward pass', on_resume='free'
    )
    optimize_on_cpu: bool = setting(
        False, "keep the optimizer's states off the GPU", on_resume='free'
    )

    def check(self):
        super().check()
        self.loss_scale = self.loss_scale or None


@dataclasses.dataclass
class OptimizerSettings(Settings):
    """The optimizer and its rates."""

    optimizer: str = setting(
        'bertadam',
        'bertadam, also for small data; openaiadam, which needs more updates or a '
        "higher learning rate; lamb; or one of MXNet's",
    )
    lr: float = setting(
        3e-5,
        'highest learning rate',
        at_least=0,
        below=float('inf'),
        usual=True,
        aliases=('learning_rate',),
    )
    epsilon: float | None = setting(
        1e-6, 'epsilon of the optimizer', at_least=0, below=float('inf')
    )
    wd: float = setting(
        0.01,
        'weight decay; none on biases and layer norms',
        at_least=0,
        below=float('inf'),
        aliases=('weight_decay',),
    )
    warmup_ratio: float = setting(
        0.1,
        'share of the updates in which the learning rate rises',
        at_least=0,
        below=1,
        aliases=('warmup_proportion',),
    )
    seed: int = setting(2, usual=True)


@dataclasses.dataclass
class OutputSettings(Settings):
    """Settings of what a run writes, and how it resumes."""

    title = 'output'

    output_dir: str | None = setting('./output_dir', usual=True, on_resume='run')
    save_last = None  # a field of the originals' settings, see `model_zoo.app.originals`
    log_interval: int = setting(10, 'in updates', at_least=1, on_resume='free')
    tensorboard: str | None = setting(
        None, 'folder for TensorBoard event files', flag={'metavar': 'DIR'}, on_resume='free'
    )
    ckpt_interval: int = setting(
        1000,
        'updates between checkpoints; one is always saved after each epoch',
        at_least=1,
        on_resume='free',
    )
    keep_checkpoints: int = setting(
        2,
        'number of last epochs and of newest checkpoints to keep; by default one of each at the '
        'end',
        at_least=1,
        on_resume='free',
    )
    keep_state: bool = setting(
        False,
        "keep the optimizer's state at the end, so that the finished run can be resumed",
        on_resume='free',
    )
    no_resume_state: bool = setting(
        False, 'has no effect: this is the default', on_resume='free', excludes=('keep_state',)
    )
    resume: bool = setting(
        False,
        'continue from the newest checkpoint in `output_dir`',
        usual=True,
        on_resume='run',
        excludes=('overwrite_output_dir',),
    )
    overwrite_output_dir: bool = setting(
        False,
        'replace the run in `output_dir`; otherwise a second one is refused',
        usual=True,
        on_resume='run',
    )


@dataclasses.dataclass
class TrainingSettings(OptimizerSettings, OutputSettings, DeviceSettings):
    """Settings of every training run; defaults as in GluonNLP's classifier script."""

    title = 'training'

    epochs: float = setting(
        3,
        'times to read the training set; may be a fraction',
        above=0,
        below=float('inf'),
        flag={'type': 'number'},
        usual=True,
        on_resume='total',
        aliases=('num_train_epochs',),
    )
    training_steps: int | None = setting(
        None,
        'number of updates; overrides `epochs`',
        at_least=1,
        on_resume='total',
        aliases=('max_steps',),
    )
    batch_size: int = setting(
        32, at_least=1, usual=True, on_resume='size', aliases=('per_device_train_batch_size',)
    )
    dev_batch_size: int = setting(
        8,
        'for dev and test sets',
        at_least=1,
        on_resume='free',
        aliases=('eval_batch_size', 'predict_batch_size', 'test_batch_size'),
    )
    accumulate: int | None = setting(
        None,
        'number of batches per update',
        at_least=1,
        on_resume='number',
        aliases=('gradient_accumulation_steps',),
    )
    as_bertadam = None  # a field of the originals' settings
    early_stop: int | None = setting(
        None,
        'stop after this many epochs without a better score',
        at_least=1,
        aliases=('early_stopping',),
    )


@dataclasses.dataclass
class ScheduleSettings(TrainingSettings):
    """The learning rate's schedule; gradients are clipped together."""

    max_grad_norm: float = setting(
        1.0, 'clip the norm of all gradients to this', above=0, below=float('inf')
    )
    lr_schedule: str = setting('warmup_linear', choices=SCHEDULE_NAMES)


@dataclasses.dataclass
class BackendSettings(Settings):
    """Several processes."""

    comm_backend: str | None = setting(
        None,
        'horovod: train with the processes that horovodrun started, `batch_size` examples in '
        'each; device: with one process',
        choices=BACKENDS,
        on_resume='free',
    )
    allreduce_dtype: str | None = setting(
        None,
        'with `comm_backend` horovod: send gradients in float16, for slow networks',
        choices=['float16'],
    )


@dataclasses.dataclass
class BatchTokensSettings(Settings):
    """Batches by their tokens."""

    batch_tokens: int | None = setting(
        None,
        'instead of `batch_size`: batches of up to N tokens, including padding, from '
        'examples of similar length',
        at_least=1,
        flag={'metavar': 'N'},
        on_resume='size',
        excludes=('batch_size',),
    )


@dataclasses.dataclass
class ModelSettings(Settings):
    """The model to start from. A subclass adds the field for its name."""

    title = 'model'

    model_parameters: str | None = setting(
        None, "file of parameters, including the head's, to start from"
    )
    from_scratch: bool = setting(False, 'start from random parameters')
    vocab_file: str | None = setting(
        None, "vocabulary to use instead of the model's", on_resume='free'
    )
    hparams: list[str] | None = setting(
        None, "changes to the model's size, such as num_layers=2,units=128"
    )


@dataclasses.dataclass
class NamedModelSettings(ModelSettings):
    """A model of any family."""

    model: str | None = setting(
        None,
        'name, folder, hub id owner/name, or address',
        usual=True,
        aliases=('bert_model', 'gpt_model', 'model_name', 'model_name_or_path'),
    )
    dataset: str | None = setting(
        None,
        "the data set it was pretrained on; default: the model's usual one",
        aliases=('bert_dataset', 'gpt_dataset'),
    )
    pretrained_parameters: str | None = setting(
        None,
        'file of pretrained parameters without a head',
        aliases=('pretrained_bert_parameters', 'pretrained_gpt_parameters'),
    )
    init_checkpoint = bert_config_file = None  # fields of `CheckpointSettings`


@settings(model='bert_12_768_12')
class BertSettings(NamedModelSettings):
    """BERT, or a similar model."""


@dataclasses.dataclass
class SplitSettings(Settings):
    """A dev set that is a part of the training set."""

    title = 'task'

    dev_split: float | None = setting(
        None,
        'instead of `dev_file`: hold out this share of `train_file`, such as 0.1; `seed` selects '
        'the examples',
        above=0,
        below=1,
        flag={'metavar': 'SHARE'},
        usual=True,
        excludes=('dev_file',),
    )


@dataclasses.dataclass
class FinetuneSettings(
    SplitSettings, BertSettings, BatchTokensSettings, BackendSettings, TrainingSettings
):
    """Fine-tuning of BERT on examples of different lengths."""

    title = 'task'

    encoding: str | None = text_encoding()
    round_to: int | None = setting(None, 'pad batches to multiples of this length', at_least=1)
    lr_schedule: str = setting(
        'linear',
        'the learning rate after the warm-up: to 0 in a line or along a cosine, or constant',
        choices=['linear', 'cosine', 'constant'],
    )
    best_by: str | None = setting(
        None,
        "the dev score that chooses the best epoch, such as macro_f1; default: the task's metric",
    )
    freeze: str | None = setting(
        None,
        'encoder, or a number of layers: the embeddings and these layers keep their parameters',
        takes_numbers=True,
        flag={'metavar': 'encoder|N'},
    )
    only_inference: bool = setting(
        False,
        'evaluate the dev set and predict the test set',
        usual=True,
        on_resume='free',
        excludes=('resume',),
    )
    engine: str = setting(
        'mxnet', 'what runs a model without training it', choices=ENGINES, on_resume='free'
    )
    precision: str | None = setting(
        None,
        'precision of the engine; default: `dtype`',
        choices=['float32', 'bfloat16', 'int8'],
        on_resume='free',
    )

    def check(self):
        super().check()
        if not (self.freeze in (None, 'encoder') or str(self.freeze).isdecimal()):
            raise InputError(f'{self.freeze!r}: give encoder or a number of layers', field='freeze')


@dataclasses.dataclass
class FileSettings(Settings):
    """The files of a task's sets."""

    title = 'task'

    data_dir: str | None = setting(
        None, 'folder with files under their usual names', usual=True, on_resume='free'
    )
    train_file: str | None = setting(
        None, 'instead of the file in `data_dir`', usual=True, on_resume='free'
    )
    dev_file: str | None = setting(None, 'the same for the dev set', usual=True, on_resume='free')
    test_file: str | None = setting(None, 'the same for the test set', usual=True, on_resume='free')


@dataclasses.dataclass
class CheckpointSettings(Settings):
    """A model in Google's format: a setting for each of its files."""

    title = "a model in Google's form"

    init_checkpoint: str | None = setting(
        None,
        "TensorFlow checkpoint, or any other file or folder of parameters; a run's folder "
        'means its newest ones',
        excludes=(
            'model',
            'dataset',
            'pretrained_parameters',
            'from_scratch',
            'hparams',
        ),
    )
    bert_config_file: str | None = setting(
        None,
        "the checkpoint's configuration; alone: of a model from scratch",
        excludes=('hparams',),
    )


@dataclasses.dataclass
class DeploySettings(Settings):
    """Exported models and INT8 models, as in GluonNLP's scripts."""

    title = 'exported models and INT8'

    deploy: bool = setting(
        False,
        '`only_inference` with an exported model',
        on_resume='free',
        needs=('only_inference', 'model_prefix'),
    )
    model_prefix: str | None = setting(
        None,
        '`deploy` reads PREFIX-symbol.json and PREFIX-0000.params',
        on_resume='free',
        needs=('deploy',),
    )
    only_calibration: bool = setting(
        False,
        'write a trained model in INT8; `deploy` with `model_prefix` runs it',
        on_resume='free',
        excludes=('deploy', 'resume', 'gpu'),
    )
    num_calib_batches: int = setting(
        5, 'number of batches of the dev set', at_least=1, on_resume='free'
    )
    quantized_dtype: str = setting(
        'auto', 'type of the activations', choices=QUANTIZED_DTYPES, on_resume='free'
    )
    calib_mode: str = setting(
        'customize',
        'how to find the ranges of activations',
        choices=CALIBRATION_MODES,
        on_resume='free',
    )

    def check(self):
        if self.only_calibration:
            if self.dtype != 'float32':
                raise InputError(
                    f'needs `dtype` float32, not {self.dtype}', field='only_calibration'
                )
            self.only_inference = True
        super().check()
