"""The block that the command's flags describe: the class of a task, and its weights."""

import logging
import os

import mxnet as mx

from model_zoo.errors import CheckpointError, InputError, PretrainedNotFoundError, ZooError
from model_zoo.opening import (
    find_family,
    open_block,
    open_model,
    open_tokenizer,
    read_weights,
)
from model_zoo.pretrained import files_in_folder, names_files, resolve
from model_zoo.registry import get_family, list_families
from model_zoo.tokenization.vocab_file import find_vocab_file

__all__ = ['build_block', 'find_tokenizer', 'tasks']

_log = logging.getLogger('export')

#: GluonNLP's tasks -> the family's name, and that of the head's dense layer
_TRAINED = {
    'classification': ('classification', 'classifier'),
    'regression': ('classification', 'classifier'),
    'question_answering': ('question_answering', 'span_classifier'),
}


def tasks():
    """Names of all families' tasks; ``'model'`` is the backbone."""
    return sorted({'model', *_TRAINED, *(task for each in list_families() for task in each.tasks)})


def build_block(args):
    """The block that the command's arguments describe, with parameters.

    Parameters
    ----------
    args : argparse.Namespace

    Returns
    -------
    ZooBlock
    """
    family = _family(args)
    if 'bert' in (family.name, family.variant_of) and args.task in _TRAINED:
        block = _build_trained(args, family)
    else:
        block = _open(args, family)
    block.cast(args.dtype)
    return block


def _is_folder(name):
    return os.path.isdir(name) and names_files(name, weights=False)


def _family(args):
    if _is_folder(args.model_name):
        files = files_in_folder(args.model_name)
        if files.config is None:
            raise InputError(f'the directory {args.model_name!r} has no config.json')
        if files.weights is None:  # they come from --model_parameters
            return get_family('bert')
    return find_family(args.model_name, args.dataset_name)


def _open(args, family):
    """A block whose head the weights have, or which has none with weights of its own."""
    block_class = family.base if args.task == 'model' else family.block_class(args.task)
    options = {}
    if args.task == 'model' and args.all_layers:
        options['output_all_encodings'] = True
    if args.task == 'sentence_embedding':
        options.update(pooling=args.pooling, normalize=args.normalize)
    if args.num_classes is not None:
        if args.task != 'tagging':
            raise InputError(f'--num_classes is not for {args.task}')
        options['num_labels'] = args.num_classes
    if args.model_parameters is None and args.dataset_name is None:
        return open_block(args.model_name, block_class, exact=True, **options)[0]
    return open_model(
        args.model_name, block_class, dataset_name=args.dataset_name,
        weights=args.model_parameters or True, **options,
    ).block  # fmt: skip


def find_tokenizer(args, block):
    """The tokenizer that belongs to the weights, or None if it isn't known."""
    own = block.own_tokenizer()
    if own is not None:
        return own
    try:
        return open_tokenizer(
            args.model_name, dataset_name=args.dataset_name, weights=args.model_parameters
        )
    except ZooError:
        return None


def _build_trained(args, family):
    task, head = _TRAINED[args.task]
    block_class = family.block_class(task)
    config_class = block_class.config_class
    weights, fields = _find_model(args, block_class)
    outputs, options = None, {}
    if weights:
        any_size = config_class.from_dict({'vocab_size': 1, **fields})
        tensors = read_weights(block_class, weights, any_size).tensors
        if f'^{head}.weight' not in tensors:
            raise CheckpointError(
                f'{weights!r} has no {head} for {args.task}: it holds the parameters of another '
                'task, or of BERT alone'
            )
        outputs = tensors[f'^{head}.weight'].shape[0]
        if 'word_embed.weight' in tensors:
            fields.setdefault('vocab_size', tensors['word_embed.weight'].shape[0])
        for part in block_class.optional_parts:  # what the outputs don't need is left out
            if any(name.startswith(part) for name in tensors):
                options[f'use_{part}'] = True
    if 'vocab_size' not in fields:
        fields['vocab_size'] = _vocab_size(args)
    if task == 'classification':
        options['num_labels'] = _num_labels(args, outputs, weights)
        options['dropout'] = args.dropout
    elif args.num_classes is not None:
        raise InputError(f'--num_classes is not for {args.task}')
    block = block_class(config_class.from_dict(fields), **options)
    if weights:
        block.load_parameters(weights, ctx=mx.cpu(), cast_dtype=True)
    else:
        _log.warning(
            '--model_parameters is not given: the parameters of the export are random ones'
        )
        block.initialize(ctx=mx.cpu())
    return block


def _find_model(args, block_class):
    """Path of the weights or None, and the fields of the configuration as far as known."""
    given = {} if args.vocab_size is None else {'vocab_size': args.vocab_size}
    if _is_folder(args.model_name):
        files = files_in_folder(args.model_name)
        fields = block_class.config_class.from_json_file(files.config).to_dict()
        return args.model_parameters or files.weights, {**fields, **given}
    args.model_name, args.dataset_name = resolve(args.model_name, args.dataset_name)
    return args.model_parameters, {**block_class.architectures[args.model_name], **given}


def _vocab_size(args):
    try:
        vocab = find_vocab_file(args.model_name, args.dataset_name).load()
    except PretrainedNotFoundError as error:
        raise PretrainedNotFoundError(
            f'{error}; or pass --vocab_size, the number of its tokens'
        ) from error
    return len(vocab)


def _num_labels(args, outputs, weights):
    """Number of outputs: of the file, of the flag, or the task's usual one."""
    usual = 1 if args.task == 'regression' else 2
    wanted = args.num_classes or outputs or usual
    if outputs not in (None, wanted):
        raise InputError(f'--num_classes {wanted}: {weights!r} has {outputs}')
    if (wanted == 1) != (args.task == 'regression'):
        raise InputError(
            f'--task {args.task} with {wanted} output(s): regression has 1, classification more'
        )
    return wanted
