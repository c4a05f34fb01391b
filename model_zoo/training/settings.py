"""Settings: dataclasses whose fields are keywords in Python, and flags on the command line.

A field has a type, a default, a line of help and bounds, and checks its value. The command's parser
is made from the fields, and a run's results.json has their values.
"""

import copy
import dataclasses
import itertools
import math
import operator
import os
import types
import typing

from ..errors import InputError, UnknownNameError
from ..util import choices as known

__all__ = [
    'BackendSettings',
    'BatchTokensSettings',
    'Count',
    'DeploySettings',
    'DeviceSettings',
    'FileSettings',
    'FinetuneSettings',
    'ModelSettings',
    'OptimizerSettings',
    'OutputSettings',
    'ScheduleSettings',
    'SetSettings',
    'Settings',
    'TrainingSettings',
    'gpu_number',
    'lower_case',
    'setting',
    'text_encoding',
    'token_limit',
    'value_type',
]

#: type of a number of things, at least 1
Count = typing.NewType('Count', int)

_NAMES = {int: 'a whole number', float: 'a number', str: 'a text', bool: 'true or false'}
_BOUNDS = {'at_least': operator.ge, 'above': operator.gt, 'below': operator.lt}
_BOUNDS['at_most'] = operator.le


def setting(
    default=None,
    help=None,
    marks='',
    *,
    choices=None,
    needs='',
    excludes='',
    aliases='',
    flag=types.MappingProxyType({}),
    **bounds,
):
    """Declare a field of a `Settings` class. Several names are in one text, with spaces.

    Parameters
    ----------
    default : object
    help : str, optional
        The line that ``--help`` shows.
    marks : str
        'usual': ``--help`` of a command with many flags shows it. The others say what another value
        means when a run is resumed; without one the run is refused. 'free': nothing. 'run':
        nothing, and a file of settings leaves it out, since it is of one run. 'total': another
        number of updates. 'size', 'number': the size of a worker's batch, and how many batches an
        update has, whose product must be the same.
    choices : sequence, optional
        All allowed values.
    needs, excludes : str
        Other fields that must, or can't, be given with this one.
    aliases : str
        Other names, of earlier versions and other projects, that the command line, files of
        settings, Python and saved jobs accept.
    flag : dict, optional
        Further arguments of argparse's ``add_argument``, if the command line accepts other forms.
    **bounds
        Of a number, which then must be finite: `at_least`, `above`, `below`, `at_most`.
    """
    metadata = {'help': help, 'choices': choices, 'flag': flag, 'bounds': bounds}
    names = {'marks': marks, 'needs': needs, 'excludes': excludes, 'aliases': aliases}
    metadata.update((name, words.split()) for name, words in names.items())
    return dataclasses.field(default=default, metadata=metadata)


def lower_case():
    """Declare the field for lower-casing texts."""
    return setting(None, 'lower-case the text; default: as the vocabulary requires')


def text_encoding():
    """Declare the field with the encoding of text files."""
    return setting(None, 'of text files, such as latin-1 or utf-16; default: UTF-8', 'free')


def token_limit(default, help='in tokens, including special tokens', aliases='', **bounds):
    """Declare the field with the largest number of tokens."""
    aliases = f'max_len max_seq_length max_seq_len {aliases}'
    return setting(default, help, 'usual', aliases=aliases, **bounds)


def gpu_number():
    """Declare the field with the GPU."""
    flag = {'nargs': '?', 'const': 0}
    return setting(None, 'number of the GPU; no number: 0; default: the CPU', 'free', flag=flag)


def value_type(field):
    """Return the type of a field's value, or of its items, and whether it is a list of them."""
    kind, is_list = field.type, False
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        (kind,) = (item for item in typing.get_args(kind) if item is not type(None))
    if typing.get_origin(kind) is list:
        (kind,), is_list = typing.get_args(kind), True
    return kind, is_list


def _checked(field, value):
    """Return a field's value, converted; InputError if it can't be used."""
    kind, is_list = value_type(field)
    if value is None or not is_list:
        return value if value is None else _converted(field, kind, value)
    if isinstance(value, str) and kind is str:
        value = [part.strip() for part in value.split(',')]
    if isinstance(value, dict) and kind is str:
        value = [f'{name}={item}' for name, item in value.items()]
    if not isinstance(value, (list, tuple)):
        raise InputError(f'must be a list, not {value!r}', field=field.name)
    return [_converted(field, kind, item) for item in value]


