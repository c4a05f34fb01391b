"""Continue the pre-training of BERT, or of a model like it, on your own text.

    python finetune_lm.py --train_corpus text.txt --bert_model bert-base-uncased --output_dir out
    python finetune_classifier.py --bert_model out/best_model ...

The text has one sentence per line, and blank lines between documents. Samples are made on the fly,
new ones in each epoch. BERT learns masked words and next sentences; RoBERTa, XLM-R and DistilBERT,
and BERT with ``--masked_lm_only``, masked words in samples of full sentences. Or make the samples
once, for several trainings:

    python create_pretraining_data.py --input_file text.txt --output_dir samples \\
        --vocab vocab.txt --max_seq_length 128 --max_predictions_per_seq 20
    python finetune_lm.py --pregenerated_data samples --reduce_memory ...

The script has the flags of pytorch-pretrained-bert's simple_lm_finetuning.py and
finetune_on_pregenerated.py and of the other training scripts. ``--output_dir`` receives the log,
``results.json``, ``curves.png``, the parameters after the last epochs, checkpoints for
``--resume``, and ``best_model/`` for the other scripts: the epoch with the least loss on
``--dev_corpus`` or ``--dev_data``, or without these the last one.
"""

import contextlib
import glob
import os
import socket
import sys

from model_zoo.app import (
    UPDATE_NUMBERS,
    About,
    ModelChoice,
    Outcome,
    Run,
    Score,
    Training,
    add_comm_backend_argument,
    add_objective_argument,
    add_originals,
    add_training_arguments,
    check_length,
    check_training_arguments,
    cli,
    convert_originals,
    describe_vocab,
    job_of,
    pretraining_class,
    sample_options,
)
from model_zoo.errors import InputError
from model_zoo.tasks.pretraining import (
    NUM_BUCKETS,
    EpochFiles,
    MappedShards,
    PretrainingLoader,
    ShardFiles,
    TextFiles,
    describe_files,
    epoch_of,
    matching_files,
)
from model_zoo.tasks.pretraining.objective import evaluate_pretraining, pretraining_objective
from model_zoo.training.workers import make_workers

# What may differ when a training is resumed: where the files are, and how they are read.
FREE = ('comm_backend', 'dev_corpus', 'dev_data', 'num_workers', 'reduce_memory', 'vocab_file')


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add_data_arguments(parser)
    ModelChoice.add_arguments(parser, 'bert_12_768_12', family='bert')
    add_training_arguments(parser)
    add_comm_backend_argument(parser)
    parser.set_defaults(dev_batch_size=32, seed=42)
    add_originals(parser, 'finetune_lm')
    args = parser.parse_args(argv)
    convert_originals(args, 'finetune_lm')
    check_arguments(args)
    return args


def add_data_arguments(parser):
    add = parser.add_argument_group('data').add_argument
    add('--train_corpus', help='text in UTF-8; wildcards and commas for several files')
    add('--pregenerated_data', help='instead: .npz of create_pretraining_data.py, or '
        "pytorch-pretrained-bert's epoch_N.json, one for each epoch; or their folder")  # fmt: skip
    add('--dev_corpus', help='text to evaluate on after each epoch; always with the same masks')
    add('--dev_data', help='instead: .npz, or their folder')
    add(
        '--reduce_memory',
        action='store_true',
        help='of --pregenerated_data: unpack the samples to --output_dir for the training, and map '
        'them into memory, all mixed; --train_corpus is read in small parts anyhow',
    )
    add_objective_argument(parser)
    add('--max_seq_length', type=int, default=128, help='of a text: tokens')
    add('--max_predictions_per_seq', type=int, default=20, help='of a text: masks of a sample')
    add('--masked_lm_prob', type=float, default=0.15, help='of a text: part that is masked')
    add('--short_seq_prob', type=float, default=0.1, help='of a text: part of the documents that '
        'is cut into shorter samples')  # fmt: skip
    add('--whole_word_mask', action='store_true', help='of a text: mask all pieces of a word, or '
        'none')  # fmt: skip
    add(
        '--do_lower_case', type=cli.boolean, nargs='?', const=True,
        help='whether to lower-case the text; default: what the vocabulary is for',
    )  # fmt: skip
    add('--num_workers', type=int, default=1, help='of a text: processes that make samples; 0: '
        'it is done between the updates')  # fmt: skip


def check_arguments(args):
    check_training_arguments(args)
    if bool(args.train_corpus) == bool(args.pregenerated_data):
        raise InputError('give --train_corpus, a text, or --pregenerated_data, samples')
    if args.dev_corpus and args.dev_data:
        raise InputError('--dev_corpus and --dev_data both name what to evaluate on: give one')
    if args.early_stop and not (args.dev_corpus or args.dev_data):
        raise InputError('--early_stop needs --dev_corpus or --dev_data')
    for name in ('pregenerated_data', 'dev_data'):
        path = getattr(args, name)
        if path is not None and os.path.isdir(path):
            setattr(args, name, os.path.join(path, samples_in(path)))


