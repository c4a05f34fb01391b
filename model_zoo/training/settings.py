"""Settings: dataclasses whose fields are keywords in Python, and flags on the command line.

A field has a type, a default, a line of help and bounds, and checks its value. The command's parser
is made from the fields, and a run's results.json has their values.
"""

import copy
import dataclasses
import math
import operator
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
    'InferenceSettings',
    'ModelSettings',
    'NamedModelSettings',
    'OptimizerSettings',
    'OutputSettings',
    'ScheduleSettings',
    'SetSettings',
    'Settings',
    'TrainingSettings',
    'lower_case',
    'setting',
    'settings',
    'text_encoding',
    'token_limit',
    'value_type',
]


_NAMES = {int: 'a whole number', float: 'a number', str: 'a text', bool: 'true or false'}
#: bound of a number -> its comparison, and its words
_BOUNDS = {
    'at_least': (operator.ge, 'at least'),
    'above': (operator.gt, 'greater than'),
    'below': (operator.lt, 'less than'),
    'at_most': (operator.le, 'at most'),
}


def setting(
    default=None,
    help=None,
    *,
    choices=None,
    usual=False,
    on_resume='same',
    needs=(),
    excludes=(),
    flag=types.MappingProxyType({}),
    aliases=(),
    **bounds,
):
    """A field of a `Settings` class.

    Parameters
    ----------
    default : object
    help : str, optional
        The line that ``--help`` shows.
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
    flag : dict, optional
        Further arguments of argparse's ``add_argument``, if the command line accepts other forms.
    aliases : tuple of str
        Other names, of earlier versions and other projects, that the command line, files of
        settings, Python and saved jobs accept.
    **bounds
        Of a number, which then must be finite: `at_least`, `above`, `below`, `at_most`.
    """
    metadata = {'help': help, 'bounds': bounds, 'choices': choices, 'flag': flag}
    metadata.update(usual=usual, on_resume=on_resume, needs=needs, excludes=excludes)
    metadata['aliases'] = aliases
    if isinstance(default, list):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


#: `flag` of a field for which the command line takes yes or no, or the flag alone
YES_OR_NO = {'nargs': '?', 'const': True}


def lower_case():
    """The field for lower-casing texts."""
    return setting(None, 'lower-case the text; default: as the vocabulary requires', flag=YES_OR_NO)


def text_encoding():
    """The field with the encoding of text files."""
    return setting(
        None,
        'encoding of the text files, such as latin-1 or utf-16; default: UTF-8',
        on_resume='free',
    )


def token_limit(default, help='in tokens, including special tokens', *, aliases=(), **options):
    """The field with the largest number of tokens."""
    aliases = ('max_len', 'max_seq_length', 'max_seq_len', *aliases)
    return setting(default, help, usual=True, aliases=aliases, **options)


def settings(helps=types.MappingProxyType({}), **defaults):
    """Decorator: make a class of settings, with other defaults and helps of inherited fields."""

    def make(cls):
        cls = dataclasses.dataclass(init=False)(cls)
        fields = cls.__dataclass_fields__
        for name in {**defaults, **helps}:
            field = fields[name] = copy.copy(fields[name])
            field.default = defaults.get(name, field.default)
            help = helps.get(name, field.metadata['help'])
            field.metadata = types.MappingProxyType({**field.metadata, 'help': help})
            setattr(cls, name, field.default)
        return cls

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


def _checked(field, value):
    """Return a field's value, converted; InputError if it can't be used."""
    item_type, is_list = value_type(field)
    if value is None or not is_list:
        return value if value is None else _converted(field, item_type, value)
    if isinstance(value, str) and item_type is str:
        value = [part.strip() for part in value.split(',')]
    if isinstance(value, dict) and item_type is str:
        value = [f'{name}={item}' for name, item in value.items()]
    if not isinstance(value, (list, tuple)):
        raise InputError(f'must be a list, not {value!r}', field=field.name)
    return [_converted(field, item_type, item) for item in value]


def _converted(field, item_type, value):
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if item_type is str and isinstance(value, os.PathLike):
        value = os.fspath(value)
    elif item_type is str and type(value) is int:
        value = str(value)
    elif type(value) is float and value.is_integer() and int in (item_type, type(field.default)):
        value = int(value)  # epochs, too, whose number is usually whole
    fits = is_number if item_type is float else isinstance(value, item_type)
    if not fits or (item_type is int and isinstance(value, bool)):
        raise InputError(f'must be {_NAMES[item_type]}, not {value!r}', field=field.name)
    choices, bounds = field.metadata['choices'], field.metadata['bounds']
    if choices is not None and value not in choices:
        raise UnknownNameError.of('value', value, choices, field.name)
    if bounds and not math.isfinite(value):
        raise InputError(f'must be a finite number, not {value}', field=field.name)
    if not all(_BOUNDS[name][0](value, bound) for name, bound in bounds.items()):
        shown = ' and '.join(f'{_BOUNDS[name][1]} {bound:g}' for name, bound in bounds.items())
        raise InputError(f'must be {shown}, not {value}', field=field.name)
    return value


