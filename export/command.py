"""The block that the command's flags name, and the texts that calibrate INT8."""

import itertools
import logging

import mxnet as mx

from model_zoo.app.texts import read_file
from model_zoo.batches import BucketedLoader, Sample
from model_zoo.errors import CheckpointError, InputError, ZooError
from model_zoo.opening import locate, open_model, open_tokenizer
from model_zoo.pretrained import names_files
from model_zoo.pretrained.sentence_modules import copy_sentence_modules, modules_of, normalized

from .onnx_file import Measures

_log = logging.getLogger('export')

#: GluonNLP's tasks -> the family's name, and the name of the head's dense layer
_TRAINED = {
    'classification': ('classification', 'classifier'),
    'regression': ('classification', 'classifier'),
    'question_answering': ('question_answering', 'span_classifier'),
}


def read_measures(args, tokenizer):
    """Return the texts that the command's flags name to calibrate INT8 with; None without them."""
    if not args.calib_data:
        return None
    if tokenizer is None:
        raise InputError('needs a vocabulary, and none is known', field='calib_data')
    columns = args.text_columns or ()
    rows = [row.text for row in read_file(args.calib_data, *columns[:2], pairs=None)]
    rows = [row if isinstance(row, tuple) else tuple(row.split('\t')) for row in rows]
    rows = [row for row in rows if any(map(str.strip, row))]
    if not rows or len({len(row) for row in rows}) > 1 or max(len(columns), len(rows[0])) > 2:
        problem = 'must have one text per line, or two with a TAB between, or `text_columns`'
        raise InputError(problem, field='calib_data')
    encoded = tokenizer.encode_batch(*map(list, zip(*rows)), max_length=args.max_length, pad=False)
    samples = [Sample(*row, None) for row in zip(encoded.input_ids, encoded.token_types)]
    size, padding = args.calib_batch_size, tokenizer.pad_token_id
    loader = BucketedLoader(samples, size, shuffle=True, pad_val=padding)
    # drawn at random, always the same ones
    return Measures(list(itertools.islice(loader.epoch(0), args.num_calib_batches)))


def locate_model(args):
    """Locate the model that the command's arguments name, with its weights if they are used."""
    weights = args.model_parameters or True
    if not args.model_parameters and not names_files(args.model_name):
        # without a task, there will be an error; and the usual tasks have random parameters
        weights = None if args.task is None else args.task not in _TRAINED
    return locate(args.model_name, dataset_name=args.dataset_name, weights=weights, vocab=False)


def task_of(located):
    """Return the task of the model in a folder, or None if that doesn't say it."""
    if located.model is not None:
        return None
    family, names = located.family, located.architectures
    task = 'model' if family.base.__name__ in names else family.task_named(names)
    if task == 'classification' and len(located.fields.get('id2label') or '12') == 1:
        return 'regression'
    return task


def copy_modules(args, located, folder):
    """Copy the modules of sentence-transformers beside an ONNX file of their transformer."""
    if args.task != 'model' or located.model is not None or located.files.modules is None:
        return []
    return copy_sentence_modules(located.files, folder)


def build_block(args, located):
    """Return the block that the command's arguments describe, with parameters."""
    is_named = located.model is not None
    is_trained = is_named and args.task in _TRAINED and args.model_parameters
    block = (_build_trained if is_trained else _open)(args, located)
    if located.is_new:
        _log.warning('`model_parameters` is not given: the parameters are random ones')
    if args.task in ('classification', 'regression'):
        if (block.num_labels == 1) != (args.task == 'regression'):
            problem = f'{args.task} does not fit a model with {block.num_labels} output(s)'
            raise InputError(problem, field='task')
        if args.task == 'regression' and is_named:  # a folder says what it is
            block.config.extras['problem_type'] = 'regression'
    block.cast(args.dtype)
    return block


def _open(args, located):
    """Open a block whose head has no weights, or whose head's weights are in the file."""
    task, _ = _TRAINED.get(args.task, (args.task, None))
    block_class = located.family.base if task == 'model' else located.family.block_class(task)
    options = {}
    if task == 'classification':
        options['dropout'] = args.dropout
        if located.is_new:
            options['num_labels'] = 1 if args.task == 'regression' else 2
    if task == 'sentence_embedding':
        options.update(pooling=args.pooling, normalize=args.normalize)
        own = None if 'pooling' in args.given else modules_of(located.files)
        if own is not None:
            options['pooling'] = own.pooling
            options['normalize'] |= normalized in own.steps
    exact = args.model_parameters is None and args.dataset_name is None
    return open_model(located, block_class, exact=exact, tokenizer=False, **options).block


def find_tokenizer(args, block, located):
    """Return the tokenizer that belongs to the weights, or None if it isn't known."""
    options = {'dataset_name': args.dataset_name, 'weights': args.model_parameters}
    try:
        tokenizer = block.own_tokenizer() or open_tokenizer(args.model_name, **options)
    except ZooError:
        return None
    own = modules_of(located.files) if args.task == 'sentence_embedding' else None
    if own is not None and own.max_length is not None:  # no file beside the graph's says it
        tokenizer.max_len = min(own.max_length, tokenizer.max_len)
    return tokenizer


def _build_trained(args, located):
    """Build a task's block of a model's name, for a file of trained parameters."""
    task, head = _TRAINED[args.task]
    block_class = located.family.block_class(task)
    make_config = block_class.config_class.from_dict
    fields = {'vocab_size': 1, **block_class.architectures[located.model]}
    weights = block_class.read_weights(located.files.weights, make_config(fields))
    count = weights.tensors.get(f'^{head}.bias')
    if count is None:
        raise CheckpointError(f'{weights.path!r} has no {head} for {args.task}')
    if fields['vocab_size'] == 1:
        fields['vocab_size'] = len(weights.tensors['word_embed.weight'])
    options = {}
    if task == 'classification':
        options = {'dropout': args.dropout, 'num_labels': len(count)}
    block = block_class(make_config(fields), **options)
    block.load_weights(weights, mx.cpu())
    return block
