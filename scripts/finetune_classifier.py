"""Fine-tune BERT for the classification or regression of sentences and sentence pairs.

    python finetune_classifier.py --task_name MRPC --batch_size 32 --epochs 3 --lr 2e-5
    python finetune_classifier.py --task_name custom --train_file train.tsv --dev_file dev.tsv \\
        --text_columns text --label_column label

The flags and their defaults are those of GluonNLP 0.10's script of this name. ``--output_dir``
receives the log, ``results.json``, ``curves.png``, the parameters after the last epochs and the
best one, ``best_model/`` for ``BertForSequenceClassification.from_pretrained``, the predictions on
the test set in GLUE's form with their probabilities beside them, and checkpoints for ``--resume``.
"""

import inspect
import json
import logging
import math
import os
import re
import sys
import time
import zlib

import mxnet as mx
import numpy as np
from scipy.special import log_softmax, softmax

import model_zoo
from bert import BertForSequenceClassification
from bert.tokenizer import open_tokenizer
from model_zoo import cli
from model_zoo.checkpoint import read_tensors
from model_zoo.data import (
    BucketedLoader,
    ClassifierFeatures,
    compute_metrics,
    custom_task,
    get_task,
    has_segment,
    infer_labels,
    list_tasks,
    read_examples,
)
from model_zoo.errors import CheckpointError, InputError, UnknownNameError
from model_zoo.files import atomic_write, make_writable_dir
from model_zoo.optimizer import disable_weight_decay, finetune_schedule
from model_zoo.pretrained import find_vocab_file, resolve
from model_zoo.training import (
    Callback,
    CheckpointStore,
    ProgressLogger,
    TensorBoardWriter,
    TrainingLoop,
    plot_curves,
    predict,
    seed_all,
    write_results,
)

logger = logging.getLogger('finetune_classifier')

# What may differ when a training is resumed: where things are, and what is shown of them.
NOT_OF_THE_TRAINING = {
    'data_dir',
    'deploy',
    'dev_batch_size',
    'dev_file',
    'gpu',
    'keep_checkpoints',
    'log_interval',
    'model_prefix',
    'only_inference',
    'output_dir',
    'resume',
    'tensorboard',
    'test_file',
    'train_file',
    'vocab_file',
}


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument

    add('--task_name', required=True, help=f'one of {", ".join(list_tasks())}, or custom')
    add('--data_dir', help="folder of the task's TSV files; default: GluonNLP downloads them")
    add('--train_file', help='of a custom task; TSV files in UTF-8')
    add('--dev_file', help='of a custom task')
    add('--test_file', help='of a custom task')
    add('--text_columns', nargs='+', help='custom task: name or number of one column, or of two')
    add('--label_column', help='custom task: name or number of the column; numbers begin at 0')
    add('--labels', nargs='+', help='custom task: default: those of the training file, sorted')
    add('--header', action='store_true', help='files with numbered columns have a first line')
    add('--regression', action='store_true', help='custom task: the labels are numbers')

    add('--bert_model', default='bert_12_768_12', help='name, or a folder of save_pretrained')
    add('--bert_dataset', help="the data set it was pretrained on; default: the model's usual one")
    add('--pretrained_bert_parameters', help='file of pretrained parameters of BERT')
    add('--model_parameters', help='file of parameters of BERT and classifier, to begin from')
    add('--from_scratch', action='store_true', help='begin from random parameters')
    add('--vocab_file', help='vocab.txt to use in the place of the one of --bert_dataset')
    add('--hparams', nargs='+', help="changes of the model's size, as num_layers=2,units=128")
    add('--dtype', default='float32', choices=['float32', 'float16', 'bfloat16'])
    add('--gpu', type=int, help='number of the GPU; default: the CPU')

    add('--optimizer', default='bertadam')
    add('--epochs', type=int, default=3)
    add('--training_steps', type=int, help='number of updates; --epochs is ignored then')
    add('--batch_size', type=int, default=32)
    add('--dev_batch_size', type=int, default=8, help='for dev and test sets')
    add('--accumulate', type=int, help='number of batches whose gradients make one update')
    add('--lr', type=float, default=3e-5, help='highest learning rate')
    add('--epsilon', type=float, default=1e-6, help='of the optimizer')
    add('--wd', type=float, default=0.01, help='weight decay; none on biases and layer norms')
    add('--warmup_ratio', type=float, default=0.1, help='part of the updates with a growing rate')
    add('--max_len', type=int, default=128, help='of the tokens, the special ones counted')
    add('--round_to', type=int, help='pad batches to multiples of this length')
    add('--seed', type=int, default=2)
    add('--early_stop', type=int, help='stop after so many epochs without a better one')

    add('--output_dir', default='./output_dir')
    add('--log_interval', type=int, default=10, help='in updates')
    add('--tensorboard', metavar='DIR', help="write TensorBoard's event files")
    add('--keep_checkpoints', type=int, default=2, help='of how many last epochs to keep files')
    add('--resume', action='store_true', help='go on from the newest checkpoint of --output_dir')
    add('--only_inference', action='store_true', help='evaluate the dev set and predict the test')
    add('--deploy', action='store_true', help='--only_inference with an exported model')
    add('--model_prefix', help='--deploy reads PREFIX-symbol.json and PREFIX-0000.params')
    args = parser.parse_args(argv)
    check_arguments(args)
    return args


