"""The originals' flags, command by command, what they mean in our flags, and their scripts."""

import dataclasses
import importlib
import importlib.util
import logging
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

from ..errors import InputError
from ..training.settings import YES_OR_NO, CheckpointSettings, Settings, setting, settings
from . import cli
from .arguments import add_settings, check_at_least_one

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Original:
    """A flag of an original script that is more than another name for a flag of this project.

    Parameters
    ----------
    help : str
        For a flag without effect: why it has none, which is logged when the flag is used.
    ours : str, optional
        The flag that it sets, without dashes.
    type : callable, optional
        Type of its value, as argparse takes it; with `cli.boolean` the flag can also stand alone.
        Without a type the flag takes no value.
    convert : callable, optional
        ``convert(args)`` turns its value into values of our flags.
    with_flag : str, optional
        Another of these flags, whose conversion includes this one.
    """

    help: str
    ours: str | None = None
    value: Any = None
    type: Callable | None = None
    convert: Callable | None = None
    with_flag: str | None = None

    @property
    def has_effect(self):
        return any(part is not None for part in (self.ours, self.convert, self.with_flag))

    @property
    def options(self):
        """Keyword arguments of ``add_argument``."""
        options = {} if self.ours is None else {'dest': self.ours}
        if self.value is not None:
            return {**options, 'action': 'store_const', 'const': self.value}
        if self.type is None:
            return {**options, 'action': 'store_true'}
        if self.type is cli.boolean:
            return {**options, 'type': cli.boolean, 'nargs': '?', 'const': True}
        return options if self.type is str else {**options, 'type': self.type}


def divide_train_batch_size(args):
    """``--train_batch_size``, the examples of an update."""
    check_at_least_one(args, 'train_batch_size')
    if args.train_batch_size:
        parts = (args.accumulate or 1) * len((getattr(args, 'gpus', None) or '0').split(','))
        args.batch_size = args.train_batch_size // parts
        if not args.batch_size:
            raise InputError(
                f'{args.train_batch_size} cannot be divided into '
                f'`gradient_accumulation_steps` {parts}, or GPUs',
                field='train_batch_size',
            )
        if args.train_batch_size % parts:
            logger.warning(
                '`train_batch_size` %d is not a multiple of `gradient_accumulation_steps` %d, or '
                'GPUs: batches have %d examples, an update %d',
                args.train_batch_size,
                parts,
                args.batch_size,
                args.batch_size * parts,
            )


def check_one_process(args):
    """``--local_rank``, which torch's launcher gives to each of its processes."""
    if args.local_rank not in (None, -1):
        raise InputError(
            f'{args.local_rank}: torch starts no processes here; horovodrun does, see '
            '`comm_backend`',
            field='local_rank',
        )


def check_gpu_unwanted(args):
    if args.no_cuda and args.gpu is not None:
        raise InputError('and `gpu` contradict each other: give one', field='no_cuda')


def choose_run(args):
    """Choose whether to train: originals need ``--do_...``; our commands train by default."""
    others = [getattr(args, name, None) for name in ('do_eval', 'do_predict', 'only_inference')]
    trains = args.do_train
    if trains is None:
        trains = not any(others)
    elif trains and args.only_inference:
        raise InputError('and `only_inference` contradict each other: give one', field='do_train')
    if not trains and not any(others):
        raise InputError('nothing to do: give `do_train`, `do_eval`, `do_predict` or several')
    is_squad = 'version_2' in args
    if trains and any(others) and is_squad and args.dev_file is None and args.train_file:
        raise InputError('needs `dev_file`', field='do_predict')
    args.only_inference = not trains


def pad_to_max_len(args):
    if args.pad:
        args.round_to = args.max_length


def go_on_with_output(args):
    """``--as_estimator``: use an existing output folder as a TensorFlow Estimator does."""
    models = args.output_dir, os.path.join(args.output_dir, 'best_model')
    trains = not args.only_inference
    args.keep_state |= args.as_estimator and trains
    _go_on(args, args.output_dir, trains, models)


