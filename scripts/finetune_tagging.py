"""Fine-tune BERT to label words: named entities, parts of speech, chunks.

    python finetune_tagging.py --train_file train.txt --dev_file valid.txt --test_file test.txt
    python finetune_tagging.py --data_dir conll2003 --label_column 1

The files have CoNLL's format: a word per line, with its columns, and an empty line between
sentences. The script has the flags of GluonNLP 0.8's finetune_ner.py and of the other training
scripts. Long sentences aren't cut; the model reads them in overlapping windows. ``--output_dir``
receives the log, ``results.json``, ``curves.png``, the parameters after the last epochs and the
best one, ``best_model/`` for ``BertForTokenClassification.from_pretrained``, checkpoints for
``--resume``, and ``dev_predictions.txt`` and ``test_predictions.txt``: copies of the files, with
the predicted labels as another column.
"""

import logging
import os
import sys

from model_zoo.app import (
    About,
    ModelChoice,
    Outcome,
    Run,
    Score,
    Training,
    add_comm_backend_argument,
    add_engine_arguments,
    add_originals,
    add_training_arguments,
    check_at_least_one,
    check_engine_arguments,
    check_training_arguments,
    cli,
    describe,
    forward_of,
    job_of,
    labels_of_folder,
    make_task_model,
    name_labels,
    segment_files,
)
from model_zoo.batches import BucketedLoader
from model_zoo.errors import InputError
from model_zoo.tasks.tagging import (
    TaggingEvaluator,
    TaggingFeatures,
    TaggingSet,
    entity_scorer,
    has_entities,
    labels_of_sentences,
    read_conll,
)
from model_zoo.training.objective import Objective
from model_zoo.training.workers import make_workers

logger = logging.getLogger('finetune_tagging')

FILES = {'train': ('train.txt',), 'dev': ('valid.txt', 'dev.txt'), 'test': ('test.txt',)}
# What may differ when a training is resumed: where the files are.
PLACES = ('data_dir', 'train_file', 'dev_file', 'test_file', 'vocab_file')


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument_group('task').add_argument
    add('--data_dir', help='folder with train.txt, valid.txt or dev.txt, and perhaps test.txt')
    add('--train_file', help='instead of the file in --data_dir')
    add('--dev_file', help='likewise')
    add('--test_file', help='likewise')
    add('--word_column', type=int, default=0, help='from 0; negative: counted from the end')
    add('--label_column', type=int, default=-1, help='likewise')
    add('--no_test_labels', action='store_true', help='the test file has no column of labels')
    add('--labels', nargs='+', help="default: the model's, or the training file's")
    add('--max_seq_length', type=int, default=180, help='in tokens, special ones included; '
        'longer sentences are seen in windows')  # fmt: skip
    add('--round_to', type=int, help='pad batches to multiples of this length')
    add('--dropout_prob', type=float, help="of the last layer; default: BERT's")
    ModelChoice.add_arguments(parser, 'bert_12_768_12', family='bert')
    parser.add_argument(
        '--cased', type=cli.boolean, nargs='?', const=True,
        help='whether to use the weights for cased English or those for uncased',
    )  # fmt: skip
    add_training_arguments(parser)
    parser.set_defaults(lr=5e-5, epochs=4, dev_batch_size=32, seed=13531)
    add_comm_backend_argument(parser)
    parser.add_argument(
        '--only_inference', action='store_true', help='evaluate and predict, without training'
    )
    add_engine_arguments(parser)
    add_originals(parser, 'finetune_tagging')
    args = parser.parse_args(argv)
    check_arguments(args)
    return args


def check_arguments(args):
    check_training_arguments(args)
    check_at_least_one(args, 'round_to')
    if args.resume and args.only_inference:
        raise InputError('--resume continues a training: give it or --only_inference, not both')
    check_engine_arguments(args, args.only_inference)
    if args.dropout_prob is not None and not 0 <= args.dropout_prob < 1:
        raise InputError(f'--dropout_prob {args.dropout_prob}: give a number from 0 to below 1')
    if args.cased is not None:
        if args.bert_dataset:
            raise InputError('--cased and --bert_dataset both name the weights: give one')
        args.bert_dataset = f'book_corpus_wiki_en_{"cased" if args.cased else "uncased"}'