def check_arguments(args):
    if args.dtype != 'float32':
        raise InputError(
            f'--dtype {args.dtype}: training in half precision comes with the support for '
            'pre-training and is not there yet; leave it at float32'
        )
    needs = [
        ('deploy', 'only_inference', args.deploy and not args.only_inference),
        ('deploy', 'model_prefix', args.deploy and not args.model_prefix),
        ('model_prefix', 'deploy', args.model_prefix and not args.deploy),
        ('task_name custom', 'text_columns', args.task_name == 'custom' and not args.text_columns),
    ]
    for flag, other, missing in needs:
        if missing:
            raise InputError(f'--{flag} needs --{other}')
    if args.task_name != 'custom':
        names = ('train_file', 'dev_file', 'test_file', 'text_columns', 'label_column', 'labels')
        given = [name for name in (*names, 'header', 'regression') if getattr(args, name)]
        if given:
            raise InputError(f'--{given[0]} goes with --task_name custom, not {args.task_name}')
    elif not args.only_inference and not (args.train_file and args.dev_file):
        raise InputError('--task_name custom needs --train_file and --dev_file for training')
    if args.from_scratch and (args.pretrained_bert_parameters or args.model_parameters):
        raise InputError('--from_scratch begins from random parameters: give it or a file of them')
    if args.resume and args.only_inference:
        raise InputError('--resume continues a training: give it or --only_inference, not both')
    for name in ('accumulate', 'epochs', 'training_steps'):
        if getattr(args, name) is not None and getattr(args, name) < 1:
            raise InputError(f'--{name} {getattr(args, name)}: give 1 or more')


def make_task(args):
    """The task, with the labels of a custom one as far as they are known."""
    if args.task_name != 'custom':
        return get_task(args.task_name)
    files = {'train': args.train_file, 'dev': args.dev_file, 'test': args.test_file}
    task = custom_task(
        args.text_columns,
        args.label_column,
        labels=args.labels or labels_of_folder(args.bert_model),
        regression=args.regression,
        header=True if args.header else None,
        files={segment: path for segment, path in files.items() if path},
    )
    return task if task.labels or not args.train_file else infer_labels(task)


def labels_of_folder(folder):
    """The classes of a model that this script saved, or None."""
    try:
        with open(os.path.join(folder, 'config.json'), encoding='utf-8') as file:
            config = json.load(file)
    except (OSError, ValueError):
        return None  # no folder; one with a bad configuration is complained about by the model
    if not isinstance(config, dict) or not {'finetuning_task', 'id2label'} <= set(config):
        return None
    labels = config['id2label']
    if not isinstance(labels, dict) or set(labels) != {str(n) for n in range(len(labels))}:
        raise InputError(
            f'config.json of the model {folder!r} has the id2label {labels!r}: write it as '
            '{"0": "first label", "1": "second label"} and so on'
        )
    return [str(labels[str(number)]) for number in range(len(labels))]


