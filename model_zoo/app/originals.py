"""The originals' flags, command by command, what they mean in our flags, and their scripts."""

import argparse
import importlib
import importlib.util
import logging
import os
import pathlib
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..errors import InputError
from . import cli
from .arguments import add_settings

logger = logging.getLogger(__name__)


class Original(NamedTuple):
    """A flag of an original script that is more than another name for a flag of this project.

    Parameters
    ----------
    help : str
    options : dict
        Keyword arguments of ``add_argument``.
    convert : callable, optional
        ``convert(args)`` returns the values of our flags that it means. Without it another flag's
        conversion includes this one.
    """

    help: str
    options: Mapping[str, Any]
    convert: Callable = lambda args: {}


def divide_train_batch_size(args):
    """``--train_batch_size``, the examples of an update."""
    total = args.train_batch_size
    if total is None:
        return {}
    parts = (args.accumulate or 1) * len(str(args.gpus or 0).split(','))
    size = total // parts
    if size < 1:
        raise InputError(
            f'{total} cannot be divided into `gradient_accumulation_steps` {parts}, or GPUs',
            field='train_batch_size',
        )
    if total % parts:
        logger.warning(
            '`train_batch_size` %d is not a multiple of `gradient_accumulation_steps` %d, or '
            'GPUs: batches have %d examples, an update %d',
            total,
            parts,
            size,
            size * parts,
        )
    return {'batch_size': size}


def check_one_process(args):
    """``--local_rank``, which torch's launcher gives to each of its processes."""
    if args.local_rank not in (None, -1):
        raise InputError(
            f'{args.local_rank}: torch starts no processes here; horovodrun does, see '
            '`comm_backend`',
            field='local_rank',
        )
    return {}


def choose_run(args):
    """Choose whether to train: originals need ``--do_...``; our commands train by default."""
    values = vars(args)
    others = any(values.get(name) for name in ('do_eval', 'do_predict', 'only_inference'))
    trains = not others if args.do_train is None else args.do_train
    if trains and args.only_inference:
        raise InputError('and `only_inference` contradict each other: give one', field='do_train')
    if not trains and not others:
        raise InputError('nothing to do: give `do_train`, `do_eval`, `do_predict` or several')
    sets = ('dev_file', 'dev_split', 'test_file', 'data_dir', 'n_valid')
    if trains and others and args.train_file and not any(values.get(name) for name in sets):
        raise InputError('there is no dev set: give `dev_file`')
    return {'only_inference': not trains}


def resume_output(args):
    """``--as_estimator``: use an existing output folder as a TensorFlow Estimator does."""
    values, folder = vars(args), args.output_dir
    if not args.as_estimator:
        return {}
    if not args.only_inference if 'only_inference' in values else args.train_file:
        checkpoints = os.path.join(folder, 'checkpoints')
        has_training = os.path.isdir(checkpoints) and bool(os.listdir(checkpoints))
        keeps = {'keep_state': True} if 'keep_state' in values else {}
        return {'resume': args.resume or (has_training and not args.overwrite_output_dir), **keeps}
    for model in (folder, os.path.join(folder, 'best_model'), os.path.join(folder, 'model')):
        if os.path.isfile(os.path.join(model, 'config.json')):
            others = ('init_checkpoint', 'bert_config_file', 'vocab_file')
            return {'model': model, **dict.fromkeys(others)}
    return {}


def name_samples(args):
    """``--input_file`` with ``--do_train`` and ``--do_eval``, of the pre-training."""
    if args.input_file is None:
        return {}
    if not (args.do_train or args.do_eval):
        raise InputError('nothing to do: give `do_train`, `do_eval` or both')
    return {
        'train_file': args.train_file or (args.input_file if args.do_train else None),
        'dev_file': args.dev_file or (args.input_file if args.do_eval else None),
    }


def read_warmup_steps(args):
    """``--num_warmup_steps``, the warm-up in updates."""
    steps = args.num_warmup_steps
    if steps is None:
        return {}
    if not 0 <= steps < args.training_steps:
        raise InputError(
            f'{steps}: must be from 0 to below `training_steps` {args.training_steps}',
            field='num_warmup_steps',
        )
    # the schedule rounds it down to whole updates again
    return {'warmup_ratio': (steps + 0.5) / args.training_steps if steps else 0.0}