def go_on_with_pretraining(args):
    """``--as_estimator`` of the pre-training."""
    _go_on(args, args.output_dir, args.train_file, [os.path.join(args.output_dir, 'model')])


def _go_on(args, folder, trains, models):
    if not args.as_estimator:
        return
    if trains:
        checkpoints = os.path.join(folder, 'checkpoints')
        has_training = os.path.isdir(checkpoints) and bool(os.listdir(checkpoints))
        args.resume |= has_training and not args.overwrite_output_dir
        return
    for model in models:
        if os.path.isfile(os.path.join(model, 'config.json')):
            args.model = model
            args.init_checkpoint = args.bert_config_file = args.vocab_file = None
            return


def name_samples(args):
    """``--input_file`` with ``--do_train`` and ``--do_eval``, of the pre-training."""
    if args.input_file is None:
        return
    if not (args.do_train or args.do_eval):
        raise InputError('nothing to do: give `do_train`, `do_eval` or both')
    if args.do_train:
        args.train_file = args.train_file or args.input_file
    if args.do_eval:
        args.dev_file = args.dev_file or args.input_file


def read_warmup_steps(args):
    steps = args.num_warmup_steps
    if steps is None:
        return
    if not 0 <= steps < args.training_steps:
        raise InputError(
            f'{steps}: give a number from 0 to below `num_train_steps` {args.training_steps}',
            field='num_warmup_steps',
        )
    # the schedule rounds it down to whole updates again
    args.warmup_ratio = (steps + 0.5) / args.training_steps if steps else 0.0


_DEBUGGER = {
    'server_ip': Original('there is no remote debugger', type=str),
    'server_port': Original('there is no remote debugger', type=str),
}
_PROCESS = {
    'local_rank': Original(
        '-1 only: horovodrun starts processes here', type=int, convert=check_one_process
    )
}
_CPU = Original('the CPU, as is the default', convert=check_gpu_unwanted)
_OVERWRITE = Original('a folder with results of another run is not refused')
_PYTORCH_BERT = {
    **_PROCESS,
    'fp16': Original('--dtype float16', 'dtype', 'float16'),
    'train_batch_size': Original(
        'examples of an update: --batch_size times --gradient_accumulation_steps',
        type=int,
        convert=divide_train_batch_size,
    ),
}
_NO_TPU = 'there is no TPU: the CPU is used, or the GPU that is asked for'
_TPU = {
    'use_tpu': Original(_NO_TPU, type=cli.boolean),
    **{
        name: Original(_NO_TPU, type=str)
        for name in ('tpu_name', 'tpu_zone', 'gcp_project', 'master', 'num_tpu_cores')
    },
}
_ESTIMATOR = {**_TPU, 'iterations_per_loop': Original('it is of the TPU estimator', type=int)}
_DO_TRAIN = {
    'do_train': Original(
        'train; where it is left out but another such flag is given, or as --do_train=false: not',
        type=cli.boolean,
        convert=choose_run,
    )
}
# of the classifier and of SQuAD: pytorch-pretrained-bert's and Google's
_FINETUNING = {
    **_PYTORCH_BERT,
    **_DEBUGGER,
    **_ESTIMATOR,
    'no_cuda': _CPU,
    'loss_scaling': 'loss_scale',
    'save_checkpoints_steps': 'ckpt_interval',
    'do_lower': 'do_lower_case',
    **_DO_TRAIN,
    'as_estimator': Original(
        'continue the training in --output_dir, if there is one; or evaluate its best model',
        convert=go_on_with_output,
    ),
}
_READING = Original('data is read in another way than in GluonNLP', type=str)

