"""The originals' flags, command by command, what they mean in our flags, and their scripts."""

import argparse
import importlib.util
import json
import logging
import os
import pathlib
import pkgutil
import sys

from ..errors import InputError
from . import cli
from .arguments import add_settings

logger = logging.getLogger(__name__)

# -- what the flags mean: each function returns values of our settings -----------------------------


def divide_batch(args):
    """``--train_batch_size``, the examples of an update."""
    parts = (args.accumulate or 1) * len(str(args.gpus or 0).split(','))
    size, rest = divmod(args.train_batch_size, parts)
    if rest:
        text = '`train_batch_size` is no multiple of `gradient_accumulation_steps`, or GPUs'
        logger.warning('%s: batches have %d examples, an update %d', text, size, size * parts)
    return {'batch_size': size}


def choose_run(args):
    """Choose whether to train: originals need ``--do_...``; our commands train by default."""
    values = vars(args)
    others = any(values.get(name) for name in ('do_eval', 'do_predict', 'only_inference'))
    trains = not others if args.do_train is None else args.do_train
    if not trains and not others:
        raise InputError('nothing to do: give `do_train`, `do_eval`, `do_predict` or several')
    sets = ('dev_file', 'dev_split', 'test_file', 'data_dir', 'n_valid')
    if trains and others and args.train_file and not any(values.get(name) for name in sets):
        raise InputError('there is no dev set: give `dev_file`')
    return {'only_inference': not trains}


def resume_output(args):
    """``--as_estimator``: use an existing output folder as a TensorFlow Estimator does."""
    values, folder = vars(args), args.output_dir
    if not args.only_inference if 'only_inference' in values else args.train_file:
        checkpoints = os.path.join(folder, 'checkpoints')
        has_training = os.path.isdir(checkpoints) and bool(os.listdir(checkpoints))
        keeps = {'keep_state': True} if 'keep_state' in values else {}
        return {'resume': args.resume or (has_training and not args.overwrite_output_dir), **keeps}
    for model in (folder, os.path.join(folder, 'best_model'), os.path.join(folder, 'model')):
        if os.path.isfile(os.path.join(model, 'config.json')):
            return {'model': model, **dict.fromkeys(('checkpoint', 'config_file', 'vocab_file'))}
    return {}


def name_samples(args):
    """``--input_file`` with ``--do_train`` and ``--do_eval``, of the pre-training."""
    if not (args.do_train or args.do_eval):
        raise InputError('nothing to do: give `do_train`, `do_eval` or both')
    train_file = args.train_file or (args.input_file if args.do_train else None)
    dev_file = args.dev_file or (args.input_file if args.do_eval else None)
    return {'train_file': train_file, 'dev_file': dev_file}


def read_warmup_steps(args):
    """``--num_warmup_steps``, the warm-up in updates."""
    steps = args.num_warmup_steps
    # the schedule rounds it down to whole updates again
    return {'warmup_ratio': (steps + 0.5) / args.training_steps if steps else 0.0}


#: flag -> the function that converts its value; they are called in this order
CONVERSIONS = {
    'train_batch_size': divide_batch,
    'num_warmup_steps': read_warmup_steps,
    'input_file': name_samples,
    'as_estimator': resume_output,
    'pad': lambda args: {'round_to': args.max_length},
    'label_order': lambda args: {'sort_labels': args.label_order == 'originals'},
}

# -- tables ----------------------------------------------------------------------------------------

# `flags` are more than other names of our flags; they have their arguments of `add_argument`, and a
# switch its default. A command has `flags_of` these, and `aliases`: an original's flag and ours.
# Flags `without_effect` stand behind the reason, which is logged if they are used. `scripts`, as in
# scripts/originals/, have our command, and flags with which it does the same. `converters`, forms
# of pytorch-pretrained-bert's installed converter, have our converter's flags, and their own
# arguments: values in this order, or flags, as in its older scripts.
_TABLES = json.loads(pathlib.Path(__file__).with_name('originals.json').read_text('utf-8'))
SCRIPTS, CONVERTERS = _TABLES['scripts'], _TABLES['converters']
IGNORED = {flag: why for why, flags in _TABLES['without_effect'].items() for flag in flags.split()}
_RUNS = {'do_train', 'do_eval', 'do_predict'}


def _arguments_of(flag):
    """Return the arguments of ``add_argument`` for one of the `flags`."""
    options = dict(_TABLES['flags'][flag])
    if 'switch' in options:
        options.update(type=cli.boolean, nargs='?', const=True, default=options.pop('switch'))
    return {**options, 'type': int} if options.get('type') == 'int' else options


class _Ignored(argparse.Action):
    """Logs that a flag has no effect."""

    def __call__(self, parser, namespace, values, option_string=None):
        cli.note(f'{option_string} has no effect: {IGNORED[option_string[2:]]}')


