"""The originals' scripts by their names, and their defaults where ours are others."""

import dataclasses
import importlib.util
import os
import pathlib
import sys
from typing import Dict, Tuple

from . import cli

__all__ = [
    'CONVERTERS',
    'SCRIPTS',
    'Converter',
    'Script',
    'load_script',
    'original_main',
]


@dataclasses.dataclass(frozen=True)
class Script:
    """An original's script: `ours` does the same, with the flags `defaults`."""

    ours: str
    defaults: Tuple[str, ...] = ()


_EXAMPLES = '--train_batch_size=32',
_LABELS = '--label_order=originals',
_LAST = '--save_last=pytorch_pretrained_bert',
_BERTADAM = (*_EXAMPLES, *_LAST, '--as_bertadam')
_SAMPLES = '--max_seq_length=128', '--max_predictions_per_seq=20'
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
            *_GOOGLE, *_SAMPLES, '--do_eval=false', '--batch_size=32', '--batch_size_eval=8',
            '--num_steps=100000', '--num_warmup_steps=10000', '--ckpt_interval=1000',
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
        'finetune_classifier',
        (*_BERTADAM, *_LABELS, '--do_train=false', '--lr=5e-5', '--seed=42'),
    ),
    'pytorch_pretrained_bert/run_gpt2': Script('generate_gpt2'),
    'pytorch_pretrained_bert/run_lm_finetuning': Script('finetune_lm', _BERTADAM),
    'pytorch_pretrained_bert/run_openai_gpt': Script(
        'finetune_gpt', (*_LAST, '--model_name=openai-gpt', '--as_bertadam')
    ),
    'pytorch_pretrained_bert/run_squad': Script(
        'finetune_squad',
        (*_BERTADAM, '--do_train=false', '--dev_batch_size=8', '--seed=42', '--wd=0.01'),
    ),
    'pytorch_pretrained_bert/run_swag': Script('finetune_swag', _BERTADAM),
    'pytorch_pretrained_bert/run_transfo_xl': Script('eval_transfo_xl'),
    'pytorch_pretrained_bert/simple_lm_finetuning': Script('finetune_lm', _BERTADAM),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Converter:
    """One of the forms of pytorch-pretrained-bert's installed converter.

    `names` has its arguments in their order, and the flags that its older scripts have instead: the
    weights, the output, and the configuration, which may be left out if it is the last one.
    """

    source: str
    family: str
    model: str
    names: Dict[str, str]
    takes_corpus: bool = False
    ours: str = 'convert_checkpoint'

    def arguments(self, argv):
        """The arguments of our script."""
        parser = cli.parser('Convert weights, as pytorch-pretrained-bert does.')
        parser.add_argument('words', nargs='*', metavar=' '.join(self.names))
        for name, flag in self.names.items():
            parser.add_argument(f'--{flag}', dest=name, help=f'instead of {name}')
        if self.takes_corpus:
            parser.add_argument('--transfo_xl_dataset_file', dest='corpus',
                                help='a pickled corpus, converted besides')  # fmt: skip
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
        # a folder, where the name isn't that of a file
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
        cli.Parser.preset = script.defaults
        try:
            return module.main(words)
        finally:
            cli.Parser.preset = ()

    if name == '__main__':
        sys.exit(cli.run(main))
    return main
