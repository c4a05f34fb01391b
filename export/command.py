"""Read what the command's flags name: the block, and the texts that calibrate INT8."""

import itertools
import logging

import mxnet as mx

from model_zoo.app.arguments import check_at_least_one
from model_zoo.app.trainer import Evaluator
from model_zoo.batches import BucketedLoader, Sample
from model_zoo.errors import CheckpointError, InputError, PretrainedNotFoundError, ZooError
from model_zoo.opening import locate, open_model, open_tokenizer, read_weights
from model_zoo.pretrained import is_place
from model_zoo.pretrained.sentence_modules import copy_sentence_modules, modules_of, normalized
from model_zoo.registry import list_families
from model_zoo.tasks.classification import ClassificationSettings, ClassificationTask
from model_zoo.tasks.classification_data import custom_task
from model_zoo.tasks.labels import adopt_labels
from model_zoo.tasks.squad import SquadSettings, SquadTask
from model_zoo.tasks.tables import check_files
from model_zoo.tasks.tagging import TaggingSettings, TaggingTask
from model_zoo.tasks.task import Data
from model_zoo.tokenization.vocab_file import find_vocab_file
from model_zoo.util.choices import CALIBRATION_METHODS
from model_zoo.util.reading import read_lines

from .onnx_file import Measures

_STRIDE, _QUERY = 128, 64  # of windows over long paragraphs, and the longest question: the usual


def add_int8_arguments(parser):
    """Add the flags that INT8 in ONNX is calibrated and measured with."""
    add = parser.add_argument_group('--precision int8').add_argument
    add(
        '--calib_data',
        help='file of texts for the ranges of activations (static INT8; without it '
        "each batch has its own): one text per line, or two separated by a tab; CoNLL's format for "
        "tagging, SQuAD's for question_answering",
    )
    add(
        '--dev_data',
        help='file with labels, to score INT8; layers that cost more than half a '
        'point stay in float32',
    )
    add(
        '--text_columns',
        nargs='+',
        help='TSV files for classification and regression: name or number of one column, or of two',
    )
    add('--label_column', help='the same for the labels')
    add('--num_calib_batches', type=int, default=8, help='batches of --calib_data')
    add('--calib_batch_size', type=int, default=32, help='texts per batch')
    add(
        '--calib_mode',
        default=CALIBRATION_METHODS[0],
        choices=CALIBRATION_METHODS,
        help='how to find the ranges',
    )
    add('--max_length', type=int, default=128, help='maximum tokens per text')
    parser.add_aliases('max_length', 'max_len')


def check_int8_arguments(args):
    """Raise InputError, naming the flag, if the flags don't agree."""
    check_at_least_one(args, 'num_calib_batches', 'calib_batch_size', 'max_length')
    check_files(args, 'calib_data', 'dev_data')
    given = [name for name in ('calib_data', 'dev_data') if getattr(args, name)]
    if given and args.precision != 'int8':
        raise InputError(f'--{given[0]} is for INT8: add --format onnx --precision int8')
    for name in ('text_columns', 'label_column'):
        if getattr(args, name) and not given:
            raise InputError(f'--{name} is of --calib_data and --dev_data: give one')
    if bool(args.text_columns) != bool(args.label_column):
        raise InputError('--text_columns and --label_column go together')