#: command -> flag of an original -> our flag, both without dashes; or an `Original`
TABLE = {
    'bertology': {
        **_PROCESS,
        **_DEBUGGER,
        'no_cuda': _CPU,
        'overwrite_output_dir': _OVERWRITE,
    },
    'create_pretraining_data': {
        'train_corpus': 'input_file',
        'bert_model': 'vocab',
        'dataset_name': 'vocab',
        'vocab_file': 'vocab',
        'epochs_to_generate': 'dupe_factor',
        'do_whole_word_mask': Original('--whole_word_mask', 'whole_word_mask', type=cli.boolean),
        'reduce_memory': Original('the text is read in parts anyhow: see --part_mb'),
    },
    'eval_transfo_xl': _DEBUGGER,
    'extract_features': {
        **_PROCESS,
        **_TPU,
        'no_cuda': _CPU,
        'use_one_hot_embeddings': Original('it is for TPUs', type=cli.boolean),
    },
    'finetune_classifier': {
        **_FINETUNING,
        'cache_dir': Original('what is downloaded is kept in $MXNET_HOME/models', type=str),
        'pad': Original('pad batches to --max_length', convert=pad_to_max_len),
    },
    'finetune_embedding': {},
    'finetune_gpt': {
        **_DO_TRAIN,
        **_DEBUGGER,
        'train_batch_size': 'batch_size',
    },
    'finetune_lm': {
        **_PYTORCH_BERT,
        'do_whole_word_mask': 'whole_word_mask',
        'do_train': Original('it trains in any case'),
        'no_cuda': _CPU,
        'on_memory': Original('the text is read in parts'),
    },
    'finetune_squad': {
        **_FINETUNING,
        'only_predict': 'only_inference',
        'do_predict': Original(
            'write predictions, as is done in any case; alone: --only_inference',
            type=cli.boolean,
            with_flag='do_train',
        ),
        'version_2_with_negative': Original('--version_2', 'version_2', type=cli.boolean),
        'verbose_logging': Original('there are no more messages', type=cli.boolean),
    },
    'finetune_swag': {**_PYTORCH_BERT, **_DO_TRAIN, 'no_cuda': _CPU},
    'finetune_tagging': {
        'train_batch_size': 'batch_size',
        # GluonNLP 0.8's
        'train-path': 'train_file',
        'dev-path': 'dev_file',
        'test-path': 'test_file',
        'seq-len': 'max_length',
        'num-epochs': 'epochs',
        'save-checkpoint-prefix': 'output_dir',
    },
    'run_pretraining': {
        'dataset_name': 'dataset',
        'num_data_workers': 'num_dataset_workers',
        'num_batch_workers': _READING,
        'repeat': _READING,
        'num_max_dataset_cached': _READING,
        'kvstore': _READING,
        'dataset_cached': Original(_READING.help),
        # Google's
        **_ESTIMATOR,
        'train_batch_size': 'batch_size',
        'save_checkpoints_steps': 'ckpt_interval',
        'num_warmup_steps': Original(
            '--warmup_ratio in updates', type=int, convert=read_warmup_steps
        ),
        'input_file': Original('--train_file, --dev_file or both', type=str, convert=name_samples),
        'do_train': Original('train on them', type=cli.boolean, with_flag='input_file'),
        'do_eval': Original('evaluate on them', type=cli.boolean, with_flag='input_file'),
        'as_estimator': Original(
            'continue the training in --output_dir, if there is one; or evaluate its model',
            convert=go_on_with_pretraining,
        ),
    },
    'train_lm': {},
}


@settings()
class TrainsAsOriginal(Settings):
    """Settings for training as pytorch-pretrained-bert and Google do."""

    title = "originals' flags"

    save_last: str | None = setting(
        None,
        "also write the last epoch's model to `output_dir` itself, as pytorch_model.bin, "
        'model.safetensors or model.params; predictions and eval_results.txt come from it',
        choices=['pytorch_pretrained_bert', 'pytorch', 'huggingface', 'native'],
        on_resume='free',
    )
    as_bertadam: bool | None = setting(
        None,
        "update like pytorch-pretrained-bert: clip each parameter's gradient by itself, not "
        'all together, and let the warm-up end within an update',
        flag={'action': 'store_true'},
    )


@settings()
class ReadsCheckpoints(CheckpointSettings, TrainsAsOriginal):
    """The same, of commands that begin from Google's files."""


