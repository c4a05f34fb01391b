"""The flags of the originals' scripts that our commands take besides their own: one table."""

import dataclasses
from typing import Any, Callable, Optional

from ..errors import InputError
from .arguments import check_at_least_one

__all__ = ['TABLE', 'Original', 'add_originals', 'convert_originals']


@dataclasses.dataclass(frozen=True)
class Original:
    """A flag of an original script that is more than another name for one of ours.

    Parameters
    ----------
    help : str
    ours : str, optional
        The flag that it sets, without dashes.
    value : object, optional
        What it sets that to; it takes no value itself, then.
    takes_value : bool
        Of a flag without effect.
    convert : callable, optional
        ``convert(args)`` converts the value to our flag's.
    """

    help: str
    ours: Optional[str] = None
    value: Any = None
    takes_value: bool = False
    convert: Optional[Callable] = None

    @property
    def has_effect(self):
        return self.ours is not None or self.convert is not None


def _divide_train_batch_size(args):
    """Set ``batch_size`` where ``--train_batch_size``, the examples of an update, was given."""
    check_at_least_one(args, 'train_batch_size')
    if args.train_batch_size:
        parts = args.accumulate or 1
        if args.train_batch_size % parts:
            raise InputError(
                f'--train_batch_size {args.train_batch_size} cannot be divided into '
                f'--gradient_accumulation_steps {parts}'
            )
        args.batch_size = args.train_batch_size // parts
    del args.train_batch_size  # else a resumed training could say it the other way only


_PYTORCH = {
    'num_train_epochs': 'epochs',
    'eval_batch_size': 'dev_batch_size',
    'learning_rate': 'lr',
    'warmup_proportion': 'warmup_ratio',
}
_PYTORCH_BERT = {
    **_PYTORCH,
    'gradient_accumulation_steps': 'accumulate',
    'fp16': Original('--dtype float16', 'dtype', 'float16'),
    'train_batch_size': Original(
        'examples of an update: --batch_size times --gradient_accumulation_steps',
        convert=_divide_train_batch_size,
    ),
}
_SWITCH = Original("the originals'")
_READING = Original("of GluonNLP's way to read data", takes_value=True)

#: command -> flag of an original -> ours, both without dashes; or an `Original`
TABLE = {
    'bertology': {'model_name_or_path': 'model', 'bert_model': 'model'},
    'finetune_classifier': {'max_seq_length': 'max_len'},
    'finetune_gpt': {
        **_PYTORCH,
        'model_name': 'gpt_model',
        'train_batch_size': 'batch_size',
        'weight_decay': 'wd',
    },
    'finetune_lm': {
        **_PYTORCH_BERT,
        'weight_decay': 'wd',
        'max_seq_len': 'max_seq_length',
        'do_whole_word_mask': 'whole_word_mask',
        'do_train': _SWITCH,
        'no_cuda': _SWITCH,
        'on_memory': _SWITCH,
    },
    'finetune_squad': {'test_batch_size': 'dev_batch_size', 'only_predict': 'only_inference'},
    'finetune_swag': _PYTORCH_BERT,
    'finetune_tagging': {
        **_PYTORCH,
        'train_batch_size': 'batch_size',
        # GluonNLP 0.8's
        'train-path': 'train_file',
        'dev-path': 'dev_file',
        'test-path': 'test_file',
        'seq-len': 'max_seq_length',
        'dropout-prob': 'dropout_prob',
        'bert-model': 'bert_model',
        'num-epochs': 'epochs',
        'batch-size': 'batch_size',
        'learning-rate': 'lr',
        'warmup-ratio': 'warmup_ratio',
        'save-checkpoint-prefix': 'output_dir',
    },
    'run_pretraining': {
        'dataset_name': 'dataset',
        'num_data_workers': 'num_dataset_workers',
        'num_batch_workers': _READING,
        'repeat': _READING,
        'num_max_dataset_cached': _READING,
        'kvstore': _READING,
        'dataset_cached': dataclasses.replace(_READING, takes_value=False),
    },
    'train_lm': {'model_name': 'model'},
}


def add_originals(parser, command):
    """Let a command take the flags that `TABLE` has for it; its own are to be there already.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        That of `cli.parser`.
    command : str
    """
    groups = {}
    for flag, original in TABLE[command].items():
        if isinstance(original, str):
            parser.add_alias(flag, original)
            continue
        title = "the originals'" if original.has_effect else 'accepted, without effect'
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        options = {}
        if original.value is not None:
            options = {'dest': original.ours, 'action': 'store_const', 'const': original.value}
        elif original.convert is not None:
            options = {'type': int}
        elif not original.takes_value:
            options = {'action': 'store_true'}
        groups[title].add_argument(f'--{flag}', help=original.help, **options)


def convert_originals(args, command):
    """Convert the originals' flags to ours, and remove the originals' from `args`.

    Parameters
    ----------
    args : argparse.Namespace
    command : str

    Raises
    ------
    InputError
        If a value can't be converted; the message names the flag.
    """
    for flag, original in TABLE[command].items():
        if isinstance(original, str):
            continue
        if original.convert is not None:
            original.convert(args)
        elif not original.has_effect:
            delattr(args, flag)