def check_labels(task, folder):
    """Raise InputError if a model of ours was trained for other classes than the task's."""
    labels = labels_of_folder(folder)
    if labels is not None and not task.regression and labels != list(task.require_labels()):
        raise InputError(
            f'the model {folder!r} tells {", ".join(labels)} apart, and {task.name} has the labels '
            f'{", ".join(task.labels)}'
        )


def parse_hparams(words):
    """``['num_layers=2,units=128', 'activation=gelu']`` -> dict, numbers as such."""
    result = {}
    for item in ','.join(words or ()).split(','):
        if not item:
            continue
        name, equals, value = item.partition('=')
        if not equals or not name or not value:
            raise InputError(f'--hparams {item!r}: write name=value, such as num_layers=2')
        for kind in (int, float, str):
            try:
                result[name] = kind(value)
                break
            except ValueError:
                continue
    return result


def make_tokenizer(args, vocab=None):
    """The tokenizer that belongs to the model; `vocab` is its vocabulary if it is loaded."""
    if os.path.isdir(args.bert_model):
        model, dataset, path = None, None, args.vocab_file or args.bert_model
    else:
        model, dataset = resolve(args.bert_model, args.bert_dataset)
        path = args.vocab_file or args.pretrained_bert_parameters
    return open_tokenizer(find_vocab_file(model, dataset, path=path), vocab)


def make_model(args, task, ctx):
    """The classifier, initialized, and its tokenizer."""
    hparams = parse_hparams(args.hparams)
    if os.path.isdir(args.bert_model):
        if args.pretrained_bert_parameters or args.from_scratch or hparams:
            raise InputError(
                f'--bert_model {args.bert_model!r} is a folder with weights and a size of its own: '
                'leave out --pretrained_bert_parameters, --from_scratch and --hparams'
            )
        model = BertForSequenceClassification.from_pretrained(
            args.bert_model, ctx=ctx, num_labels=task.num_labels
        )
        tokenizer = make_tokenizer(args)
    else:
        model, tokenizer = make_from_zoo(args, task, ctx, hparams)
    if len(tokenizer.vocab) > model.config.vocab_size:
        raise InputError(
            f'the vocabulary does not fit: it has {len(tokenizer.vocab)} tokens, and the model '
            f'{model.config.vocab_size}'
        )
    if args.model_parameters:
        logger.info('loading %s', args.model_parameters)
        model.load_parameters(args.model_parameters, ctx=ctx, cast_dtype=True)
    longest = model.config.max_position_embeddings
    if args.max_len > longest:
        raise InputError(f'--max_len {args.max_len}: the model takes {longest} tokens at most')
    # Batches have many lengths; static_shape, which plans the memory anew at each, showed no gain.
    model.hybridize(static_alloc=True)
    return model, tokenizer


def make_from_zoo(args, task, ctx, hparams):
    """A classifier on top of one of the zoo's models, and its tokenizer."""
    name, dataset = resolve(args.bert_model, args.bert_dataset)
    pretrained = args.pretrained_bert_parameters or True
    if args.from_scratch or args.model_parameters:
        pretrained = False
    if args.vocab_file and pretrained is True:
        raise InputError(
            f'--vocab_file {args.vocab_file!r}: pretrained weights have their own vocabulary; it '
            'goes with --from_scratch, --model_parameters or --pretrained_bert_parameters'
        )
    vocab = None if pretrained is True else make_tokenizer(args).vocab
    bert, vocab = model_zoo.get_model(
        name,
        dataset_name=dataset,
        vocab=vocab,
        pretrained=pretrained,
        ctx=ctx,
        use_pooler=True,
        use_decoder=False,
        use_classifier=False,
        hparam_allow_override=bool(hparams),
        **hparams,
    )
    model = BertForSequenceClassification(bert, num_labels=task.num_labels)
    if not pretrained:
        bert.initialize(ctx=ctx)
    model.classifier.initialize(ctx=ctx)
    return model, make_tokenizer(args, vocab)


