"""The block that the command's flags name, and the texts that calibrate INT8."""

import itertools
import logging

import mxnet as mx

from model_zoo.app.trainer import Evaluator
from model_zoo.batches import BucketedLoader, Sample
from model_zoo.errors import CheckpointError, InputError, PretrainedNotFoundError, ZooError
from model_zoo.opening import locate, open_model, open_tokenizer, read_weights
from model_zoo.pretrained import names_files
from model_zoo.pretrained.sentence_modules import copy_sentence_modules, modules_of, normalized
from model_zoo.tasks.classification import ClassificationSettings, ClassificationTask
from model_zoo.tasks.classification_data import custom_task
from model_zoo.tasks.labels import adopt_labels
from model_zoo.tasks.squad import SquadSettings, SquadTask
from model_zoo.tasks.tables import check_files
from model_zoo.tasks.tagging import TaggingSettings, TaggingTask
from model_zoo.tasks.task import Data
from model_zoo.tokenization.vocab_file import find_vocab_file
from model_zoo.util.reading import read_lines

from .onnx_file import Measures

_STRIDE, _QUERY = 128, 64  # of windows over long paragraphs, and the longest question: the usual


def read_measures(args, tokenizer, located):
    """Return what the command's flags say about INT8."""
    field = 'calib_data' if args.calib_data else 'dev_data'
    if not getattr(args, field):
        return None
    check_files(args, 'calib_data', 'dev_data')
    if tokenizer is None:
        raise InputError('needs a vocabulary, and none is known', field=field)
    task = _task(args, located)
    if task is None and args.dev_data:
        raise InputError(
            'is for classification and regression with `text_columns`, for tagging and for '
            'question_answering',
            field='dev_data',
        )
    if task is None:
        calibration, about = _lines(args, tokenizer), {}
    else:
        calibration, about = _of_task(args, tokenizer, task, located)
    batches = list(itertools.islice(calibration.epoch(0), args.num_calib_batches))
    return Measures(batches, bool(args.calib_data), args.calib_mode, **about)


def _loader(args, tokenizer, samples, calibrates=False):
    """Batches; those to calibrate with are drawn at random, always the same ones."""
    return BucketedLoader(
        samples, args.calib_batch_size, shuffle=calibrates, pad_val=tokenizer.pad_token_id
    )


def _lines(args, tokenizer):
    rows = [line.rstrip('\n').split('\t') for _, line in read_lines(args.calib_data)]
    rows = [row for row in rows if any(map(str.strip, row))]
    if not rows or len({len(row) for row in rows}) > 1 or len(rows[0]) > 2:
        raise InputError(
            f'{args.calib_data!r} must have one text per line, or two with a TAB between; or name '
            'its `text_columns`',
            field='calib_data',
        )
    texts, pairs = [row[0] for row in rows], [row[1] for row in rows] if rows[0][1:] else None
    encoded = tokenizer.encode_batch(texts, pairs, max_length=args.max_length, pad=False)
    return _loader(
        args,
        tokenizer,
        [Sample(ids, types, None) for ids, types in zip(encoded.input_ids, encoded.token_types)],
        True,
    )


