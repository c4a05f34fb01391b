"""The task of a pre-training: masked words and next sentences, of many shards, in phases."""

from typing import Optional

from ..errors import InputError
from ..pretrained import is_model_folder
from ..training.settings import (
    BackendSettings,
    BatchTokensSettings,
    CheckpointSettings,
    DeviceSettings,
    NamedModelSettings,
    OptimizerSettings,
    setting,
    settings,
)
from .masked_lm import MaskedLMTask, SampleSettings
from .pretraining import (
    NUM_BUCKETS,
    PretrainingLoader,
    ShardFiles,
    SyntheticLoader,
    TextFiles,
    describe_files,
    matching_files,
)
from .pretraining.files import is_tfrecord
from .pretraining.objective import pretraining_objective
from .tables import check_files
from .task import Data

__all__ = ['PretrainingSettings', 'PretrainingTask']


@settings(
    model='bert_12_768_12', max_seq_length=512, max_predictions_per_seq=80, lr=1e-4,
    warmup_ratio=0.01, seed=0,
)  # fmt: skip
class PretrainingSettings(
    SampleSettings, CheckpointSettings, NamedModelSettings, BatchTokensSettings, BackendSettings,
    OptimizerSettings, DeviceSettings,
):  # fmt: skip
    """The flags of GluonNLP's pre-training scripts, and ours."""

    title = 'data'

    data: Optional[str] = setting(
        None, 'training data: .npz of create_pretraining_data.py; wildcards, commas'
    )
    data_eval: Optional[str] = setting(None, 'data to evaluate on')
    batch_size: Optional[int] = setting(None, 'of one GPU or worker; default: 8', at_least=1)
    total_batch_size: Optional[int] = setting(
        None, 'of an update: `batch_size` x GPUs x `accumulate`', at_least=1
    )
    batch_size_eval: Optional[int] = setting(None, 'of one worker; default: 8', at_least=1)
    total_batch_size_eval: Optional[int] = setting(
        None, '`batch_size_eval` x workers', at_least=1
    )
    max_eval_steps: Optional[int] = setting(
        None, 'evaluate on at most this many batches', at_least=1
    )
    use_avg_len: bool = setting(
        False, '`batch_size` counts tokens, not samples: as `batch_tokens`, but of one bucket '
        'unless `num_buckets` says more'
    )  # fmt: skip
    num_buckets: int = setting(
        1, 'make batches of similar lengths; of `batch_tokens` there are '
        f'{NUM_BUCKETS} unless this says more than 1', at_least=1
    )  # fmt: skip
    circle_length: int = setting(2, 'number of shards to mix at a time', at_least=1)
    synthetic_data: bool = setting(False, 'train on random words, for measurements')
    dummy_data_len: Optional[int] = setting(None, '`synthetic_data` of this length', at_least=1)
    raw: bool = setting(False, '`data` and `data_eval` are text: sample on the fly')
    eval_use_npz: bool = setting(False, 'with `raw`: but `data_eval` is .npz')
    cased: bool = setting(False, 'of `raw`: keep upper case, whatever the vocabulary')
    sentencepiece: Optional[str] = setting(None, 'SentencePiece model, for `vocab_file`')
    num_dataset_workers: int = setting(
        4, 'of `raw`: processes that make samples', at_least=1
    )
    num_steps: int = setting(20, 'number of updates', at_least=1)
    accumulate: int = setting(1, 'number of batches per update', at_least=1)
    no_compute_acc: bool = setting(False, 'skip the accuracies')
    start_step: Optional[int] = setting(
        None, 'continue from the checkpoint of this step', at_least=1
    )
    phase2: bool = setting(False, 'start from the end of another training')
    phase1_num_steps: Optional[int] = setting(
        None, 'its `num_steps`; its `ckpt_dir` is the same', at_least=1
    )
    resume: bool = setting(False, 'continue from the newest checkpoint, if any')
    overwrite_output_dir: bool = setting(False, 'replace the training in `ckpt_dir`')
    ckpt_dir: str = setting('./ckpt_dir')
    ckpt_interval: int = setting(25000, 'in updates', at_least=1)
    keep_checkpoints: int = setting(2, 'how many of the newest ones to keep', at_least=1)
    eval_interval: int = setting(50000, 'in updates', at_least=1)
    log_interval: int = setting(250, 'in updates', at_least=1)
    tensorboard: Optional[str] = setting(
        None, "write TensorBoard's event files", flag={'metavar': 'DIR'}
    )
    profile: Optional[str] = setting(None, 'profile updates 10 to 13', flag={'metavar': 'FILE'})
    verbose: bool = setting(False)
    pretrained: bool = setting(False, 'begin from the pretrained weights of `model`')

    output_dir = property(lambda self: self.ckpt_dir)

    def check(self):
        super().check()
        self._check_phases()
        self._check_batches()
        if self.dummy_data_len is not None:
            self.synthetic_data, self.max_seq_length = True, self.dummy_data_len
        if not (self.data or self.data_eval or self.synthetic_data):
            raise InputError('give `data` to train, `data_eval` to evaluate, or both')
        for one, other in (('resume', 'overwrite_output_dir'), ('pretrained', 'from_scratch')):
            if getattr(self, one) and getattr(self, other):
                raise InputError(f'`{one}` and `{other}` contradict one another: give one')
        if self.sentencepiece and self.vocab_file:
            raise InputError('`sentencepiece` and `vocab_file` both name the vocabulary: give one')

    def _check_batches(self):
        if self.batch_tokens is None:
            return
        if self.total_batch_size is not None or self.use_avg_len:
            other = 'use_avg_len' if self.use_avg_len else 'total_batch_size'
            raise InputError(
                f'`batch_tokens` and `{other}` both say how large a batch is: give one'
            )
        if self.synthetic_data:
            raise InputError(
                '`batch_tokens` needs samples of different lengths, not `synthetic_data`'
            )
        self.batch_size, self.use_avg_len = self.batch_tokens, True
        if self.num_buckets == 1:
            self.num_buckets = NUM_BUCKETS

    def _check_phases(self):
        if self.phase2 and self.phase1_num_steps is None:
            raise InputError('`phase2` needs `phase1_num_steps`')
        if self.phase1_num_steps is not None and not self.phase2:
            raise InputError('`phase1_num_steps` goes with `phase2`')
        if self.phase2 and self.start_step is None:
            self.start_step = self.phase1_num_steps
        if self.phase2 and self.start_step < self.phase1_num_steps:
            raise InputError(
                f'`start_step` {self.start_step} counts the steps of both phases: give '
                f'`phase1_num_steps` {self.phase1_num_steps} or more'
            )