def make_deployed(args, task, ctx):
    """An exported model as a function, and the tokenizer of --bert_model."""
    symbol, parameters = f'{args.model_prefix}-symbol.json', f'{args.model_prefix}-0000.params'
    for path in (symbol, parameters):
        if not os.path.isfile(path):
            raise InputError(f'--model_prefix {args.model_prefix!r}: there is no file {path!r}')
    tensors, _ = read_tensors(parameters)  # says clearly what MXNet wouldn't of a damaged file
    for name, array in tensors.items():
        if name.endswith('position_weight') and args.max_len > len(array):
            raise InputError(
                f'--max_len {args.max_len}: the exported model takes {len(array)} tokens at most'
            )
    try:
        block = mx.gluon.SymbolBlock.imports(symbol, ['data0', 'data1', 'data2'], parameters, ctx)
    except (mx.MXNetError, ValueError, AssertionError, RuntimeError) as error:
        reason = str(error).strip().splitlines()
        raise CheckpointError(
            f'cannot load {symbol!r}: {reason[-1] if reason else error!r}'
        ) from error
    block.hybridize(static_alloc=True)

    def forward(words, token_types, valid_length):
        result = block(words, token_types, valid_length)
        shape = getattr(result, 'shape', None)  # None of a list: a model with several outputs
        if shape != (words.shape[0], task.num_labels):
            found = f'{len(result)} outputs' if shape is None else f'outputs of shape {shape}'
            raise InputError(
                f'{symbol!r} gives {found} for {words.shape[0]} samples; {task.name} needs '
                f'{task.num_labels} numbers each: was it exported for another task?'
            )
        return result

    return forward, make_tokenizer(args)


class Sets:
    """The examples of a task as batches, made when they are asked for and kept."""

    def __init__(self, args, task, tokenizer, ctx):
        self._args, self._task, self._ctx = args, task, ctx
        self._features = ClassifierFeatures(tokenizer, task, args.max_len)
        self._pad = tokenizer.pad_token_id
        self._made = {}

    def has(self, segment):
        return has_segment(self._task, self._args.data_dir, segment)

    def get(self, segment):
        """(examples, features, loader) of a segment."""
        if segment not in self._made:
            args = self._args
            started = time.perf_counter()
            examples = read_examples(self._task, args.data_dir, segment)
            features = self._features(examples)
            train = segment == 'train'
            loader = BucketedLoader(
                features,
                args.batch_size if train else args.dev_batch_size,
                shuffle=train,
                seed=args.seed,
                round_to=args.round_to,
                pad_val=self._pad,
                ctx=self._ctx,
            )
            seconds = time.perf_counter() - started
            logger.info('%s: %d examples, read in %.1f s', segment, len(examples), seconds)
            self._made[segment] = examples, features, loader
        return self._made[segment]


class Evaluator:
    """Scores and predictions of a model on the segments of a task."""

    def __init__(self, args, task, sets, forward):
        self._args, self._task, self._sets = args, task, sets
        self._forward = forward
        self.segments = [s for s in task.dev_segments if not args.only_inference or sets.has(s)]

    def _outputs(self, segment, guard=None):
        loader = self._sets.get(segment)[2]
        started = time.perf_counter()
        outputs = predict(
            lambda batch: self._forward(batch.input_ids, batch.token_types, batch.valid_length),
            loader,
            guard,
        )
        return outputs, loader.num_samples / (time.perf_counter() - started)

    def evaluate(self, guard=None):
        """The mean of the dev sets' first metrics, and all metrics of each."""
        report = {}
        for segment in self.segments:
            examples = self._sets.get(segment)[0]
            labels = np.array([self._task.label_id(example.label) for example in examples])
            outputs, speed = self._outputs(segment, guard)
            report[segment] = dict(compute_metrics(self._task, labels, outputs))
            report[segment]['loss'] = mean_loss(self._task, labels, outputs)
            shown = ', '.join(f'{name} {value:.4f}' for name, value in report[segment].items())
            logger.info('%s: %s (%.1f samples/s)', segment, shown, speed)
            report[segment]['samples_per_second'] = speed
        scores = [metrics[self._task.primary_metric] for metrics in report.values()]
        return float(np.mean(scores)) if scores else 0.0, report

    def predict(self):
        """Write the predictions on the test sets; returns the names of the files."""
        files = []
        for segment in filter(self._sets.has, self._task.test_segments):
            outputs, speed = self._outputs(segment)
            if not np.isfinite(outputs).all():
                raise InputError(f"the model's outputs on {segment} are not finite")
            examples = self._sets.get(segment)[0]
            files += write_predictions(
                self._args.output_dir, self._task, segment, examples, outputs
            )
            logger.info('%s: predictions in %s (%.1f samples/s)', segment, files[-2], speed)
        return files