_SWITCH = types.MappingProxyType({'action': 'store_true'})
_BOOLEAN = types.MappingProxyType({'type': cli.boolean, 'nargs': '?', 'const': True})
_INT = types.MappingProxyType({'type': int})
_CPU = {
    'no_cuda': Original(
        'the CPU, as is the default', _SWITCH, lambda args: {'gpu': None} if args.no_cuda else {}
    )
}
_PROCESS = {
    'local_rank': Original('-1 only: horovodrun starts processes here', _INT, check_one_process)
}
_PYTORCH_BERT = {
    **_PROCESS,
    **_CPU,
    'fp16': Original(
        '--dtype float16',
        {'action': 'store_const', 'const': 'float16'},
        lambda args: {'dtype': args.fp16} if args.fp16 else {},
    ),
    'train_batch_size': Original(
        'examples of an update: --batch_size times --gradient_accumulation_steps',
        _INT,
        divide_train_batch_size,
    ),
}
_DO_TRAIN = {
    'do_train': Original(
        'train; where it is left out but another such flag is given, or as --do_train=false: not',
        _BOOLEAN,
        choose_run,
    )
}
_DO_EVAL = {'do_eval': Original('evaluate, as training does; alone: --only_inference', _SWITCH)}
_ESTIMATOR = {
    'as_estimator': Original(
        'continue the training in --output_dir, if there is one; or evaluate its model',
        _SWITCH,
        resume_output,
    )
}
_FINETUNING = {**_PYTORCH_BERT, **_DO_TRAIN, **_ESTIMATOR}

#: command -> flag of an original -> `Original`; conversions are called in this order
TABLE = {
    'bertology': {**_PROCESS, **_CPU},
    'extract_features': {**_PROCESS, **_CPU},
    'finetune_classifier': {
        **_FINETUNING,
        'pad': Original(
            'pad batches to --max_length',
            _SWITCH,
            lambda args: {'round_to': args.max_length} if args.pad else {},
        ),
    },
    'finetune_gpt': {**_DO_TRAIN, **_DO_EVAL},
    'finetune_lm': {**_PYTORCH_BERT, 'do_train': Original('train, as in any case', _SWITCH)},
    'finetune_squad': {
        'do_predict': Original(
            'write predictions, as is done in any case; alone: --only_inference', _BOOLEAN
        ),
        **_FINETUNING,
    },
    'finetune_swag': {**_PYTORCH_BERT, **_DO_TRAIN, **_DO_EVAL},
    'run_pretraining': {
        'num_warmup_steps': Original('--warmup_ratio in updates', _INT, read_warmup_steps),
        'input_file': Original('--train_file, --dev_file or both', {}, name_samples),
        'do_train': Original('train on them', _BOOLEAN),
        'do_eval': Original('evaluate on them', _BOOLEAN),
        **_ESTIMATOR,
    },
}
_OF_FINETUNING = {
    'loss_scaling': 'loss_scale',
    'save_checkpoints_steps': 'ckpt_interval',
    'do_lower': 'do_lower_case',
}
#: command -> flag of an original -> our flag
ALIASES = {
    'create_pretraining_data': {
        'train_corpus': 'input_file',
        'bert_model': 'vocab',
        'dataset_name': 'vocab',
        'vocab_file': 'vocab',
        'epochs_to_generate': 'dupe_factor',
    },
    'finetune_classifier': _OF_FINETUNING,
    'finetune_gpt': {'train_batch_size': 'batch_size'},
    'finetune_squad': {**_OF_FINETUNING, 'only_predict': 'only_inference'},
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
        'train_batch_size': 'batch_size',
        'save_checkpoints_steps': 'ckpt_interval',
    },
}
_TPU = 'use_tpu', 'tpu_name', 'tpu_zone', 'gcp_project', 'master', 'num_tpu_cores'
_READING = 'num_batch_workers', 'repeat', 'num_max_dataset_cached', 'kvstore', 'dataset_cached'
#: flag of an original without effect -> the reason, which is logged if the flag is used
IGNORED = {
    **dict.fromkeys(('server_ip', 'server_port'), 'there is no remote debugger'),
    **dict.fromkeys(
        (*_TPU, 'iterations_per_loop', 'use_one_hot_embeddings'),
        'there is no TPU: the CPU is used, or the GPU that is asked for',
    ),
    **dict.fromkeys(_READING, 'data is read in another way than in GluonNLP'),
    **dict.fromkeys(('on_memory', 'reduce_memory'), 'texts and samples are read in parts'),
    'cache_dir': 'what is downloaded is kept in $MXNET_HOME/models',
    'no_resume_state': 'the default, unless --keep_state is given',
    'overwrite_output_dir': 'a folder with results of another run is not refused',
    'verbose_logging': 'there are no more messages',
}


class _Ignored(argparse.Action):
    """Logs that a flag has no effect."""

    def __call__(self, parser, namespace, values, option_string=None):
        cli.note(f'{option_string} has no effect: {IGNORED[option_string[2:]]}')