def _converted(field, kind, value):
    choices, bounds = field.metadata['choices'], field.metadata['bounds']
    if kind is Count:
        kind, bounds = int, {'at_least': 1, **bounds}
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is str and isinstance(value, os.PathLike):
        value = os.fspath(value)
    elif kind is str and type(value) is int:
        value = str(value)
    elif type(value) is float and value.is_integer() and int in (kind, type(field.default)):
        value = int(value)  # epochs, too, whose number is usually whole
    fits = is_number if kind is float else isinstance(value, kind)
    if not fits or (kind is int and isinstance(value, bool)):
        raise InputError(f'must be {_NAMES[kind]}, not {value!r}', field=field.name)
    if choices is not None:
        UnknownNameError.check('value', value, choices, field.name)
    fits = [_BOUNDS[name](value, bound) for name, bound in bounds.items()]
    if bounds and not (all(fits) and math.isfinite(value)):
        shown = [f'{name.replace("_", " ")} {bound:g}' for name, bound in bounds.items()]
        raise InputError(f'must be {" and ".join(shown)}, not {value}', field=field.name)
    return value


@dataclasses.dataclass(init=False)
class Settings:
    """Base of all settings, whose values don't change: `copy` makes settings with other values.

    A subclass declares its fields, and may change defaults of inherited ones:
    ``class MySettings(FinetuneSettings, lr=2e-4)``.

    Attributes
    ----------
    given : frozenset of str
        The fields that the caller has given: those of the call, unless its only argument says else.
    """

    __slots__ = ('__dict__', 'given')  # `vars` has the fields alone

    #: title of the fields' group in a command's help
    title = 'training'
    #: fields whose defaults are for many rows; few rows have others, by their number
    by_rows = ()

    def __init_subclass__(cls, **defaults):
        dataclasses.dataclass(init=False)(cls)
        fields = cls.__dataclass_fields__
        for name, default in defaults.items():
            fields[name] = copy.copy(fields[name])
            fields[name].default = default

    def __init__(self, given=None, /, **fields):
        fields = self.by_names(fields)
        self.given = frozenset(fields if given is None else given)
        for field in dataclasses.fields(self):
            vars(self)[field.name] = _checked(field, fields.get(field.name, field.default))
        for field in filter(lambda field: self.is_given(field.name), dataclasses.fields(self)):
            for other in itertools.filterfalse(self.is_given, field.metadata['needs']):
                raise InputError(f'needs `{other}`', field=field.name)
            for other in filter(self.is_given, field.metadata['excludes']):
                raise InputError(f'and `{other}` exclude each other', field=field.name)
        vars(self).update(self.derived())
        self.check()

    def __setattr__(self, name, value):
        if name != 'given':
            raise dataclasses.FrozenInstanceError(f'use copy({name}=...) instead')
        super().__setattr__(name, value)

    def derived(self):
        """Return values that follow from other fields, by name; a subclass adds to its base's."""
        return {}

    def check(self):
        """Raise InputError if fields contradict each other; a subclass calls its base's method."""

    @classmethod
    def defaults(cls):
        """Return the default of each field, by name."""
        return {field.name: field.default for field in dataclasses.fields(cls)}

    @classmethod
    def aliases(cls):
        """Return the names of the fields, by their other names."""
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
    def marked(cls, *marks):
        """Return the names of the fields with one of these marks; see `setting`."""
        fields = dataclasses.fields(cls)
        return tuple(f.name for f in fields if not set(marks).isdisjoint(f.metadata['marks']))

    @classmethod
    def rivals(cls, name):
        """Return the names of the fields that exclude a field, or that it excludes."""
        excludes = {field.name: field.metadata['excludes'] for field in dataclasses.fields(cls)}
        return {*excludes[name], *(other for other in excludes if name in excludes[other])}

    def is_given(self, name):
        """Return whether the caller has given a field a value; None and False switch nothing on."""
        return name in self.given and vars(self)[name] not in (None, False)

    def copy(self, **changes):
        """Return settings with other values of some fields, which are checked, and given."""
        changes = self.by_names(changes)
        return type(self)(self.given.union(changes), **{**vars(self), **changes})

    def with_defaults(self, **values):
        """Return settings with other values of some fields, which don't count as given."""
        return type(self)(self.given, **{**vars(self), **values})

    def to_repeat(self):
        """Return the values that repeat a run: those given, and others that its result depends on.

        A value that wasn't given is left out where it can't stand beside one that was.
        """
        left_out = {n for n in vars(self) if any(map(self.is_given, self.rivals(n)))}
        left_out = (left_out.union(self.marked('free')) - self.given).union(self.marked('run'))
        return {name: value for name, value in vars(self).items() if name not in left_out}

    def fit_length(self, name, longest):
        """Return settings with a default number of tokens that a model takes.

        InputError for a given number that is larger.
        """
        length = vars(self)[name]
        if length > longest and self.is_given(name):
            raise InputError(f'{length}: the model takes {longest} tokens at most', field=name)
        return self.with_defaults(**{name: min(length, longest)})