def mean_loss(task, labels, outputs):
    outputs = outputs.astype(np.float64)
    if task.regression:
        return float(np.mean((outputs.reshape(-1) - labels) ** 2))
    return float(-np.mean(log_softmax(outputs, axis=-1)[np.arange(len(labels)), labels]))


def write_predictions(folder, task, segment, examples, outputs):
    """Write GLUE's form and, beside it, the probabilities (of a regression the raw outputs)."""
    if task.regression:
        predictions, header, rows = outputs.reshape(-1), ['output'], outputs.reshape(-1, 1)
    else:
        predictions = outputs.argmax(axis=-1)
        header, rows = task.require_labels(), softmax(outputs.astype(np.float64), axis=-1)
    name = task.submission_file(segment)
    path = os.path.join(folder, name)
    with atomic_write(path) as file:
        file.write('index\tprediction\n')
        for example, prediction in zip(examples, predictions):
            file.write(f'{example.guid}\t{task.format_prediction(prediction)}\n')
    beside = os.path.join(folder, name.replace('.tsv', '_probabilities.tsv'))
    with atomic_write(beside) as file:
        file.write('\t'.join(['index', *header]) + '\n')
        for example, row in zip(examples, rows):
            file.write('\t'.join([example.guid, *(f'{value:.6f}' for value in row)]) + '\n')
    return [path, beside]


class EpochFiles(Callback):
    """After each epoch: its parameters, the curves, and results so far."""

    def __init__(self, args, task):
        self._args, self._task = args, task
        self._pattern = re.compile(rf'model_bert_{re.escape(task.name)}_\d+\.params')

    def path(self, epoch):
        return os.path.join(self._args.output_dir, f'model_bert_{self._task.name}_{epoch}.params')

    def on_epoch(self, loop, record):
        state = loop.state
        loop.block.save_parameters(self.path(record['epoch']))
        last = range(record['epoch'] + 1 - self._args.keep_checkpoints, record['epoch'] + 1)
        kept = {os.path.basename(self.path(epoch)) for epoch in (*last, state.best['epoch'])}
        for name in os.listdir(self._args.output_dir):
            if self._pattern.fullmatch(name) and name not in kept:
                os.remove(os.path.join(self._args.output_dir, name))
        self.write(state)

    def write(self, state, **more):
        folder, task = self._args.output_dir, self._task
        title = f'{task.name}, {os.path.basename(os.path.normpath(self._args.bert_model))}'
        plot_curves(os.path.join(folder, 'curves.png'), state, title, f'dev {task.primary_metric}')
        best = {'epoch': state.best['epoch'], **state.best['report']}
        results = {'task': task.name, 'best': best, **more}
        write_results(os.path.join(folder, 'results.json'), vars(self._args), state, **results)


def run_config(args, features):
    """What must be the same for a training to be resumed, by flag."""
    config = {name: value for name, value in vars(args).items() if name not in NOT_OF_THE_TRAINING}
    checksum = 0
    for feature in features:
        checksum = zlib.crc32(feature.input_ids.tobytes(), checksum)
        checksum = zlib.crc32(repr(feature.label).encode(), checksum)
    source = 'train_file' if args.train_file else 'data_dir'
    config[source] = f'{len(features)} training examples with checksum {checksum:08x}'
    return config


def make_trainer(args, model):
    registry = mx.optimizer.Optimizer.opt_registry
    if args.optimizer.lower() not in registry:
        raise UnknownNameError.of('optimizer', args.optimizer, registry)
    options = {'learning_rate': args.lr, 'wd': args.wd}
    if 'epsilon' in inspect.signature(registry[args.optimizer.lower()].__init__).parameters:
        options['epsilon'] = args.epsilon
    disable_weight_decay(model)
    return mx.gluon.Trainer(
        model.collect_params(), args.optimizer, options, update_on_kvstore=False
    )