@settings()
class ClassifiesAsOriginal(ReadsCheckpoints):
    """The same, of the classifier."""

    title = "originals' flags"

    do_predict: bool = setting(
        False,
        'also write test_results.tsv for the test set: one line per sample, one column per '
        'class; alone: `only_inference` on the test set',
        flag=YES_OR_NO,
    )
    do_eval: bool | None = setting(
        None,
        'evaluate; training does so anyway; alone: `only_inference`',
        flag=YES_OR_NO,
        on_resume='free',
    )


@settings()
class ChoosesAsOriginal(TrainsAsOriginal):
    """The same, of multiple choice."""

    title = "originals' flags"

    do_eval: bool = setting(False, 'write predictions; alone: evaluate a model', on_resume='free')


#: command -> the settings that only the originals' scripts have
FIELDS = {
    'finetune_classifier': ClassifiesAsOriginal,
    'finetune_gpt': ChoosesAsOriginal,
    'finetune_squad': ReadsCheckpoints,
    'finetune_swag': ChoosesAsOriginal,
    'run_pretraining': CheckpointSettings,
    **dict.fromkeys(
        ('finetune_embedding', 'finetune_lm', 'finetune_tagging', 'train_lm'), TrainsAsOriginal
    ),
}


def add_originals(parser, command):
    """Add a command's flags in `TABLE` to its parser, which must have its own flags already."""
    groups = {}
    for flag, original in TABLE[command].items():
        if isinstance(original, str):
            parser.add_aliases(original, flag)
            continue
        title = "originals' flags" if original.has_effect else 'accepted, without effect'
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        groups[title].add_argument(f'--{flag}', help=original.help, **original.options)
        parser.rank_last(flag)


def convert_originals(args, command):
    """Convert the originals' flags to our flags, and remove the originals' flags from `args`."""
    rows = {
        flag: original
        for flag, original in TABLE[command].items()
        if not isinstance(original, str) and original.ours is None
    }
    for original in rows.values():
        if original.convert is not None:
            original.convert(args)
    for flag, original in rows.items():
        if not original.has_effect and getattr(args, flag) not in (None, False):
            cli.note(f'--{flag} has no effect: {original.help}')
        delattr(args, flag)


def parse_settings(cls, doc, argv=None, originals=None):
    """Return the settings of a command line, whose flags are the fields of a class.

    `doc` is the command's; its first line is the description. `originals` names the command whose
    originals' flags are accepted, too: only the help of the originals' own scripts shows them.
    """
    parser, made = cli.parser(doc.split('\n')[0]), cls
    if originals in FIELDS:
        made = settings()(type(cls)(cls.__name__, (FIELDS[originals], cls), {'title': cls.title}))
    add_settings(parser, made)
    theirs = made.defaults().keys() - cls.defaults().keys()
    if originals is not None:
        add_originals(parser, originals)
        if not isinstance(argv, cli.Words):
            parser.hide(*theirs, *TABLE[originals])
    args = parser.parse_args(argv)
    if originals is not None:
        convert_originals(args, originals)
    values = vars(args)
    if all(values[name] == made.defaults()[name] for name in theirs):
        made, values = cls, {name: values[name] for name in values.keys() - theirs}
    parsed = made(**values)
    parsed.given = args.given & values.keys()
    return parsed


def training_main(settings_class, task, doc, name):
    """Return the ``main(argv)`` of a command that trains.

    `task` is its class, such as ``'squad.SquadTask'`` in `model_zoo.tasks`; `doc` and `name` are
    the command's.
    """

    def main(argv=None):
        parsed = parse_settings(settings_class, doc, argv, name)
        from .trainer import run_task

        module, task_class = task.split('.')
        module = importlib.import_module(f'model_zoo.tasks.{module}')
        run_task(vars(module)[task_class](parsed))

    return main


# -- scripts --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Script:
    """An original's script: our command `ours` does the same, with the flags `defaults`."""

    ours: str
    defaults: tuple[str, ...] = ()


