"""Fine-tune an encoder of sentences: BERT whose vectors tell which texts belong together.

    python finetune_embedding.py --train_file pairs.tsv --dev_file dev.tsv --batch_size 64
    python finetune_embedding.py --data_dir STS-B --epochs 4 --batch_size 16 --lr 2e-5

The files are tables or JSON lines with pairs of texts, triplets (a text, one that matches it and
one that doesn't), or pairs with a score. ``--output_dir`` receives the log, ``results.json``,
``curves.png``, the parameters after the last epochs and the best one, checkpoints for
``--resume``, the similarities in the test set, and ``best_model/``, a folder that `BertEmbedding`
and sentence-transformers load.

    python finetune_embedding.py --only_inference --bert_model best_model --dev_file dev.tsv

evaluates an encoder without training it.
"""

import sys

from bert_embedding.sentence_modules import own_pooling, write_sentence_modules
from model_zoo.app import (
    About,
    ModelChoice,
    Outcome,
    Run,
    Score,
    Training,
    add_comm_backend_argument,
    add_engine_arguments,
    add_training_arguments,
    check_at_least_one,
    check_engine_arguments,
    check_training_arguments,
    cli,
    describe,
    forward_of,
    job_of,
    make_task_model,
    name_labels,
    segment_files,
)
from model_zoo.batches import BucketedLoader
from model_zoo.errors import InputError
from model_zoo.tasks.sentences import (
    LOSSES,
    SentenceEvaluator,
    SentenceFeatures,
    make_loss,
    read_sentences,
)
from model_zoo.tasks.tables import SPLITS, is_table
from model_zoo.training.objective import mean_over_examples
from model_zoo.training.workers import make_workers

POOLINGS = ('mean', 'cls', 'max')
SEGMENTS = ('train', 'dev', 'test')
EXTENSIONS = ('tsv', 'csv', 'jsonl', 'ndjson', 'json')
# What may differ when a training is resumed: where the files are.
FREE = ('data_dir', 'train_file', 'dev_file', 'test_file', 'vocab_file')


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument_group('task').add_argument
    add('--data_dir', help='folder with train, dev and perhaps test as .tsv, .csv or .jsonl; or a '
        "DatasetDict's")  # fmt: skip
    for segment in SEGMENTS:
        add(f'--{segment}_file', help='instead of that in --data_dir')
    add('--text_columns', nargs='+', help='names of two columns, or of three; default: sentence1 '
        'and sentence2; anchor, positive and negative; or query and answer')  # fmt: skip
    add('--score_column', help='of a pair; default: score, if there is such a column')
    add('--max_score', type=float, help='of alike texts; default: the highest of the training')
    add('--loss', choices=LOSSES, help='default: cosine for scored pairs, in_batch for others')
    add('--scale', type=float, default=20.0, help='of the cosines, for in_batch')
    add('--margin', type=float, default=0.5, help='between the cosines, for triplet')
    add('--pooling', choices=POOLINGS, help="of the pieces' vectors; default: the model's own, "
        'else mean')  # fmt: skip
    add('--normalize', type=cli.boolean, nargs='?', const=True, default=True,
        help='have the saved model give vectors of length 1; no loss depends on it')  # fmt: skip
    add('--max_len', type=int, default=128, help='of the tokens, the special ones counted')
    add('--round_to', type=int, help='pad batches to multiples of this length')
    add('--only_inference', action='store_true', help='evaluate an encoder without training')
    ModelChoice.add_arguments(parser, 'bert_6_384_12', family='bert')
    add_training_arguments(parser)
    parser.set_defaults(lr=2e-5, dev_batch_size=32, epochs=1)
    add_comm_backend_argument(parser)
    add_engine_arguments(parser)
    args = parser.parse_args(argv)
    check_arguments(args)
    return args


def check_arguments(args):
    check_training_arguments(args)
    check_at_least_one(args, 'round_to')
    check_engine_arguments(args, args.only_inference)
    for name in ('max_score', 'scale', 'margin'):
        value = getattr(args, name)
        if value is not None and not 0 < value < float('inf'):
            raise InputError(f'--{name} {value}: give a number above 0')
    if args.resume and args.only_inference:
        raise InputError('--resume continues a training: give it or --only_inference, not both')


def read_sets(args):
    """Segment -> `SentenceSet`."""
    names = {
        segment: [*(f'{segment}.{each}' for each in EXTENSIONS), *SPLITS[segment]]
        for segment in SEGMENTS
    }
    files = segment_files(args, is_table, **names)
    if args.only_inference:
        files.pop('train', None)
        if not files:
            raise InputError('--only_inference needs a dev or a test set: --dev_file, --test_file')
    for segment in () if args.only_inference else ('train', 'dev'):
        if segment not in files:
            raise InputError(f'there is no {segment} set: give --{segment}_file, or --data_dir')
    return {
        segment: read_sentences(path, args.text_columns, args.score_column)
        for segment, path in files.items()
    }