class DeviceSettings(Settings):
    """Device and precision of a training run."""

    gpu: int | None = gpu_number()
    gpus: str | None = setting(
        None, "such as 0 or 0,2,5, a batch for each; '': the CPU", 'free', excludes='gpu'
    )
    dtype: str = setting('float32', None, 'usual', choices=known.PRECISIONS)
    loss_scale: float | None = setting(None, 'with float16; default, and 0: dynamic', at_least=0)
    optimize_on_cpu: bool = setting(False, "keep the optimizer's states off the GPU", 'free')

    def derived(self):
        return {**super().derived(), 'loss_scale': self.loss_scale or None}


class OptimizerSettings(Settings):
    """The optimizer and its rates."""

    optimizer: str = setting('bertadam', "bertadam, openaiadam, lamb, or one of MXNet's")
    lr: float = setting(3e-5, 'highest learning rate', 'usual', at_least=0, aliases='learning_rate')
    epsilon: float | None = setting(1e-6, 'epsilon of the optimizer', at_least=0)
    wd: float = setting(
        0.01, 'weight decay; none on biases and layer norms', at_least=0, aliases='weight_decay'
    )
    warmup_ratio: float = setting(
        0.1, 'share of updates to warm up in', at_least=0, below=1, aliases='warmup_proportion'
    )
    seed: int = setting(2, None, 'usual')


class OutputSettings(Settings):
    """Settings of what a run writes, and how it resumes."""

    title = 'output'

    output_dir: str | None = setting('./output_dir', None, 'usual run', aliases='ckpt_dir')
    log_interval: Count = setting(10, 'updates between lines of the log', 'free')
    tensorboard: str | None = setting(None, 'folder for TensorBoard event files', 'free')
    ckpt_interval: Count = setting(1000, 'updates between checkpoints; epochs end with one', 'free')
    keep_checkpoints: Count = setting(2, 'newest ones, and epochs; at the end one of each', 'free')
    resume: bool = setting(
        False, 'from the newest checkpoint', 'usual run', excludes='overwrite_output_dir'
    )
    overwrite_output_dir: bool = setting(False, 'replace the run in `output_dir`', 'usual run')


class TrainingSettings(OptimizerSettings, OutputSettings, DeviceSettings):
    """Settings of every training run; defaults as in GluonNLP's classifier script."""

    title = 'training'

    epochs: float = setting(
        3, 'passes over the data, such as 0.5', 'usual total', above=0, aliases='num_train_epochs'
    )
    training_steps: Count | None = setting(None, 'replaces `epochs`', 'total', aliases='max_steps')
    batch_size: Count = setting(32, None, 'usual size', aliases='per_device_train_batch_size')
    dev_batch_size: Count = setting(
        8, 'in evaluation', 'free', aliases='eval_batch_size predict_batch_size test_batch_size'
    )
    accumulate: Count | None = setting(
        None,
        'number of batches per update; in-batch negatives are of one batch',
        'number',
        aliases='gradient_accumulation_steps',
    )
    early_stop: Count | None = setting(None, 'end after N worse epochs', aliases='early_stopping')
    keep_state: bool = setting(False, 'keep what a finished run needs to be resumed', 'free')
    clip_each: bool | None = setting(
        None, "clip each parameter's gradient by itself", aliases='as_bertadam'
    )
    last_model: str | None = setting(
        None,
        "format in which `output_dir` gets the last epoch's model, which then predicts",
        'free',
        choices=['pytorch_pretrained_bert', 'pytorch', 'huggingface', 'native'],
        aliases='save_last',
    )


class ScheduleSettings(TrainingSettings):
    """The learning rate's schedule; gradients are clipped together."""

    max_grad_norm: float = setting(1.0, 'clip the norm of all gradients to this', above=0)
    lr_schedule: str = setting('warmup_linear', choices=known.SCHEDULE_NAMES)


class BackendSettings(Settings):
    """Several processes."""

    comm_backend: str | None = setting(
        None, 'horovod: train with the processes of horovodrun', 'free', choices=known.BACKENDS
    )
    allreduce_dtype: str | None = setting(
        None, 'type in which workers exchange gradients', choices=['float16']
    )


class BatchTokensSettings(Settings):
    """Batches by their tokens."""

    batch_tokens: Count | None = setting(
        None, 'batches of similar lengths, with up to N tokens', 'size', excludes='batch_size'
    )