def find_files(args):
    """Segment -> path."""
    files = segment_files(args, **FILES)
    if args.only_inference:
        files.pop('train', None)
        needed = () if files else ('dev',)
    else:
        needed = ('train', 'dev')
    for segment in needed:
        if segment not in files:
            raise InputError(f'there is no {segment} set: give --{segment}_file, or --data_dir')
    return files


def read_files(args, files):
    """Segment -> sentences; all are read before the training, to fail early."""
    sentences = {}
    for segment, path in files.items():
        unlabelled = segment == 'test' and args.no_test_labels
        label_column = None if unlabelled else args.label_column
        sentences[segment] = read_conll(path, args.word_column, label_column)
    return sentences


def choose_labels(args, train):
    """The labels in the order of their numbers."""
    known = labels_of_folder(args.bert_model)
    if args.labels and known and args.labels != known:
        raise InputError(
            f'the model {args.bert_model!r} has the labels {" ".join(known)}: leave out --labels'
        )
    labels = args.labels or known
    if labels is None:
        if train is None:
            raise InputError(
                f'the model {args.bert_model!r} does not say its labels: give --labels, in the '
                'order of their numbers'
            )
        labels = labels_of_sentences(train)
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise InputError(f'the labels are {" ".join(labels)}: two different ones are needed')
    if has_entities(labels):
        entity_scorer()  # fail before the training if it is missing
    return labels


def make_sets(args, files, sentences, labels, tokenizer, contexts, workers):
    """Segment -> TaggingSet; the training set is shuffled, and shared by the workers."""
    make_features = TaggingFeatures(tokenizer, labels, args.max_seq_length)
    sets = {}
    for segment, path in files.items():
        features = make_features(sentences[segment], path)
        options = {'batch_size': args.dev_batch_size}
        if segment == 'train':
            options = {'batch_size': args.batch_size, 'batch_tokens': args.batch_tokens}
            options.update(shuffle=True, workers=workers)
        loader = BucketedLoader(
            features,
            seed=args.seed,
            round_to=args.round_to,
            pad_val=tokenizer.pad_token_id,
            ctx=contexts,
            **options,
        )
        column = args.label_column if sentences[segment][0].labels else None
        sets[segment] = TaggingSet(path, sentences[segment], loader, column)
    return sets


def train(run, choice, labels, model, tokenizer, data, evaluator):
    args = run.args
    features = data.loader.samples
    values = (part for each in features for part in each.content)
    results = {'labels': labels}

    def predict(folder):
        # all sets, the test set included, with the best parameters
        results['best_model'] = evaluator.evaluate_all()[1]
        return evaluator.predict(folder)

    def save(folder):
        name_labels(model, 'tagging', labels)
        model.save_pretrained(folder, tokenizer)

    def losses(batch):
        return [model(*batch.inputs, batch.labels)]

    sizes = {'train': len(data.sentences), **evaluator.sizes}
    about = About('token-classification', choice.title, sizes, 'sentences', labels)
    title = f'tagging, {os.path.basename(os.path.normpath(args.bert_model))}'
    objective = Objective(losses, lambda batch: (batch.count,), unit='words')
    run.train(
        Training(title, model, data.loader, objective),
        Score(evaluator.metric, evaluator.evaluate),
        Outcome(save, predict, results, evaluator.examine, about),
        job_of(args, PLACES, train_file=describe(len(features), 'samples', values)),
    )


def main(argv=None):
    args = parse_arguments(argv)
    choice = ModelChoice(args, family='bert')
    files = find_files(args)
    sentences = read_files(args, files)
    labels = choose_labels(args, sentences.get('train'))
    workers = make_workers(args.comm_backend, args.allreduce_dtype)
    run = Run(args, 'tagging', 'bert', workers, trains=not args.only_inference)
    dropout = {} if args.dropout_prob is None else {'dropout': args.dropout_prob}
    model, tokenizer = make_task_model(
        args, choice, 'tagging', run.contexts,
        trains=not args.only_inference, num_labels=len(labels), **dropout,
    )  # fmt: skip
    sets = make_sets(args, files, sentences, labels, tokenizer, run.contexts, workers)
    data = sets.pop('train', None)
    evaluator = TaggingEvaluator(forward_of(args, model), sets, labels)
    if args.only_inference:
        run.infer(evaluator.evaluate_all, evaluator.predict)
    else:
        train(run, choice, labels, model, tokenizer, data, evaluator)


if __name__ == '__main__':
    sys.exit(cli.run(main))
