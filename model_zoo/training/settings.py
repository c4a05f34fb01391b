"""The settings of training runs; further ones of a task are in its own class."""

from ..errors import InputError
from ..util import choices as known
from .settings_base import Count, Settings, setting

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
    'setting',
    'token_limit',
]


def lower_case():
    """Declare the field for lower-casing texts."""
    return setting(None, 'lower-case the text; default: as the vocabulary requires')


def text_encoding():
    """Declare the field with the encoding of text files."""
    return setting(None, 'of text files, such as cp1252 or utf-16; default: UTF-8', 'mutable')


def token_limit(default, help='in tokens, including special tokens', aliases='', **bounds):
    """Declare the field with the largest number of tokens."""
    aliases = f'max_len max_seq_length max_seq_len {aliases}'
    return setting(default, help, 'usual', aliases=aliases, **bounds)


def gpu_number():
    """Declare the field with the GPU."""
    flag = {'nargs': '?', 'const': 0}
    return setting(None, 'number of the GPU; no number: 0; default: the CPU', 'mutable', flag=flag)


class DeviceSettings(Settings):
    """Device and precision of a training run."""

    gpu: int | None = gpu_number()
    gpus: str | None = setting(
        None, "such as 0 or 0,2,5, a batch for each; '': the CPU", 'mutable', excludes='gpu'
    )
    dtype: str = setting('float32', None, 'usual', choices=known.PRECISIONS)
    loss_scale: float | None = setting(None, 'with float16; default, and 0: dynamic', at_least=0)
    optimize_on_cpu: bool = setting(False, "keep the optimizer's states off the GPU", 'mutable')

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
    log_interval: Count = setting(10, 'updates between lines of the log', 'mutable')
    tensorboard: str | None = setting(None, 'folder for TensorBoard event files', 'mutable')
    ckpt_interval: Count = setting(1000, 'in updates; epochs end with one, too', 'mutable')
    keep_checkpoints: Count = setting(2, 'newest, and epochs; at the end one of each', 'mutable')
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
        8, 'in evaluation', 'mutable', aliases='eval_batch_size predict_batch_size test_batch_size'
    )
    accumulate: Count | None = setting(
        None,
        'number of batches per update; in-batch negatives are of one batch',
        'number',
        aliases='gradient_accumulation_steps',
    )
    early_stop: Count | None = setting(None, 'end after N worse epochs', aliases='early_stopping')
    keep_state: bool = setting(False, 'keep what a finished run needs to be resumed', 'mutable')
    clip_each: bool | None = setting(None, 'clip each gradient by itself', aliases='as_bertadam')
    last_model: str | None = setting(
        None,
        "format in which `output_dir` gets the last epoch's model, which then predicts",
        'mutable',
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
        None, 'horovod: train with the processes of horovodrun', 'mutable', choices=known.BACKENDS
    )
    allreduce_dtype: str | None = setting(None, 'type of exchanged gradients', choices=['float16'])


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
    vocab_file: str | None = setting(None, "not the model's", 'mutable', aliases='sentencepiece')
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
        None, 'training set', 'usual mutable', aliases='train_dataset train_corpus'
    )
    dev_file: str | None = setting(
        None,
        'set to evaluate on after each epoch',
        'usual mutable',
        aliases='eval_file eval_dataset dev_corpus predict_file',
    )
    dev_split: float | None = setting(
        None, 'share of `train_file` to hold out', 'usual', above=0, below=1, excludes='dev_file'
    )
    test_file: str | None = setting(None, 'set to predict', 'usual mutable')
    example: str | None = setting(
        None,
        "text for the model's card and page, its parts between tabs; default: neutral",
        'mutable',
    )
    encoding: str | None = text_encoding()


class FileSettings(SetSettings):
    """The files of a task's sets, and their folder."""

    data_dir: str | None = setting(None, 'folder with files of the usual names', 'usual mutable')


class InferenceSettings(Settings):
    """The use of a trained model."""

    title = 'task'

    only_inference: bool = setting(False, "don't train", 'usual mutable', excludes='resume')


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

    title, by_rows = 'task', ('epochs', 'batch_size')

    round_to: Count | None = setting(None, 'pad batches to multiples of this length')
    lr_schedule: str = setting(
        'linear', 'the learning rate after the warm-up', choices=['linear', 'cosine', 'constant']
    )
    best_by: str | None = setting(None, "dev score, such as macro_f1; default: the task's metric")
    freeze: str | None = setting(None, 'encoder, or N layers, which stay as they are')
    engine: str = setting('mxnet', 'what runs `only_inference`', 'mutable', choices=known.ENGINES)
    precision: str | None = setting(
        None, 'needs another `engine`', 'mutable', choices=['float32', 'bfloat16', 'int8']
    )

    def check(self):
        super().check()
        if not (self.freeze in (None, 'encoder') or self.freeze.isdecimal()):
            problem = f'must be encoder or a number of layers, not {self.freeze!r}'
            raise InputError(problem, field='freeze')
        if self.engine != 'mxnet' and not self.only_inference:
            raise InputError('needs `only_inference`', field='engine')
        if self.precision is not None and self.engine == 'mxnet':
            raise InputError('needs another `engine`', field='precision')


class DeploySettings(Settings):
    """Exported models and INT8 models, as in GluonNLP's scripts."""

    title = 'exported models and INT8'

    deploy: bool = setting(
        False, 'use an export', 'mutable', needs='only_inference model_prefix', excludes='engine'
    )
    model_prefix: str | None = setting(
        None, 'PREFIX of the exported PREFIX-symbol.json', 'mutable', needs='deploy'
    )
    only_calibration: bool = setting(
        False, 'write a trained model in INT8, to `deploy`', 'mutable', excludes='deploy resume gpu'
    )
    num_calib_batches: Count = setting(5, 'number of batches of the dev set', 'mutable')
    quantized_dtype: str = setting(
        'auto', 'type of activations in INT8', 'mutable', choices=known.QUANTIZED_DTYPES
    )
    calib_mode: str = setting(
        'customize', 'how to find ranges of activations', 'mutable', choices=known.CALIBRATION_MODES
    )

    def derived(self):
        only_inference = self.only_inference or self.only_calibration
        return {**super().derived(), 'only_inference': only_inference}

    def check(self):
        super().check()
        if self.only_calibration and self.dtype != 'float32':
            raise InputError(f'needs `dtype` float32, not {self.dtype}', field='only_calibration')