def parse(parser, argv, command):
    """Parse a command line with the originals' flags of a command, in values of our flags.

    Only the help of the originals' own scripts shows them, without those that have no effect.
    """
    for alias, flag in ALIASES.get(command, {}).items():
        parser.add_aliases(flag, alias)
    add = parser.add_argument_group("originals' flags").add_argument
    converted = TABLE.get(command, {})
    for flag, original in converted.items():
        add(f'--{flag}', help=original.help, **original.options)
    for flag in [flag for flag in IGNORED if parser.flag_of(flag) is None]:
        hidden = dict.fromkeys(('dest', 'help'), argparse.SUPPRESS)
        add(f'--{flag}', action=_Ignored, nargs='?', **hidden)
    if not isinstance(argv, cli.Words):
        parser.hide(*converted)
    args = parser.parse_args(argv)
    for original in converted.values():
        vars(args).update(original.convert(args))
    for flag in converted:
        delattr(args, flag)
    return args


def parse_settings(cls, doc, argv=None, originals=None):
    """Return the settings of a command line, whose flags are the fields of a class.

    `doc` is the command's; its first line is the description. `originals` names the command whose
    originals' flags are accepted, too.
    """
    parser = cli.parser(doc.split('\n')[0])
    add_settings(parser, cls)
    args = parser.parse_args(argv) if originals is None else parse(parser, argv, originals)
    parsed = cls(**vars(args))
    parsed.given = args.given & vars(args).keys()
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


class Script(NamedTuple):
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


class Converter(NamedTuple):
    """One of the forms of pytorch-pretrained-bert's installed converter.

    Its arguments are values in the order of `flags`, or these flags, as in its older scripts. The
    configuration may be left out if it is the last one.
    """

    source: str
    family: str
    model: str
    flags: tuple[str, str, str]
    takes_corpus: bool = False
    ours: str = 'convert_checkpoint'

    def arguments(self, argv):
        """The arguments of our script."""
        parser = cli.parser('Convert weights, as pytorch-pretrained-bert does.')
        parser.add_argument('words', nargs='*', metavar=' '.join(map(str.upper, self.flags)))
        for flag in self.flags:
            parser.add_argument(f'--{flag}', help=f'instead of {flag.upper()}')
        if self.takes_corpus:
            parser.add_argument(
                '--transfo_xl_dataset_file',
                dest='corpus',
                help='a pickled corpus to convert as well',
            )
        values = vars(parser.parse_args(argv))
        words, corpus = values.pop('words'), values.pop('corpus', None)
        for flag in self.flags:
            if not values[flag] and words:
                values[flag] = words.pop(0)
        first, last = self.flags[0], self.flags[-1]
        optional = {last if last.endswith('config_file') else None, corpus and first}
        missing = [flag for flag in self.flags if not values[flag] and flag not in optional]
        if missing or words:
            parser.error(f'give {", ".join(missing)}' if missing else f'{words[0]} is too many')
        output = next(value for flag, value in values.items() if flag.startswith('pytorch_dump'))
        config = next(value for flag, value in values.items() if flag.endswith('config_file'))
        source = [values[first]] if values[first] else []
        if self.takes_corpus and source and is_corpus(source[0]):
            source, corpus = [], source[0]
        options = ['--from', self.source, '--family', self.family, '--model', self.model]
        options += ['--corpus', corpus] if corpus else []
        options += ['--config', config] if config else []
        if pathlib.Path(output).suffix in ('', '.bin'):  # a folder, or a file of this name
            options += ['--to', 'pytorch_pretrained_bert']
        return [*options, *source, output]


def is_corpus(path):
    """Whether a file is Transformer-XL's data: the original looks for "ckpt" in the name."""
    is_weights = os.path.isfile(f'{path}.index') or os.path.isfile(f'{path}.meta')
    return os.path.isfile(path) and not is_weights and 'ckpt' not in path.lower()


_DUMP = 'pytorch_dump_folder_path'
#: name of the form -> Converter
CONVERTERS = {
    'convert_tf_checkpoint_to_pytorch': Converter(
        'tensorflow',
        'bert',
        'BertForPreTraining',
        ('tf_checkpoint_path', 'bert_config_file', 'pytorch_dump_path'),
    ),
    'convert_openai_checkpoint': Converter(
        'numpy',
        'gpt',
        'OpenAIGPTModel',
        ('openai_checkpoint_folder_path', _DUMP, 'openai_config_file'),
    ),
    'convert_transfo_xl_checkpoint': Converter(
        'tensorflow',
        'transfo_xl',
        'TransfoXLLMHeadModel',
        ('tf_checkpoint_path', _DUMP, 'transfo_xl_config_file'),
        takes_corpus=True,
    ),
    'convert_gpt2_checkpoint': Converter(
        'tensorflow', 'gpt2', 'GPT2Model', ('gpt2_checkpoint_path', _DUMP, 'gpt2_config_file')
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