def train(args, task, model, tokenizer, sets, evaluator, ctx):
    _, features, loader = sets.get('train')
    # bad dev and test sets are to be known of before the training
    for segment in (*task.dev_segments, *filter(sets.has, task.test_segments)):
        sets.get(segment)
    size = args.batch_size * (args.accumulate or 1)
    # Buckets' last batches aren't full: an epoch has a few more batches than examples / batch size,
    # by which GluonNLP counts the steps and so ends within the last epoch.
    num_steps = args.training_steps or args.epochs * math.ceil(
        len(loader) / (args.accumulate or 1)
    )
    files = EpochFiles(args, task)
    callbacks = [ProgressLogger(), files]
    if args.tensorboard:
        callbacks.append(TensorBoardWriter(args.tensorboard))
    store = CheckpointStore(os.path.join(args.output_dir, 'checkpoints'), args.keep_checkpoints)
    if store.paths() and not args.resume:
        logger.warning(
            '%s has checkpoints of an earlier training, which this one replaces at its first: stop '
            'now and add --resume to go on with that one',
            args.output_dir,
        )
    loop = TrainingLoop(
        model,
        make_trainer(args, model),
        lambda batch: (
            model(batch.input_ids, batch.token_types, batch.valid_length, batch.labels),
            len(batch.indices),
        ),
        loader,
        num_steps,
        schedule=finetune_schedule(args.lr, num_steps, args.warmup_ratio),
        accumulate=args.accumulate or 1,
        seed=args.seed,
        log_interval=args.log_interval,
        evaluate=evaluator.evaluate,
        early_stop=args.early_stop,
        callbacks=callbacks,
        store=store,
        config=run_config(args, features),
    )
    if args.resume:
        logger.info('resuming from %s', loop.resume())
    logger.info(
        'training: %d steps of %d examples, %d batches an epoch', num_steps, size, len(loader)
    )
    state = loop.run()
    best = state.best
    logger.info(
        'best epoch: %d of %d, %s %.4f; %.0f s of training',
        best['epoch'] + 1,
        len(state.epochs),
        task.primary_metric,
        best['score'],
        state.seconds,
    )
    model.load_parameters(files.path(best['epoch']), ctx=ctx)
    save_model(os.path.join(args.output_dir, 'best_model'), task, model, tokenizer)
    predictions = evaluator.predict()
    files.write(state, predictions=[os.path.basename(path) for path in predictions])


def save_model(folder, task, model, tokenizer):
    """Save the model with the names of its classes, as transformers writes them."""
    extras = {'architectures': [type(model).__name__], 'finetuning_task': task.name}
    if task.regression:
        extras['problem_type'] = 'regression'
    else:
        extras['id2label'] = {str(number): label for number, label in enumerate(task.labels)}
        extras['label2id'] = {label: number for number, label in enumerate(task.labels)}
    model.config.extras.update(extras)
    model.save_pretrained(folder, tokenizer)


def infer(args, evaluator):
    _, report = evaluator.evaluate()
    files = evaluator.predict()
    if not report and not files:
        raise InputError('--only_inference: there is neither a dev set nor a test set')
    names = [os.path.basename(path) for path in files]
    path = os.path.join(args.output_dir, 'inference.json')
    write_results(path, vars(args), dev=report, predictions=names)


def main(argv=None):
    args = parse_arguments(argv)
    ctx = cli.get_ctx(args.gpu)
    task = make_task(args)
    make_writable_dir(args.output_dir)
    cli.setup_logging(os.path.join(args.output_dir, f'log_{task.name}.txt'))
    logger.info('%s', json.dumps(vars(args)))
    seed_all(args.seed)
    if args.deploy:
        forward, tokenizer = make_deployed(args, task, ctx)
    else:
        if args.only_inference:
            check_labels(task, args.bert_model)
            if not args.model_parameters and not os.path.isdir(args.bert_model):
                logger.warning('--model_parameters is not set: the classifier is a random one')
        model, tokenizer = make_model(args, task, ctx)
        forward = model
    sets = Sets(args, task, tokenizer, ctx)
    evaluator = Evaluator(args, task, sets, forward)
    if args.only_inference:
        infer(args, evaluator)
    else:
        train(args, task, model, tokenizer, sets, evaluator, ctx)


if __name__ == '__main__':
    sys.exit(cli.run(main))
