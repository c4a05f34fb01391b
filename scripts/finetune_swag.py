"""Fine-tune BERT on SWAG, or on other multiple-choice questions.

    python finetune_swag.py --data_dir swagaf/data --do_train --do_eval --bert_model \\
        bert-base-uncased --train_batch_size 16 --learning_rate 2e-5 --max_seq_length 80

The script has the flags and defaults of pytorch-pretrained-bert's run_swag.py, and the flags of the
other training scripts. The files are SWAG's CSV, or JSON lines with the same fields, with any
number of endings. ``--output_dir`` receives the log, ``results.json``, ``curves.png``, the
parameters after the last epochs and the best one, ``best_model/`` for
``BertForMultipleChoice.from_pretrained``, checkpoints for ``--resume``, and with ``--do_eval``
``dev_predictions.tsv`` and, if there is a test set, ``test_predictions.tsv``, of the best epoch.
``--do_eval`` alone evaluates a model.
"""

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
    convert_originals,
    describe,
    forward_of,
    job_of,
    make_task_model,
    name_labels,
    segment_files,
)
from model_zoo.batches import BucketedLoader
from model_zoo.errors import InputError
from model_zoo.tasks.choice import (
    ChoiceEvaluator,
    SwagFeatures,
    read_swag,
    write_swag_predictions,
)
from model_zoo.training.objective import mean_over_examples
from model_zoo.training.workers import make_workers

FILES = {'train': ('train.csv',), 'dev': ('val.csv',), 'test': ('test.csv',)}
# What may differ when a training is resumed: where the files are, and what follows the training.
FREE = ('data_dir', 'train_file', 'dev_file', 'test_file', 'vocab_file', 'do_eval')


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument_group('task').add_argument
    add('--do_train', action='store_true', help='train, and evaluate after each epoch')
    add('--do_eval', action='store_true', help='write predictions; alone: evaluate a model')
    add('--data_dir', help='folder with train.csv, val.csv and perhaps test.csv')
    add('--train_file', help='instead of the file in --data_dir; CSV or JSON lines')
    add('--dev_file', help='likewise')
    add('--test_file', help='likewise')
    add('--max_seq_length', type=int, default=128, help='in tokens, special ones included')
    add('--round_to', type=int, help='pad batches to multiples of this length')
    add('--do_lower_case', action='store_true', help='default: what the vocabulary is for')
    ModelChoice.add_arguments(parser, 'bert_12_768_12', family='bert')
    add_training_arguments(parser)
    parser.set_defaults(lr=5e-5, seed=42)
    add_comm_backend_argument(parser)
    add_engine_arguments(parser)
    add_originals(parser, 'finetune_swag')
    args = parser.parse_args(argv)
    convert_originals(args, 'finetune_swag')
    check_arguments(args)
    return args


def check_arguments(args):
    check_training_arguments(args)
    check_at_least_one(args, 'round_to')
    if not (args.do_train or args.do_eval):
        raise InputError('nothing to do: give --do_train, --do_eval or both')
    if args.resume and not args.do_train:
        raise InputError('--resume continues a training: it needs --do_train')
    check_engine_arguments(args, not args.do_train)


def read_examples(args):
    """Segment -> examples."""
    files = segment_files(args, **FILES)
    if not args.do_train:
        files.pop('train', None)
    needed = ('train', 'dev') if args.do_train else () if files else ('dev',)
    for segment in needed:
        if segment not in files:
            raise InputError(f'there is no {segment} set: give --{segment}_file, or --data_dir')
    sets = {segment: read_swag(path) for segment, path in files.items()}
    for segment in needed:
        if sets[segment][0].label is None:
            raise InputError(f'{files[segment]!r} has no labels: training needs them')
    return sets


def make_loader(args, features, tokenizer, contexts, **options):
    return BucketedLoader(
        features,
        seed=args.seed,
        round_to=args.round_to,
        pad_val=tokenizer.pad_token_id,
        ctx=contexts,
        **options,
    )


def train(run, model, tokenizer, features, loader, evaluator):
    args = run.args
    values = (part for each in features for part in each.content)

    def loss(batch):
        return model(*batch.inputs, batch.labels)

    def save(folder):
        name_labels(model, 'swag')
        model.save_pretrained(folder, tokenizer)

    title = f'SWAG, {os.path.basename(os.path.normpath(args.bert_model))}'
    predict = evaluator.predict if args.do_eval else None
    sizes = {'train': len(features), **evaluator.sizes}
    run.train(
        Training(title, model, loader, mean_over_examples(loss)),
        Score('accuracy', evaluator.evaluate),
        Outcome(
            save, predict, {'choices': len(features[0].input_ids)}, evaluator.examine,
            About('multiple-choice', os.path.basename(os.path.normpath(args.bert_model)), sizes),
        ),
        job_of(args, FREE, train_file=describe(len(features), 'examples', values)),
    )


def main(argv=None):
    args = parse_arguments(argv)
    choice = ModelChoice(args, family='bert')
    sets = read_examples(args)
    workers = make_workers(args.comm_backend, args.allreduce_dtype)
    run = Run(args, 'swag', 'bert', workers, trains=args.do_train)
    model, tokenizer = make_task_model(
        args, choice, 'multiple_choice', run.contexts,
        trains=args.do_train, do_lower_case=args.do_lower_case or None,
    )  # fmt: skip
    make_features = SwagFeatures(tokenizer, args.max_seq_length)
    features = {segment: make_features(examples) for segment, examples in sets.items()}
    train_features = features.pop('train', None)
    evaluator = ChoiceEvaluator(
        forward_of(args, model),
        {
            segment: (
                sets[segment],
                make_loader(args, each, tokenizer, run.contexts, batch_size=args.dev_batch_size),
            )
            for segment, each in features.items()
        },
        write_swag_predictions,
        {segment: f'{segment}_predictions.tsv' for segment in features},
    )
    if not args.do_train:
        run.infer(evaluator.evaluate, evaluator.predict)
        return
    loader = make_loader(
        args, train_features, tokenizer, run.contexts,
        batch_size=args.batch_size, batch_tokens=args.batch_tokens, shuffle=True, workers=workers,
    )  # fmt: skip
    train(run, model, tokenizer, train_features, loader, evaluator)


if __name__ == '__main__':
    sys.exit(cli.run(main))