@dataclasses.dataclass(init=False)
class Settings:
    """Base of all settings, whose values don't change: `copy` makes settings with other values.

    Attributes
    ----------
    given : frozenset of str
        The fields that the caller has given.
    """

    __slots__ = ('__dict__', 'given')  # `vars` has the fields alone

    #: title of the fields' group in a command's help
    title = 'training'

    def __init__(self, **fields):
        fields = self.by_names(fields)
        self._set({**self.defaults(), **fields}, fields, {})

    def _set(self, values, given, old):
        """Set all values, checked; the `old` ones fit together."""
        self.given = frozenset(given)
        for field in dataclasses.fields(self):
            vars(self)[field.name] = _checked(field, values[field.name])
        self._check_relations(
            {name for name, value in vars(self).items() if name not in old or old[name] != value}
        )
        vars(self).update(self.derived())
        self.check()

    def __setattr__(self, name, value):
        if name != 'given':
            raise dataclasses.FrozenInstanceError(f'use copy({name}=...) instead')
        super().__setattr__(name, value)

    def _check_relations(self, names):
        """Raise InputError if one of the fields lacks another, or excludes one."""
        for field in filter(lambda field: self.is_given(field.name), dataclasses.fields(self)):
            needs, excludes = field.metadata['needs'], field.metadata['excludes']
            for other in (*needs, *excludes):
                fits = self.is_given(other) == (other in needs)
                if not fits and not names.isdisjoint({other, field.name}):
                    problem = f'needs `{other}`'
                    if other in excludes:
                        problem = f'and `{other}` exclude each other'
                    raise InputError(problem, field=field.name)

    def derived(self):
        """Return values that follow from other fields, by name; a subclass adds to its base's."""
        return {}

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
        """Return values by the names of their fields instead of other names of these.

        UnknownNameError for a name that no field has.
        """
        aliases, named = cls.aliases(), {}
        for name, value in values.items():
            field = name if name in cls.__dataclass_fields__ else aliases.get(name, name)
            UnknownNameError.check('setting', field, cls.__dataclass_fields__)
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
        field = self.__dataclass_fields__.get(name)
        return field is not None and vars(self)[name] not in (None, field.default)

    def copy(self, **changes):
        """Return settings with other values of some fields, which are checked."""
        changes, made = self.by_names(changes), object.__new__(type(self))
        made._set({**vars(self), **changes}, self.given.union(changes), vars(self))
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
        return self.with_defaults(**{name: min(length, longest)})


@settings()
class DeviceSettings(Settings):
    """Device and precision of a training run."""

    gpu: int | None = setting(
        None,
        'number of the GPU; no number: 0; default: the CPU',
        flag={'nargs': '?', 'const': 0},
        on_resume='free',
    )
    gpus: str | None = setting(
        None,
        "such as 0 or 0,2,5; each GPU takes its own batches; '': the CPU",
        on_resume='free',
    )
    dtype: str = setting('float32', choices=['float32', 'float16', 'bfloat16'], usual=True)
    loss_scale: float | None = setting(
        None, 'with float16: fixed loss scale, such as 128; default, and 0: dynamic', at_least=0
    )
    optimize_on_cpu: bool = setting(
        False, "keep the optimizer's states off the GPU", on_resume='free'
    )

    def derived(self):
        return {**super().derived(), 'loss_scale': self.loss_scale or None}