class ModelSettings(Settings):
    """The model to start from."""

    title = 'model'

    model: str | None = setting(
        None,
        'name, folder, hub id owner/name, or address',
        'usual',
        aliases='bert_model gpt_model model_name model_name_or_path',
    )
    dataset: str | None = setting(
        None, 'data set that the weights were trained on', aliases='bert_dataset gpt_dataset'
    )
    pretrained_parameters: str | None = setting(
        None, 'file, without a head', aliases='pretrained_bert_parameters pretrained_gpt_parameters'
    )
    model_parameters: str | None = setting(None, "file of parameters, including the head's")
    from_scratch: bool = setting(False, 'start from random parameters')
    vocab_file: str | None = setting(
        None, "instead of the model's", 'free', aliases='sentencepiece'
    )
    hparams: list[str] | None = setting(None, "the model's size, such as num_layers=2,units=128")
    checkpoint: str | None = setting(
        None,
        "TensorFlow checkpoint, another file or folder of parameters, or a run's folder",
        excludes='model dataset pretrained_parameters from_scratch hparams',
        aliases='init_checkpoint',
    )
    config_file: str | None = setting(
        None,
        "the checkpoint's configuration; alone: of a model from scratch",
        excludes='hparams',
        aliases='bert_config_file',
    )


class SetSettings(Settings):
    """The files of a task's sets."""

    title = 'data'

    train_file: str | None = setting(
        None, 'training set', 'usual free', aliases='train_dataset train_corpus'
    )
    dev_file: str | None = setting(
        None,
        'set to evaluate on after each epoch',
        'usual free',
        aliases='eval_file eval_dataset dev_corpus predict_file',
    )
    dev_split: float | None = setting(
        None, 'share of `train_file` to hold out', 'usual', above=0, below=1, excludes='dev_file'
    )
    test_file: str | None = setting(None, 'set to predict', 'usual free')
    example: str | None = setting(
        None, "text for the model's card and page, its parts between tabs; default: neutral", 'free'
    )
    encoding: str | None = text_encoding()


class FileSettings(SetSettings):
    """The files of a task's sets, and their folder."""

    data_dir: str | None = setting(None, 'folder with files of the usual names', 'usual free')


class InferenceSettings(Settings):
    """The use of a trained model."""

    title = 'task'

    only_inference: bool = setting(False, 'evaluate and predict', 'usual free', excludes='resume')


class FinetuneSettings(
    SetSettings,
    InferenceSettings,
    ModelSettings,
    BatchTokensSettings,
    BackendSettings,
    TrainingSettings,
    model='bert_12_768_12',
):
    """Fine-tuning of BERT on examples of different lengths."""

    title = 'task'

    round_to: Count | None = setting(None, 'pad batches to multiples of this length')
    lr_schedule: str = setting(
        'linear', 'the learning rate after the warm-up', choices=['linear', 'cosine', 'constant']
    )
    best_by: str | None = setting(None, "dev score, such as macro_f1; default: the task's metric")
    freeze: str | None = setting(None, 'encoder, or N layers, which stay as they are')
    engine: str = setting(
        'mxnet', 'what runs the model of `only_inference`', 'free', choices=known.ENGINES
    )
    precision: str | None = setting(
        None, 'of another `engine`', 'free', choices=['float32', 'bfloat16', 'int8']
    )

    def check(self):
        super().check()
        if not (self.freeze in (None, 'encoder') or self.freeze.isdecimal()):
            raise InputError(f'{self.freeze!r}: give encoder or a number of layers', field='freeze')
        if self.engine != 'mxnet' and not self.only_inference:
            raise InputError('needs `only_inference`', field='engine')
        if self.precision is not None and self.engine == 'mxnet':
            raise InputError('needs another `engine`', field='precision')


class DeploySettings(Settings):
    """Exported models and INT8 models, as in GluonNLP's scripts."""

    title = 'exported models and INT8'

    deploy: bool = setting(
        False, 'use an export', 'free', needs='only_inference model_prefix', excludes='engine'
    )
    model_prefix: str | None = setting(
        None, 'PREFIX of the exported PREFIX-symbol.json', 'free', needs='deploy'
    )
    only_calibration: bool = setting(
        False, 'write a trained model in INT8, to `deploy`', 'free', excludes='deploy resume gpu'
    )
    num_calib_batches: Count = setting(5, 'number of batches of the dev set', 'free')
    quantized_dtype: str = setting(
        'auto', 'type of activations in INT8', 'free', choices=known.QUANTIZED_DTYPES
    )
    calib_mode: str = setting(
        'customize', 'how to find ranges of activations', 'free', choices=known.CALIBRATION_MODES
    )

    def derived(self):
        only_inference = self.only_inference or self.only_calibration
        return {**super().derived(), 'only_inference': only_inference}

    def check(self):
        super().check()
        if self.only_calibration and self.dtype != 'float32':
            raise InputError(f'needs `dtype` float32, not {self.dtype}', field='only_calibration')