def choose_loss(args, kind):
    """The loss for the kind of the examples; its name becomes ``args.loss``."""
    args.loss = args.loss or ('cosine' if kind == 'scored' else 'in_batch')
    if kind not in LOSSES[args.loss]:
        raise InputError(
            f'--loss {args.loss} learns from {" or ".join(LOSSES[args.loss])}; the training set '
            f'has {kind}'
        )
    return make_loss(args.loss, args.scale, args.margin)


def highest_score(args, examples):
    """What a label of 1 stands for; all scores must be from 0 to that."""
    scores = [each.score for each in examples if each.score is not None]
    highest = args.max_score or max(scores, default=1.0) or 1.0
    if scores and not 0 <= min(scores) <= max(scores) <= highest:
        raise InputError(
            f'the scores are from {min(scores):g} to {max(scores):g}, and must be from 0 to '
            f'--max_score, which is {highest:g}'
        )
    return highest


def make_encode(forward):
    """``encode(batch) -> NDArray`` (batch, texts, units), from a forward of single texts."""

    def encode(batch):
        shape = batch.words.shape
        flat = type(batch)(*(each.reshape((-3, 0)[: each.ndim - 1]) for each in batch.inputs))
        vectors = forward(flat)
        return vectors.reshape((*shape[:2], -1))

    return encode


def train(run, choice, model, tokenizer, loader, features, evaluator, loss, normalize):
    args = run.args
    encode = make_encode(lambda batch: model(*batch.inputs))
    values = (part for each in features for part in each.content)
    results = {'task': 'sentence_embedding', 'loss': args.loss}
    sizes = {'train': len(features), **evaluator.sizes}

    def save(folder):
        name_labels(model, 'sentence_embedding')
        model.save_pretrained(folder, tokenizer, format='huggingface')
        write_sentence_modules(
            folder, model.config.hidden_size, args.pooling, normalize, args.max_len
        )

    def predict(folder):
        names = evaluator.predict(folder)
        if evaluator.test is not None:
            results['test'] = evaluator.test
        return names

    run.train(
        Training(
            f'sentences, {choice.title}', model, loader,
            mean_over_examples(lambda batch: loss(encode(batch), batch.labels)),
        ),
        Score(evaluator.primary, evaluator.evaluate),
        Outcome(save, predict, results, about=About('sentence-similarity', choice.title, sizes)),
        job_of(args, FREE, train_file=describe(len(features), 'examples', values)),
    )  # fmt: skip


def main(argv=None):
    args = parse_arguments(argv)
    choice = ModelChoice(args, family='bert')
    args.pooling = args.pooling or own_pooling(args.bert_model) or 'mean'
    sets = read_sets(args)
    loss = None if args.only_inference else choose_loss(args, sets['train'].kind)
    workers = make_workers(args.comm_backend, args.allreduce_dtype)
    run = Run(args, 'sentences', 'bert', workers, trains=not args.only_inference)
    model, tokenizer = make_task_model(
        args, choice, 'sentence_embedding', run.contexts, trains=True, length_flag='max_len',
        pooling=args.pooling,
    )  # fmt: skip
    highest = highest_score(args, sets['train'].examples) if 'train' in sets else 1.0
    make_features = SentenceFeatures(tokenizer, args.max_len, highest)

    def make_loader(features, **options):
        return BucketedLoader(
            features, seed=args.seed, round_to=args.round_to, pad_val=tokenizer.pad_token_id,
            ctx=run.contexts, **options,
        )  # fmt: skip

    train_set = sets.pop('train', None)
    size = args.dev_batch_size
    sets = {
        segment: (each, make_loader(make_features(each.examples), batch_size=size))
        for segment, each in sets.items()
    }
    evaluator = SentenceEvaluator(make_encode(forward_of(args, model)), sets)
    if train_set is None:
        run.infer(evaluator.evaluate, evaluator.predict)
        return
    features = make_features(train_set.examples)
    loader = make_loader(
        features, batch_size=args.batch_size, batch_tokens=args.batch_tokens, shuffle=True,
        workers=workers,
        # other texts of the batch are the negatives: those of similar length alone won't do
        num_buckets=1 if args.loss == 'in_batch' else None,
    )  # fmt: skip
    train(run, choice, model, tokenizer, loader, features, evaluator, loss, args.normalize)


if __name__ == '__main__':
    sys.exit(cli.run(main))