def read_measures(args, tokenizer, located):
    """Return what the command's flags say about INT8."""
    if not (args.calib_data or args.dev_data):
        return None
    if tokenizer is None:
        raise InputError('--calib_data and --dev_data need a vocabulary, and none is known')
    task = _task(args, located)
    if task is None and args.dev_data:
        raise InputError(
            '--dev_data is for classification and regression with --text_columns, for tagging '
            'and for question_answering'
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
            f'{args.calib_data!r}: give one text per line, or two with a TAB between, or '
            '--text_columns'
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


def tasks():
    """Names of all families' tasks; ``'model'`` is the backbone."""
    names = (task for family in list_families() for task in family.tasks)
    return sorted({'model', *_TRAINED, *names})


def locate_model(args):
    """Locate the model that the command's arguments name."""
    weights = True if is_place(args.model_name) and args.model_parameters is None else None
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
    """The block that the command's arguments describe, with parameters."""
    family = located.family
    if 'bert' in (family.name, family.variant_of) and args.task in _TRAINED:
        block = _build_trained(args, located)
    else:
        block = _open(args, located)
    if args.task == 'regression' and located.model is not None:  # a folder says what it is
        block.config.extras['problem_type'] = 'regression'
    block.cast(args.dtype)
    return block


def _open(args, located):
    """Open a block whose head has no weights, or whose head's weights are in the file."""
    family = located.family
    block_class = family.base if args.task == 'model' else family.block_class(args.task)
    options = {}
    if args.task == 'model' and args.all_layers:
        options['output_all_encodings'] = True
    if args.task == 'sentence_embedding':
        options.update(pooling=args.pooling, normalize=args.normalize)
        own = None if args.is_given('pooling') else modules_of(located.files)
        if own is not None:
            options['pooling'] = own.pooling
            options['normalize'] |= normalized in own.steps
    if args.num_classes is not None:
        if args.task != 'tagging':
            raise InputError(f'--num_classes is not for {args.task}')
        options['num_labels'] = args.num_classes
    return open_model(
        args.model_name,
        block_class,
        dataset_name=args.dataset_name,
        weights=args.model_parameters or True,
        exact=args.model_parameters is None and args.dataset_name is None,
        tokenizer=False,
        **options,
    ).block


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


def _build_trained(args, located):
    task, head = _TRAINED[args.task]
    block_class = located.family.block_class(task)
    config_class = block_class.config_class
    path, fields, weights = args.model_parameters, {}, None
    if located.model is None:
        path = path or located.files.weights
        fields = config_class.from_fields(located.fields, located.files.config).to_dict()
    else:
        fields.update(block_class.architectures[located.model])
    if args.vocab_size is not None:
        fields['vocab_size'] = args.vocab_size
    outputs, options = None, {}
    if path:
        any_size = config_class.from_dict({'vocab_size': 1, **fields})
        weights = read_weights(block_class, path, any_size)
        tensors = weights.tensors
        if f'^{head}.weight' not in tensors:
            raise CheckpointError(
                f'{path!r} has no {head} for {args.task}: it holds the parameters of another '
                'task, or of BERT alone'
            )
        outputs = tensors[f'^{head}.weight'].shape[0]
        if 'word_embed.weight' in tensors:
            fields.setdefault('vocab_size', tensors['word_embed.weight'].shape[0])
        # what the outputs don't need is left out
        options = {f'use_{part}': True for part in block_class.optional_parts if weights.has(part)}
    if 'vocab_size' not in fields:
        fields['vocab_size'] = _vocab_size(located)
    if task == 'classification':
        options['num_labels'] = _num_labels(args, outputs, path)
        options['dropout'] = args.dropout
    elif args.num_classes is not None:
        raise InputError(f'--num_classes is not for {args.task}')
    block = block_class(config_class.from_dict(fields), **options)
    if weights is not None:
        block.load_weights(weights, mx.cpu())
    else:
        _log.warning(
            '--model_parameters is not given: the parameters of the export are random ones'
        )
        block.initialize(ctx=mx.cpu())
    return block


def _vocab_size(located):
    try:
        file = find_vocab_file(located.model, located.dataset)
    except PretrainedNotFoundError as error:
        raise PretrainedNotFoundError(
            f'{error}; or pass --vocab_size, the number of its tokens'
        ) from error
    return len(located.family.vocab_of(file))


def _num_labels(args, outputs, path):
    """Number of outputs: of the file, of the flag, or the task's usual one."""
    usual = 1 if args.task == 'regression' else 2
    wanted = args.num_classes or outputs or usual
    if outputs not in (None, wanted):
        raise InputError(f'--num_classes {wanted}: {path!r} has {outputs}')
    if (wanted == 1) != (args.task == 'regression'):
        raise InputError(
            f'--task {args.task} with {wanted} output(s): regression has 1, classification more'
        )
    return wanted
