"""Fine-tune BERT for question answering on SQuAD 1.1 and 2.0.

    python finetune_squad.py --optimizer adam --batch_size 12 --lr 3e-5 --epochs 2 --gpu
    python finetune_squad.py --train_file train-v2.0.json --predict_file dev-v2.0.json --version_2

Flags and defaults are the same as in GluonNLP 0.10's script of this name. The vocabulary tells
whether text is lower-cased; ``--uncased`` only checks that. ``--output_dir`` receives the log,
``results.json`` with the official metrics, ``curves.png``, the parameters after the last epochs and
the best one, ``best_model/`` for ``BertForQuestionAnswering.from_pretrained``,
``predictions.json``, ``nbest_predictions.json``, ``null_odds.json`` and checkpoints for
``--resume``.
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
    add_calibration_arguments,
    add_comm_backend_argument,
    add_inference_arguments,
    add_originals,
    add_training_arguments,
    calibrate,
    check_at_least_one,
    check_calibration_arguments,
    check_files,
    check_inference_arguments,
    check_training_arguments,
    cli,
    convert_originals,
    forward_of,
    job_of,
    load_exported,
    make_task_model,
)
from model_zoo.batches import BucketedLoader
from model_zoo.errors import InputError
from model_zoo.tasks.squad import (
    SquadEvaluator,
    SquadFeatures,
    encode_squad,
    find_squad,
    read_squad,
)
from model_zoo.training.objective import mean_over_examples
from model_zoo.training.workers import make_workers

logger = logging.getLogger('finetune_squad')

# What may differ when a training is resumed: where the files are.
PLACES = ('train_file', 'predict_file', 'cache_dir', 'vocab_file', 'sentencepiece')
DEBUG_SIZES = {'train': 10000, 'dev': 100}  # GluonNLP's
# MXNet's own, which differ by optimizer and are what GluonNLP's script leaves them at
EPSILONS = {'adam': 1e-8}


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument_group('task').add_argument
    add('--train_file', help='JSON of SQuAD; default: GluonNLP downloads it')
    add('--predict_file', help='JSON of SQuAD to evaluate on; default: GluonNLP downloads it')
    add('--version_2', action='store_true', help='SQuAD 2.0: there may be no answer')
    add(
        '--null_score_diff_threshold',
        type=float,
        default=0.0,
        help="no answer if its score minus the best one's is greater; usually -1 to -5",
    )
    add('--max_seq_length', type=int, default=384, help='in tokens, special ones included')
    add('--doc_stride', type=int, default=128, help='tokens between the starts of two windows')
    add('--max_query_length', type=int, default=64, help='longer questions are cut')
    add('--n_best_size', type=int, default=20, help='number of answers to keep for a question')
    add('--max_answer_length', type=int, default=30, help='in tokens')
    add('--round_to', type=int, help='pad batches to multiples of this length')
    add('--cache_dir', help='of encoded data; default: cache in --output_dir')
    add('--debug', action='store_true', help='take 10000 questions to train, 100 to evaluate')
    ModelChoice.add_arguments(parser, 'bert_12_768_12', family='bert')
    ModelChoice.add_checkpoint_arguments(parser)
    parser.add_argument('--sentencepiece', help='SentencePiece model, for --vocab_file')
    parser.add_argument(
        '--uncased', action='store_true', help='check that the vocabulary is for lower case'
    )
    parser.add_argument(
        '--do_lower_case', type=cli.boolean, nargs='?', const=True,
        help='whether to lower-case the texts; default: what the vocabulary is for',
    )  # fmt: skip
    add_training_arguments(parser)
    parser.set_defaults(dev_batch_size=24, lr=5e-5, epsilon=None, wd=0.0, log_interval=50)
    add_comm_backend_argument(parser)
    add_inference_arguments(parser)
    add_calibration_arguments(parser, num_batches=10)
    add_originals(parser, 'finetune_squad')
    args = parser.parse_args(argv)
    convert_originals(args, 'finetune_squad')
    args.only_inference |= args.only_calibration
    if args.epsilon is None:
        args.epsilon = EPSILONS.get(args.optimizer.lower(), 1e-6)
    check_arguments(args)
    return args


def check_arguments(args):
    check_training_arguments(args)
    check_inference_arguments(args)
    check_calibration_arguments(args)
    check_at_least_one(
        args, 'doc_stride', 'max_query_length', 'n_best_size', 'max_answer_length', 'round_to'
    )
    if not args.sentencepiece:
        return
    if args.vocab_file:
        raise InputError('--sentencepiece and --vocab_file both name the vocabulary: give one')
    if not args.sentencepiece.endswith(('.model', '.spiece')):
        raise InputError(
            f"--sentencepiece {args.sentencepiece!r}: a SentencePiece model's file ends in .model "
            'or .spiece'
        )
    weights = (args.model_parameters, args.pretrained_bert_parameters, args.from_scratch)
    weights = (*weights, args.init_checkpoint, args.bert_config_file)
    if not (any(weights) or args.deploy or os.path.isdir(args.bert_model)):
        raise InputError(
            '--sentencepiece: pretrained weights have a vocabulary of their own; it goes with '
            '--from_scratch, --model_parameters or --pretrained_bert_parameters'
        )


def make_deployed(args, ctx):
    """An exported model as a function like the model."""
    block = load_exported(args.model_prefix, args.max_seq_length, ctx, 'max_seq_length')

    def model(words, token_types, valid_length):
        outputs = block(words, token_types, valid_length)
        shapes = [each.shape for each in (outputs if isinstance(outputs, list) else [outputs])]
        if shapes != [words.shape] * 2:
            raise InputError(
                f"'{args.model_prefix}-symbol.json' gives outputs of shapes {shapes} for words of "
                f'shape {words.shape}; scores of starts and of ends are needed: was it exported '
                'for another task?'
            )
        return outputs

    return model


def read_features(args, segment, tokenizer, workers):
    """The windows of a segment."""
    path = args.train_file if segment == 'train' else args.predict_file
    path = path or find_squad(segment, args.version_2)
    squad = read_squad(path, args.version_2, training=segment == 'train')
    if args.debug:
        squad = squad.first(DEBUG_SIZES[segment])
    cache_dir = args.cache_dir or os.path.join(args.output_dir, 'cache')
    with workers.first_alone():  # it fills the cache
        encoding = encode_squad(squad, tokenizer, cache_dir)
    features = SquadFeatures(
        squad, encoding, tokenizer, args.max_seq_length, args.doc_stride, args.max_query_length
    )
    if not len(features):
        raise InputError(f'{path}: there is no paragraph with a word in it')
    logger.info('%s: %d questions, %d windows', segment, len(squad.questions), len(features))
    return features


def train(run, choice, model, tokenizer, features, loader, evaluator):
    args = run.args
    squad = features.squad
    data = f'{len(squad.questions)} questions of a file with checksum {squad.checksum[:16]}'

    def loss(batch):
        starts, ends = batch.labels[:, 0], batch.labels[:, 1]
        return model(*batch.inputs, starts, ends)

    def save(folder):
        model.save_pretrained(folder, tokenizer)

    title = f'SQuAD, {choice.title}'
    sizes = {'train': len(squad.questions), 'dev': evaluator.num_questions}
    run.train(
        Training(title, model, loader, mean_over_examples(loss)),
        Score('f1', evaluator.evaluate),
        Outcome(
            save,
            evaluator.predict,
            {'task': f'SQuAD {2.0 if args.version_2 else 1.1}'},
            evaluator.examine,
            About('question-answering', choice.title, sizes, 'questions'),
        ),
        job_of(args, PLACES, train_file=data),
    )


def main(argv=None):
    args = parse_arguments(argv)
    check_files(args, 'train_file', 'predict_file', 'sentencepiece')
    args.vocab_file = args.sentencepiece or args.vocab_file
    choice = ModelChoice(args, family='bert')
    workers = make_workers(args.comm_backend, args.allreduce_dtype)
    run = Run(args, 'squad', 'bert', workers, trains=not args.only_inference)
    contexts = run.contexts
    if args.deploy:
        contexts = contexts[:1]
        model = make_deployed(args, run.ctx)
        tokenizer = choice.tokenizer('question_answering', args.do_lower_case)
    else:
        model, tokenizer = make_task_model(
            args, choice, 'question_answering', contexts,
            trains=not args.only_inference, do_lower_case=args.do_lower_case,
        )  # fmt: skip
    if args.uncased and not tokenizer.do_lower_case:
        raise InputError("--uncased: the model's vocabulary is cased; leave the flag out")
    options = {'pad_val': tokenizer.pad_token_id, 'round_to': args.round_to, 'ctx': contexts}
    # fail on a bad dev set before the training
    dev = read_features(args, 'dev', tokenizer, workers)
    dev_loader = BucketedLoader(dev, args.dev_batch_size, **options)

    def make_evaluator(forward):
        return SquadEvaluator(
            forward,
            dev_loader,
            n_best_size=args.n_best_size,
            max_answer_length=args.max_answer_length,
            version_2=args.version_2,
            null_score_diff_threshold=args.null_score_diff_threshold,
        )

    evaluator = make_evaluator(forward_of(args, model))
    if args.only_calibration:
        calibrate(
            run, args, model, dev_loader,
            lambda forward: make_evaluator(forward).evaluate(),
            'squad', 'F1', most_lost=0.5,
        )  # fmt: skip
        return
    if args.only_inference:
        scored, names = evaluator.evaluate_and_predict(args.output_dir)
        run.infer(lambda: scored, lambda folder: names)
        return
    if dev.squad.questions[0].answers is None:
        raise InputError(
            f"{dev.squad.path}: the questions lack the field 'answers', which the evaluation after "
            'each epoch needs; without it there is --only_predict'
        )
    features = read_features(args, 'train', tokenizer, workers)
    loader = BucketedLoader(
        features, args.batch_size, shuffle=True, seed=args.seed, workers=workers,
        batch_tokens=args.batch_tokens, **options,
    )  # fmt: skip
    train(run, choice, model, tokenizer, features, loader, evaluator)


if __name__ == '__main__':
    sys.exit(cli.run(main))