def samples_in(folder):
    """A pattern of the files of samples in a folder."""
    is_original = glob.glob(os.path.join(glob.escape(folder), 'epoch_*[0-9].json'))
    return 'epoch_*[0-9].json' if is_original else '*.npz'


def has_epochs(args):
    """Whether the samples are in pytorch-pretrained-bert's files, one for each epoch."""
    return not args.train_corpus and all(
        epoch_of(path) is not None for path in matching_files(args.pregenerated_data)
    )


def check_data_files(args):
    for name in ('train_corpus', 'pregenerated_data', 'dev_corpus', 'dev_data'):
        try:
            if getattr(args, name) is not None:
                matching_files(getattr(args, name))
        except InputError as error:
            raise InputError(f'--{name}: {error}') from None


def has_text(args):
    """Whether samples are made from a text."""
    return bool(args.train_corpus or args.dev_corpus)


def make_model(args, contexts):
    """The model, initialized, and its tokenizer."""
    choice = ModelChoice(args, family='bert')
    block_class = pretraining_class(args, choice.model, args.bert_dataset)
    model, tokenizer = choice.build(block_class, contexts, do_lower_case=args.do_lower_case)
    if has_text(args):
        check_length(args, 'max_seq_length', model)
    return model, tokenizer


def make_loaders(run, model, tokenizer, stack):
    """The loaders of the training set and of the dev set, or None without one.

    `stack`, an ExitStack, closes them.
    """
    args, workers = run.args, run.workers
    has_pairs = 'nsp' in model.pretraining_terms
    options = sample_options(args, has_pairs) if has_text(args) else None
    of_samples = {'next_sentence': has_pairs, 'max_len': model.context_length}

    def source(corpus, samples, is_mapped=False):
        if corpus:
            return TextFiles(corpus, tokenizer, options, num_workers=args.num_workers)
        if is_mapped:  # to a folder of this machine's own
            folder = os.path.join(args.output_dir, f'mapped_{socket.gethostname()}')
            return MappedShards(samples, tokenizer.vocab, folder, workers=workers, **of_samples)
        return ShardFiles(samples, tokenizer.vocab, workers=workers, **of_samples)

    train_source = source(args.train_corpus, args.pregenerated_data, args.reduce_memory)
    if has_epochs(args):
        train_source = EpochFiles(train_source)

    common = {'ctx': run.contexts, 'workers': workers}
    train = PretrainingLoader(
        train_source,
        args.batch_tokens or args.batch_size,
        num_buckets=NUM_BUCKETS if args.batch_tokens else 1,
        use_avg_len=args.batch_tokens is not None,
        seed=args.seed,
        accumulate=run.accumulate,
        **common,
    )
    stack.callback(train.close)
    dev = None
    if args.dev_corpus or args.dev_data:
        dev_source = source(args.dev_corpus, args.dev_data)
        dev = PretrainingLoader(dev_source, args.dev_batch_size, shuffle=False, **common)
        stack.callback(dev.close)
    return train, dev


def count_steps(run, loader):
    """Set the number of updates, if epochs have different numbers: of a text, or of epochs' files.
    """
    args = run.args
    if (args.train_corpus or has_epochs(args)) and args.training_steps is None:
        batches = sum(map(loader.count_batches, range(args.epochs)))
        args.training_steps = batches // run.accumulate


def train(run, model, tokenizer, loader, dev):
    args = run.args
    count_steps(run, loader)
    objective = pretraining_objective(model)

    def evaluate(guard):
        return evaluate_pretraining(objective, dev, run.workers, guard)

    job = job_of(args, FREE, vocab_file=describe_vocab(tokenizer.vocab))
    for name in ('train_corpus', 'pregenerated_data'):
        if job[name] is not None:
            job[name] = describe_files(job[name])
    title = f'{os.path.basename(os.path.normpath(args.bert_model))}, pre-trained further'
    run.train(
        Training(title, model, loader, objective, numbers=UPDATE_NUMBERS),
        Score('negative loss', None if dev is None else evaluate),
        Outcome(
            lambda folder, **options: model.save_pretrained(folder, tokenizer, **options),
            about=About('fill-mask', os.path.basename(os.path.normpath(args.bert_model)), {}),
        ),
        job,
    )


def main(argv=None):
    args = parse_arguments(argv)
    check_data_files(args)
    workers = make_workers(args.comm_backend, args.allreduce_dtype)
    run = Run(args, 'lm', workers=workers)
    model, tokenizer = make_model(args, run.contexts)
    with contextlib.ExitStack() as stack:
        train(run, model, tokenizer, *make_loaders(run, model, tokenizer, stack))


if __name__ == '__main__':
    sys.exit(cli.run(main))