@settings()
class OptimizerSettings(Settings):
    """The optimizer and its rates."""

    optimizer: str = setting(
        'bertadam',
        'bertadam, also for small data; openaiadam, which needs more updates or a '
        "higher learning rate; lamb; or one of MXNet's",
    )
    lr: float = setting(
        3e-5, 'highest learning rate', at_least=0, usual=True, aliases=('learning_rate',)
    )
    epsilon: float | None = setting(1e-6, 'epsilon of the optimizer', at_least=0)
    wd: float = setting(
        0.01,
        'weight decay; none on biases and layer norms',
        at_least=0,
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


@settings()
class OutputSettings(Settings):
    """Settings of what a run writes, and how it resumes."""

    title = 'output'

    output_dir: str | None = setting(
        './output_dir', usual=True, on_resume='run', aliases=('ckpt_dir',)
    )
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


@settings()
class TrainingSettings(OptimizerSettings, OutputSettings, DeviceSettings):
    """Settings of every training run; defaults as in GluonNLP's classifier script."""

    title = 'training'

    epochs: float = setting(
        3,
        'times to read the training set; may be a fraction',
        above=0,
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
    as_bertadam: bool | None = setting(
        None,
        "update like pytorch-pretrained-bert: clip each parameter's gradient by itself, not "
        'all together, and let the warm-up end within an update',
    )
    early_stop: int | None = setting(
        None,
        'stop after this many epochs without a better score',
        at_least=1,
        aliases=('early_stopping',),
    )
    save_last: str | None = setting(
        None,
        "also write the last epoch's model to `output_dir` itself, as pytorch_model.bin, "
        'model.safetensors or model.params; predictions and eval_results.txt come from it',
        choices=['pytorch_pretrained_bert', 'pytorch', 'huggingface', 'native'],
        on_resume='free',
    )
    keep_state: bool = setting(
        False,
        "keep the optimizer's state at the end, so that the finished run can be resumed",
        on_resume='free',
    )


@settings()
class ScheduleSettings(TrainingSettings):
    """The learning rate's schedule; gradients are clipped together."""

    max_grad_norm: float = setting(1.0, 'clip the norm of all gradients to this', above=0)
    lr_schedule: str = setting('warmup_linear', choices=SCHEDULE_NAMES)


@settings()
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


@settings()
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


@settings()
class CheckpointSettings(Settings):
    """A model in Google's format: a setting for each of its files."""

    title = "a model in Google's format"

    init_checkpoint: str | None = setting(
        None,
        "TensorFlow checkpoint, or any other file or folder of parameters; a run's folder "
        'means its newest ones',
        excludes=('model', 'dataset', 'pretrained_parameters', 'from_scratch', 'hparams'),
    )
    bert_config_file: str | None = setting(
        None,
        "the checkpoint's configuration; alone: of a model from scratch",
        excludes=('hparams',),
    )


@settings()
class ModelSettings(Settings):
    """The model to start from. A subclass adds the field for its name."""

    title = 'model'

    model_parameters: str | None = setting(
        None, "file of parameters, including the head's, to start from"
    )
    from_scratch: bool = setting(False, 'start from random parameters')
    vocab_file: str | None = setting(
        None,
        "vocabulary, also a SentencePiece model, to use instead of the model's",
        on_resume='free',
        aliases=('sentencepiece',),
    )
    hparams: list[str] | None = setting(
        None, "changes to the model's size, such as num_layers=2,units=128"
    )


@settings()
class NamedModelSettings(CheckpointSettings, ModelSettings):
    """A model of any family."""

    title = 'model'

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


@settings(model='bert_12_768_12')
class BertSettings(NamedModelSettings):
    """BERT, or a similar model."""


@settings()
class SetSettings(Settings):
    """The files of a task's sets."""

    title = 'data'

    train_file: str | None = setting(
        None,
        'file of the training set',
        usual=True,
        on_resume='free',
        aliases=('train_dataset', 'train_corpus'),
    )
    dev_file: str | None = setting(
        None,
        'file of the set to evaluate on after each epoch',
        usual=True,
        on_resume='free',
        aliases=('eval_file', 'eval_dataset', 'dev_corpus', 'predict_file'),
    )
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
    test_file: str | None = setting(
        None, 'file of the set to predict', usual=True, on_resume='free'
    )
    encoding: str | None = text_encoding()


@settings(
    helps={
        'train_file': 'instead of the file in `data_dir`',
        'dev_file': 'the same for the dev set',
        'test_file': 'the same for the test set',
    }
)
class FileSettings(SetSettings):
    """The files of a task's sets, and their folder."""

    data_dir: str | None = setting(
        None, 'folder with files under their usual names', usual=True, on_resume='free'
    )


@settings()
class InferenceSettings(Settings):
    """The use of a trained model."""

    title = 'task'

    only_inference: bool = setting(
        False,
        'evaluate the dev set and predict the test set',
        usual=True,
        on_resume='free',
        excludes=('resume',),
    )


@settings()
class FinetuneSettings(
    SetSettings,
    InferenceSettings,
    BertSettings,
    BatchTokensSettings,
    BackendSettings,
    TrainingSettings,
):
    """Fine-tuning of BERT on examples of different lengths."""

    title = 'task'

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
        flag={'metavar': 'encoder|N'},
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
        if not (self.freeze in (None, 'encoder') or self.freeze.isdecimal()):
            raise InputError(f'{self.freeze!r}: give encoder or a number of layers', field='freeze')


@settings()
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

    def derived(self):
        only_inference = self.only_inference or self.only_calibration
        return {**super().derived(), 'only_inference': only_inference}

    def check(self):
        super().check()
        if self.only_calibration and self.dtype != 'float32':
            raise InputError(f'needs `dtype` float32, not {self.dtype}', field='only_calibration')