def parse(parser, argv, command):
    """Parse a command line with the originals' flags of a command, in values of our flags.

    Only the help of the originals' own scripts shows them, without those that have no effect.
    """
    for pair in _TABLES['aliases'].get(command, '').split():
        alias, flag = pair.split('=')
        parser.add_aliases(flag, alias)
    add = parser.add_argument_group("originals' flags").add_argument
    flags = _TABLES['flags_of'].get(command, '').split()
    hidden = {} if isinstance(argv, cli.Words) else {'help': argparse.SUPPRESS}
    for flag in flags:
        add(f'--{flag}', **{**_arguments_of(flag), **hidden})
    for flag in [flag for flag in IGNORED if parser.flag_of(flag) is None]:
        add(f'--{flag}', action=_Ignored, nargs='?', dest=argparse.SUPPRESS, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    values = vars(args)
    if 'do_train' in flags and 'only_inference' in values:
        values.update(choose_run(args))
        args.given.update(['only_inference'] if args.given & _RUNS else ())
    for flag, convert in CONVERSIONS.items():
        if flag in flags and values[flag] is not None and values[flag] is not False:
            converted = convert(args)
            values.update(converted)
            args.given.update(converted if flag in args.given else ())
    return args


def translate(cls, doc, argv=None, command=None):
    """Return the settings of a command line, and the values of flags that aren't settings.

    The flags are the fields of the class `cls`, and the originals' flags of the `command`. `doc` is
    the command's; its first line is the description.
    """
    parser = cli.parser(doc.split('\n')[0])
    add_settings(parser, cls)
    args = parser.parse_args(argv) if command is None else parse(parser, argv, command)
    fields = cls.defaults().keys()
    values = {name: vars(args).pop(name) for name in fields}
    for name in args.of_file & fields:  # the command line overrides it
        if not cls.rivals(name).isdisjoint(args.given - args.of_file):
            del values[name]
    return cls(args.given & values.keys(), **values), args


def parse_settings(cls, doc, argv=None, command=None):
    """Return the settings of a command line; see `translate`."""
    return translate(cls, doc, argv, command)[0]


def training_main(program, settings_class, task, doc, name, trainer='trainer.Trainer'):
    """Return the ``main(argv)`` of a command that trains; call it if the file is the program.

    `program` is the file's ``__name__``, `task` the class of the task, such as
    ``'squad.SquadTask'`` in `model_zoo.tasks`, and `trainer` one of this package; `doc` and `name`
    are the command's.
    """

    def main(argv=None):
        parsed = parse_settings(settings_class, doc, argv, name)
        from .trainer import run_task

        names = f'model_zoo.tasks.{task}', f'model_zoo.app.{trainer}'
        task_class, trainer_class = map(pkgutil.resolve_name, names)
        run_task(task_class(parsed), trainer_class)

    if program == '__main__':
        cli.run_script(main)
    return main


# -- scripts --------------------------------------------------------------------------------------


def convert_arguments(form, argv):
    """Translate the arguments of a form in `CONVERTERS` for ``convert_checkpoint.py``.

    The configuration may be left out if it is the last one.
    """
    options, flags = map(str.split, CONVERTERS[form])
    parser = cli.parser('Convert weights, as pytorch-pretrained-bert does.')
    parser.add_argument('words', nargs='*', metavar=' '.join(flags).upper())
    for flag in flags:
        parser.add_argument(f'--{flag}', help=f'instead of {flag.upper()}')
    has_corpus = 'transfo_xl' in options
    if has_corpus:
        parser.add_argument('--transfo_xl_dataset_file', help='a pickled corpus to convert as well')
    values = vars(parser.parse_args(argv))
    words, corpus = values['words'], values.get('transfo_xl_dataset_file')
    for flag in flags:
        if not values[flag] and words:
            values[flag] = words.pop(0)
    first, last = flags[0], flags[-1]
    optional = {last if last.endswith('config_file') else None, corpus and first}
    missing = [flag for flag in flags if not values[flag] and flag not in optional]
    if missing or words:
        parser.error(f'give {", ".join(missing)}' if missing else f'{words[0]} is too many')
    config = next(values[flag] for flag in flags if flag.endswith('config_file'))
    output = next(values[flag] for flag in flags if flag.startswith('pytorch_dump'))
    source = values[first]
    if has_corpus and source and is_corpus(source):
        source, corpus = None, source
    options += ['--corpus', corpus] if corpus else []
    options += ['--config', config] if config else []
    if pathlib.Path(output).suffix in ('', '.bin'):  # a folder, or a file of this name
        options += ['--to', 'pytorch_pretrained_bert']
    return [*options, *filter(None, [source]), output]


def is_corpus(path):
    """Return whether a file is Transformer-XL's data: the original looks for "ckpt" in the name."""
    is_weights = os.path.isfile(f'{path}.index') or os.path.isfile(f'{path}.meta')
    return os.path.isfile(path) and not is_weights and 'ckpt' not in path.lower()


def load_script(path):
    """Load a script as a module; it finds those beside it, as it does where Python runs it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def original_main(file, name):
    """Return the ``main(argv)`` of a file in ``scripts/originals/``, named as the original's.

    Where the file is the program, so that its `name` is ``'__main__'``, it is run.
    """
    path = pathlib.Path(file).resolve()
    scripts = path.parents[2]

    def main(argv=None):
        words = sys.argv[1:] if argv is None else list(argv)
        if path.stem in CONVERTERS:
            words = convert_arguments(path.stem, words)
            return load_script(scripts / 'convert_checkpoint.py').main(words)
        ours, *preset = SCRIPTS[f'{path.parent.name}/{path.stem}'].split()
        return load_script(scripts / f'{ours}.py').main(cli.Words(words, preset))

    if name == '__main__':
        cli.run_script(main)
    return main