_EXAMPLES = ('--train_batch_size=32',)
_LABELS = ('--label_order=originals',)
_LAST = ('--save_last=pytorch_pretrained_bert',)
_BERTADAM = (*_EXAMPLES, *_LAST, '--as_bertadam')
_SAMPLES = '--max_length=128', '--max_predictions_per_seq=20'
_GOOGLE = '--do_train=false', '--as_estimator', '--lr=5e-5'

#: original/name of the script, as in scripts/originals/ -> Script
SCRIPTS = {
    'google/create_pretraining_data': Script(
        'create_pretraining_data', (*_SAMPLES, '--dupe_factor=10')
    ),
    'google/extract_features': Script('extract_features'),
    'google/run_classifier': Script(
        'finetune_classifier', (*_GOOGLE, *_EXAMPLES, *_LAST, *_LABELS)
    ),
    'google/run_pretraining': Script(
        'run_pretraining',
        (
            *_GOOGLE,
            *_SAMPLES,
            '--do_eval=false',
            '--batch_size=32',
            '--batch_size_eval=8',
            '--training_steps=100000',
            '--num_warmup_steps=10000',
            '--ckpt_interval=1000',
            '--max_eval_steps=100',
        ),
    ),
    'google/run_squad': Script(
        'finetune_squad', (*_GOOGLE, *_EXAMPLES, *_LAST, '--dev_batch_size=8', '--wd=0.01')
    ),
    'pytorch_pretrained_bert/bertology': Script(
        'bertology',
        ('--model=bert-base-cased-finetuned-mrpc', '--task_name=mrpc', '--batch_size=1'),
    ),
    'pytorch_pretrained_bert/extract_features': Script('extract_features'),
    'pytorch_pretrained_bert/finetune_on_pregenerated': Script('finetune_lm', _BERTADAM),
    'pytorch_pretrained_bert/pregenerate_training_data': Script(
        'create_pretraining_data', (*_SAMPLES, '--dupe_factor=3', '--json_epochs')
    ),
    'pytorch_pretrained_bert/run_classifier': Script(
        'finetune_classifier', (*_BERTADAM, *_LABELS, '--do_train=false', '--lr=5e-5', '--seed=42')
    ),
    'pytorch_pretrained_bert/run_gpt2': Script('generate_gpt2', ('--stop=',)),
    'pytorch_pretrained_bert/run_lm_finetuning': Script('finetune_lm', _BERTADAM),
    'pytorch_pretrained_bert/run_openai_gpt': Script(
        'finetune_gpt', (*_LAST, '--do_train=false', '--model=openai-gpt', '--as_bertadam')
    ),
    'pytorch_pretrained_bert/run_squad': Script(
        'finetune_squad',
        (*_BERTADAM, '--do_train=false', '--dev_batch_size=8', '--seed=42', '--wd=0.01'),
    ),
    'pytorch_pretrained_bert/run_swag': Script('finetune_swag', (*_BERTADAM, '--do_train=false')),
    'pytorch_pretrained_bert/run_transfo_xl': Script('eval_transfo_xl'),
    'pytorch_pretrained_bert/simple_lm_finetuning': Script('finetune_lm', _BERTADAM),
}