def _task(args, located):
    """The task whose files --calib_data and --dev_data are; None if they are lines of texts."""
    if args.task == 'tagging':
        return TaggingTask(TaggingSettings(max_length=args.max_length))
    if args.task == 'question_answering':
        return SquadTask(
            SquadSettings(
                max_length=args.max_length,
                doc_stride=_STRIDE,
                output_dir=None,
                max_query_length=min(_QUERY, args.max_length // 2),
            )
        )
    if args.task not in ('classification', 'regression') or not args.text_columns:
        return None
    paths = {'train': args.calib_data or args.dev_data, 'dev': args.dev_data}
    record = adopt_labels(
        custom_task(
            args.text_columns,
            args.label_column,
            regression=args.task == 'regression',
            files={segment: path for segment, path in paths.items() if path},
        ),
        located,
        parameters=args.model_parameters,
    )
    settings = ClassificationSettings(task_name='custom', max_length=args.max_length)
    return ClassificationTask(settings, record)


def _of_task(args, tokenizer, task, located):
    """Return a loader of the calibration texts and, with --dev_data, `Measures`' score."""
    paths = {'calib': args.calib_data or args.dev_data, 'dev': args.dev_data}
    segments = {'calib': 'train' if task.head == 'classification' else 'test', 'dev': 'dev'}
    rows = {name: task.read(path, segments[name]) for name, path in paths.items() if path}
    if task.head == 'tagging':
        task.configure(located)
        task.prepare({'train': rows['calib']})
    calibration = _loader(args, tokenizer, task.encode(rows['calib'], tokenizer), True)
    if 'dev' not in rows:
        return calibration, {}
    samples = task.encode(rows['dev'], tokenizer)
    sets = {'dev': Data(rows['dev'], samples, _loader(args, tokenizer, samples))}
    metric = 'F1' if task.head == 'question_answering' else task.metric  # in percent
    return calibration, {
        'evaluate': lambda forward: Evaluator(task, forward, sets).evaluate(),
        'metric': metric,
        'most_lost': task.most_lost,
    }


_log = logging.getLogger('export')

#: GluonNLP's tasks -> the family's name, and the name of the head's dense layer
_TRAINED = {
    'classification': ('classification', 'classifier'),
    'regression': ('classification', 'classifier'),
    'question_answering': ('question_answering', 'span_classifier'),
}


def locate_model(args):
    """Locate the model that the command's arguments name, with its weights if they are used."""
    is_random = args.task in (None, *_TRAINED) and not names_files(args.model_name)
    weights = args.model_parameters or (None if is_random else True)
    return locate(args.model_name, dataset_name=args.dataset_name, weights=weights, vocab=False)


def task_of(located):
    """The task of the model in a folder, or None if that doesn't say it."""
    if located.model is not None:
        return None
    family, names = located.family, located.architectures
    task = 'model' if family.base.__name__ in names else family.task_named(names)
    if task == 'classification' and len(located.fields.get('id2label') or '12') == 1:
        return 'regression'
    return task


def copy_modules(args, located):
    """Copy the modules of sentence-transformers beside an ONNX file of their transformer."""
    if args.task != 'model' or located.model is not None or located.files.modules is None:
        return []
    return copy_sentence_modules(located.files, args.output_dir)


def build_block(args, located):
    """Return the block that the command's arguments describe, with parameters."""
    is_named = located.model is not None
    block = (_build_named if is_named and args.task in _TRAINED else _open)(args, located)
    if args.task in ('classification', 'regression'):
        if (block.num_labels == 1) != (args.task == 'regression'):
            raise InputError(
                f'is {args.task}, and the model has {block.num_labels} output(s): regression has '
                '1, classification more',
                field='task',
            )
        if args.task == 'regression' and is_named:  # a folder says what it is
            block.config.extras['problem_type'] = 'regression'
    block.cast(args.dtype)
    return block


def _open(args, located):
    """Open a block whose head has no weights, or whose head's weights are in the file."""
    task, _ = _TRAINED.get(args.task, (args.task, None))
    block_class = located.family.base if task == 'model' else located.family.block_class(task)
    options = {'num_labels': args.num_classes, 'vocab_size': args.vocab_size}
    options = {name: value for name, value in options.items() if value is not None}
    if task == 'classification':
        options['dropout'] = args.dropout
    if task == 'model' and args.all_layers:
        options['output_all_encodings'] = True
    if task == 'sentence_embedding':
        options.update(pooling=args.pooling, normalize=args.normalize)
        own = None if args.is_given('pooling') else modules_of(located.files)
        if own is not None:
            options['pooling'] = own.pooling
            options['normalize'] |= normalized in own.steps
    exact = args.model_parameters is None and args.dataset_name is None
    return open_model(located, block_class, exact=exact, tokenizer=False, **options).block


def find_tokenizer(args, block):
    """The tokenizer that belongs to the weights, or None if it isn't known."""
    tokenizer = block.own_tokenizer()
    if tokenizer is not None:
        return tokenizer
    try:
        return open_tokenizer(
            args.model_name, dataset_name=args.dataset_name, weights=args.model_parameters
        )
    except ZooError:
        return None


def _build_named(args, located):
    """Build a task's block of a model's name, for a file of trained parameters or random ones."""
    task, head = _TRAINED[args.task]
    block_class = located.family.block_class(task)
    config_class = block_class.config_class
    fields, options, weights = dict(block_class.architectures[located.model]), {}, None
    if args.vocab_size is not None:
        fields['vocab_size'] = args.vocab_size
    if args.model_parameters:
        any_size = config_class.from_dict({'vocab_size': 1, **fields})
        weights = read_weights(block_class, located.files.weights, any_size)
        tensors = weights.tensors
        if f'^{head}.weight' not in tensors:
            raise CheckpointError(
                f'{weights.path!r} has no {head} for {args.task}: it holds the parameters of '
                'another task, or of BERT alone'
            )
        options['num_labels'] = tensors[f'^{head}.weight'].shape[0]
        if 'word_embed.weight' in tensors:
            fields.setdefault('vocab_size', tensors['word_embed.weight'].shape[0])
        # what the outputs don't need is left out
        options |= {f'use_{part}': True for part in block_class.optional_parts if weights.has(part)}
    if 'vocab_size' not in fields:
        fields['vocab_size'] = _vocab_size(located)
    if task == 'classification':
        usual = options.get('num_labels', 1 if args.task == 'regression' else 2)
        options.update(num_labels=args.num_classes or usual, dropout=args.dropout)
    else:
        options.pop('num_labels', None)
    block = block_class(config_class.from_dict(fields), **options)
    if weights is not None:
        block.load_weights(weights, mx.cpu())
    else:
        _log.warning('`model_parameters` is not given: the parameters are random ones')
        block.initialize(ctx=mx.cpu())
    return block


def _vocab_size(located):
    try:
        file = find_vocab_file(located.model, located.dataset)
    except PretrainedNotFoundError as error:
        raise PretrainedNotFoundError(
            f'{error}; or pass `vocab_size`, the number of its tokens'
        ) from error
    return len(located.family.vocab_of(file))