class PretrainingTask(MaskedLMTask):
    """Masked words, and next sentences where the model has them, of shards of samples or texts."""

    settings_class, family, in_python = PretrainingSettings, None, {}
    free = (
        'batch_size_eval', 'ckpt_dir', 'comm_backend', 'data_eval', 'eval_interval', 'eval_use_npz',
        'max_eval_steps', 'num_dataset_workers', 'profile', 'start_step', 'total_batch_size',
        'total_batch_size_eval', 'verbose',
    )  # fmt: skip

    name = property(lambda self: f'phase{2 if self.settings.phase2 else 1}')
    trains = property(lambda self: bool(self.settings.data or self.settings.synthetic_data))
    lowers = property(lambda self: False if self.settings.cased else None)
    most_batches = property(lambda self: self.settings.max_eval_steps)
    reads_text = property(lambda self: self.settings.raw)

    def begin(self):
        settings = self.settings
        for patterns in (None if settings.synthetic_data else settings.data, settings.data_eval):
            if patterns:
                matching_files(patterns)
        settings.vocab_file = settings.sentencepiece or settings.vocab_file
        check_files(settings, 'vocab_file')
        given = settings.pretrained_parameters or settings.model_parameters
        settings.from_scratch = not (
            settings.pretrained or given or settings.init_checkpoint
            or is_model_folder(settings.model)
        )  # fmt: skip

    def sources(self):
        named = {'train': self.trains, 'dev': self.settings.data_eval}
        return {name: name for name, is_there in named.items() if is_there}

    def fit(self, model, tokenizer):
        self._objective = pretraining_objective(model, not self.settings.no_compute_acc)
        if self.settings.synthetic_data:
            self.check_length(model)
        return super().fit(model, tokenizer)

    def load(self, segment, rows, tokenizer, contexts, accumulate):
        settings, workers = self.settings, self.workers
        options, trains = {'ctx': contexts, 'workers': workers}, segment == 'train'
        if trains:
            self._set_batch_size('batch_size', accumulate * workers.size)
            options['seed'] = settings.seed
        else:
            self._set_batch_size('batch_size_eval', workers.size)
        if trains and settings.synthetic_data:
            masks = min(settings.max_predictions_per_seq, settings.max_seq_length)
            loader = SyntheticLoader(
                settings.batch_size, settings.max_seq_length, masks, tokenizer.vocab, **options
            )
        elif trains:
            loader = PretrainingLoader(
                self._source_of(settings.data, settings.raw, tokenizer), settings.batch_size,
                num_buckets=settings.num_buckets, use_avg_len=settings.use_avg_len,
                circle_length=settings.circle_length, accumulate=accumulate, **options,
            )  # fmt: skip
        else:
            is_text = settings.raw and not settings.eval_use_npz
            source = self._source_of(settings.data_eval, is_text, tokenizer)
            loader = PretrainingLoader(
                source, settings.batch_size_eval, shuffle=is_text, **options
            )
        self._closing.callback(loader.close)
        return Data(rows, None, loader)

    def _set_batch_size(self, name, count):
        """Compute a batch size from the total of `count` batches where that was given."""
        settings = self.settings
        total, size = getattr(settings, f'total_{name}'), getattr(settings, name)
        if total is None:
            setattr(settings, name, size or 8)
            return
        if total % count:
            parts = f'{count} workers'
            if name == 'batch_size':
                parts = f'{count}: the product of the numbers of workers, GPUs and `accumulate`'
            raise InputError(f'`total_{name}` {total} is not divisible by {parts}')
        if size is not None and size * count != total:
            raise InputError(
                f'`{name}` {size} and `total_{name}` {total}: the total is {size * count}; give '
                'one of them'
            )
        setattr(settings, name, total // count)

    def _source_of(self, files, is_text, tokenizer):
        if is_text:
            workers = self.settings.num_dataset_workers
            return TextFiles(files, tokenizer, self._options, num_workers=workers)
        source = ShardFiles(files, tokenizer.vocab, self._context, self._has_pairs, self.workers)
        self._check_sizes(source)
        return source

    def _check_sizes(self, source):
        """Refuse sizes that contradict the samples; TFRecords have one size, as Google's."""
        path = source.paths[0]
        for name in filter(self.settings.is_given, ('max_seq_length', 'max_predictions_per_seq')):
            samples, value = source.read(path), getattr(self.settings, name)
            is_length = name == 'max_seq_length'
            width = (samples.input_ids if is_length else samples.masked_lm_positions).shape[1]
            if width > value or width < value and is_tfrecord(path):
                raise InputError(
                    f'`{name}` {value}: the samples in {path!r} were made with {width}'
                )

    def describe(self, data):
        vocab, settings = self._vocab, self.settings
        return {
            'vocab_file': (len(vocab), 'tokens', vocab.idx_to_token),
            'data': None if settings.synthetic_data else describe_files(settings.data),
        }