@dataclasses.dataclass(frozen=True)
class Converter:
    """One of the forms of pytorch-pretrained-bert's installed converter.

    `names` has its arguments in their order, and the flags that its older scripts have instead: the
    weights, the output, and the configuration, which may be left out if it is the last one.
    """

    source: str
    family: str
    model: str
    names: dict[str, str]
    takes_corpus: bool = False
    ours: str = 'convert_checkpoint'

    def arguments(self, argv):
        """The arguments of our script."""
        parser = cli.parser('Convert weights, as pytorch-pretrained-bert does.')
        parser.add_argument('words', nargs='*', metavar=' '.join(self.names))
        for name, flag in self.names.items():
            parser.add_argument(f'--{flag}', dest=name, help=f'instead of {name}')
        if self.takes_corpus:
            parser.add_argument(
                '--transfo_xl_dataset_file',
                dest='corpus',
                help='a pickled corpus to convert as well',
            )
        values = vars(parser.parse_args(argv))
        words, corpus = values.pop('words'), values.pop('corpus', None)
        for name in self.names:
            if not values[name] and words:
                values[name] = words.pop(0)
        names = list(self.names)
        optional = {names[-1] if names[-1].endswith('CONFIG') else None, corpus and names[0]}
        missing = [name for name in names if not values[name] and name not in optional]
        if missing or words:
            parser.error(f'give {", ".join(missing)}' if missing else f'{words[0]} is too many')
        source, output = list(filter(None, [values[names[0]]])), values[_DUMP]
        if self.takes_corpus and source and is_corpus(source[0]):
            source, corpus = [], source[0]
        config = next(value for name, value in values.items() if name.endswith('CONFIG'))
        config = ['--config', config] if config else []
        # a folder, if the name isn't a file's name
        is_other = pathlib.Path(output).suffix not in ('', '.bin')
        target = [] if is_other else ['--to', 'pytorch_pretrained_bert']
        options = ['--from', self.source, '--family', self.family, '--model', self.model]
        options += ['--corpus', corpus] if corpus else []
        return [*options, *config, *target, *source, output]


def is_corpus(path):
    """Whether a file is Transformer-XL's data: the original looks for "ckpt" in the name."""
    is_weights = os.path.isfile(f'{path}.index') or os.path.isfile(f'{path}.meta')
    return os.path.isfile(path) and not is_weights and 'ckpt' not in path.lower()


_DUMP = 'PYTORCH_DUMP_OUTPUT'
#: name of the form -> Converter
CONVERTERS = {
    'convert_tf_checkpoint_to_pytorch': Converter(
        'tensorflow',
        'bert',
        'BertForPreTraining',
        {
            'TF_CHECKPOINT': 'tf_checkpoint_path',
            'TF_CONFIG': 'bert_config_file',
            _DUMP: 'pytorch_dump_path',
        },
    ),
    'convert_openai_checkpoint': Converter(
        'numpy',
        'gpt',
        'OpenAIGPTModel',
        {
            'OPENAI_GPT_CHECKPOINT_FOLDER_PATH': 'openai_checkpoint_folder_path',
            _DUMP: 'pytorch_dump_folder_path',
            'OPENAI_GPT_CONFIG': 'openai_config_file',
        },
    ),
    'convert_transfo_xl_checkpoint': Converter(
        'tensorflow',
        'transfo_xl',
        'TransfoXLLMHeadModel',
        {
            'TF_CHECKPOINT_OR_DATASET': 'tf_checkpoint_path',
            _DUMP: 'pytorch_dump_folder_path',
            'TF_CONFIG': 'transfo_xl_config_file',
        },
        takes_corpus=True,
    ),
    'convert_gpt2_checkpoint': Converter(
        'tensorflow',
        'gpt2',
        'GPT2Model',
        {
            'TF_CHECKPOINT': 'gpt2_checkpoint_path',
            _DUMP: 'pytorch_dump_folder_path',
            'GPT2_CONFIG': 'gpt2_config_file',
        },
    ),
}


def load_script(path):
    """A script as a module; it finds those beside it, as it does where Python runs it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def original_main(file, name):
    """The ``main(argv)`` of a file in ``scripts/originals/``, named as the original's.

    Where the file is the program, so that its `name` is ``'__main__'``, it is run.
    """
    path = pathlib.Path(file).resolve()
    script = CONVERTERS.get(path.stem) or SCRIPTS[f'{path.parent.name}/{path.stem}']

    def main(argv=None):
        words, ours = sys.argv[1:] if argv is None else list(argv), path.parents[2]
        module = load_script(ours / f'{script.ours}.py')
        if isinstance(script, Converter):
            return module.main(script.arguments(words))
        return module.main(cli.Words(words, script.defaults))

    if name == '__main__':
        cli.run_script(main)
    return main
