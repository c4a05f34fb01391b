"""Pre-train BERT, on masked words and next sentences, or a model like it, on masked words.

    python create_pretraining_data.py --input_file sample_text.txt --output_dir out ...
    python run_pretraining.py --batch_size 32 --lr 2e-5 --data 'out/*.npz' --warmup_ratio 0.5 \\
        --num_steps 20 --pretrained --log_interval=2 --data_eval 'out/*.npz' --ckpt_dir ckpt

The flags are those of GluonNLP's scripts of this name, 0.7.1 and 0.10, but ``--dtype`` is float32
unless another is asked for. ``--ckpt_dir`` receives the log, checkpoints (``--resume`` with the
same command goes on from the newest), ``results.json``, ``curves.png``, and at the end ``model/``
for ``BertForPreTraining.from_pretrained`` and for ``--bert_model`` of the fine-tuning scripts.
"""

import logging
import os
import sys

import model_zoo  # noqa: F401  isort: skip  before MXNet: Ctrl-C while it loads ends quietly
import mxnet as mx

from model_zoo.app import (
    BATCH_SIZES,
    TOTALS,
    UPDATE_NUMBERS,
    Curves,
    ModelChoice,
    RunFolder,
    add_batch_tokens_argument,
    add_comm_backend_argument,
    add_device_arguments,
    add_objective_argument,
    add_originals,
    check_at_least_one,
    check_batch_tokens,
    check_device_arguments,
    check_files,
    check_length,
    check_rates,
    cli,
    convert_originals,
    describe_vocab,
    find_contexts,
    job_of,
    make_updater,
    pretraining_class,
    sample_options,
)
from model_zoo.errors import InputError
from model_zoo.optimizer import finetune_schedule
from model_zoo.pretrained import is_model_folder
from model_zoo.tasks.pretraining import (
    NUM_BUCKETS,
    PretrainingLoader,
    ShardFiles,
    SyntheticLoader,
    TextFiles,
    describe_files,
    matching_files,
)
from model_zoo.tasks.pretraining.files import is_tfrecord
from model_zoo.tasks.pretraining.objective import (
    PretrainingLogger,
    evaluate_pretraining,
    plot_pretraining,
    pretraining_objective,
)
from model_zoo.training.callbacks import Callback, Profiler, TensorBoardWriter
from model_zoo.training.loop import TrainingLoop
from model_zoo.training.plan import Checkpoints, Evaluation, Plan
from model_zoo.training.workers import make_workers

logger = logging.getLogger('run_pretraining')

# What may differ when a training is resumed: where files are, and how often something is done.
FREE = (
    'batch_size_eval',
    'ckpt_dir',
    'comm_backend',
    'data_eval',
    'eval_interval',
    'eval_use_npz',
    'max_eval_steps',
    'num_dataset_workers',
    'profile',
    'start_step',
    'total_batch_size',
    'total_batch_size_eval',
    'verbose',
)


def parse_arguments(argv=None, comm_backend=None):
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_config()
    ModelChoice.add_arguments(parser, 'bert_12_768_12')
    ModelChoice.add_checkpoint_arguments(parser)
    parser.add_argument(
        '--pretrained', action='store_true', help='begin from the pretrained weights of --model'
    )
    add_data_arguments(parser)
    add_training_arguments(parser)
    add_comm_backend_argument(parser)
    parser.set_defaults(comm_backend=comm_backend)
    add_output_arguments(parser)
    add_originals(parser, 'run_pretraining')
    args = parser.parse_args(argv)
    convert_originals(args, 'run_pretraining')
    check_arguments(args)
    return args


def add_data_arguments(parser):
    add = parser.add_argument_group('data').add_argument
    add('--data', help='training data: .npz of create_pretraining_data.py; wildcards, commas')
    add('--data_eval', help='data to evaluate on')
    add('--batch_size', type=int, help='of one GPU or worker; default: 8')
    add('--total_batch_size', type=int, help='of an update: --batch_size x GPUs x --accumulate')
    add('--batch_size_eval', type=int, help='of one worker; default: 8')
    add('--total_batch_size_eval', type=int, help='--batch_size_eval x workers')
    add('--max_eval_steps', type=int, help='evaluate on at most this many batches')
    add('--use_avg_len', action='store_true', help='--batch_size counts tokens, not samples: as '
        '--batch_tokens, but of one bucket unless --num_buckets says more')  # fmt: skip
    add_batch_tokens_argument(parser)
    add('--num_buckets', type=int, default=1, help='make batches of similar lengths; of '
        f'--batch_tokens there are {NUM_BUCKETS} unless this says more than 1')  # fmt: skip
    add('--circle_length', type=int, default=2, help='number of shards to mix at a time')
    add('--synthetic_data', action='store_true', help='train on random words, for measurements')
    add('--dummy_data_len', type=int, help='--synthetic_data of this length')
    add('--raw', action='store_true', help='--data and --data_eval are text: sample on the fly')
    add('--eval_use_npz', action='store_true', help='with --raw: but --data_eval is .npz')
    add_objective_argument(parser)
    add('--max_seq_length', type=int, default=512, help='of --raw and --synthetic_data')
    add('--max_predictions_per_seq', type=int, default=80, help='of --raw and --synthetic_data')
    add('--short_seq_prob', type=float, default=0.1, help='of --raw')
    add('--masked_lm_prob', type=float, default=0.15, help='of --raw')
    add('--whole_word_mask', action='store_true', help='of --raw')
    add('--cased', action='store_true', help='of --raw: keep upper case, whatever the vocabulary')
    add('--sentencepiece', help='SentencePiece model, for --vocab_file')
    add('--num_dataset_workers', type=int, default=4, help='of --raw: processes that make samples')


def add_training_arguments(parser):
    group = parser.add_argument_group(
        'training', 'Without --gpus each of several workers takes its own GPU, if there are any.'
    )
    add_device_arguments(group)
    add = group.add_argument
    add('--num_steps', type=int, default=20, help='number of updates')
    add('--accumulate', type=int, default=1, help='number of batches per update')
    add('--optimizer', default='bertadam', help='bertadam, or lamb for large batches')
    add('--lr', type=float, default=1e-4, help='peak learning rate')
    add('--warmup_ratio', type=float, default=0.01, help='share of the updates with a growing rate')
    add('--epsilon', type=float, default=1e-6, help='of the optimizer')
    add('--wd', type=float, default=0.01, help='weight decay; none on biases and layer norms')
    add('--seed', type=int, default=0)
    add('--no_compute_acc', action='store_true', help='skip the accuracies')
    add('--start_step', type=int, help='continue from the checkpoint of this step')
    add('--phase2', action='store_true', help='start from the end of another training')
    add('--phase1_num_steps', type=int, help='its --num_steps; its --ckpt_dir is the same')
    add('--resume', action='store_true', help='continue from the newest checkpoint, if any')
    add('--overwrite_output_dir', action='store_true', help='replace the training in --ckpt_dir')


def add_output_arguments(parser):
    add = parser.add_argument_group('output').add_argument
    add('--ckpt_dir', default='./ckpt_dir')
    add('--ckpt_interval', type=int, default=25000, help='in updates')
    add('--keep_checkpoints', type=int, default=2, help='how many of the newest ones to keep')
    add('--eval_interval', type=int, default=50000, help='in updates')
    add('--log_interval', type=int, default=250, help='in updates')
    add('--tensorboard', metavar='DIR', help="write TensorBoard's event files")
    add('--profile', metavar='FILE', help='profile updates 10 to 13')
    add('--verbose', action='store_true')


def check_arguments(args):
    check_at_least_one(
        args,
        'batch_size',
        'total_batch_size',
        'batch_size_eval',
        'total_batch_size_eval',
        'num_buckets',
        'circle_length',
        'dummy_data_len',
        'max_eval_steps',
        'max_seq_length',
        'max_predictions_per_seq',
        'num_dataset_workers',
        'num_steps',
        'accumulate',
        'start_step',
        'phase1_num_steps',
        'ckpt_interval',
        'keep_checkpoints',
        'eval_interval',
        'log_interval',
    )
    check_rates(args)
    check_device_arguments(args)
    check_phases(args)
    check_batches(args)
    if args.dummy_data_len is not None:
        args.synthetic_data, args.max_seq_length = True, args.dummy_data_len
    if not (args.data or args.data_eval or args.synthetic_data):
        raise InputError('give --data to train, --data_eval to evaluate, or both')
    if args.sentencepiece and args.vocab_file:
        raise InputError('--sentencepiece and --vocab_file both name the vocabulary: give one')
    if args.resume and args.overwrite_output_dir:
        raise InputError('--resume and --overwrite_output_dir contradict one another: give one')
    if args.pretrained and args.from_scratch:
        raise InputError('--pretrained and --from_scratch contradict one another: give one')


def check_batches(args):
    check_batch_tokens(args)
    if args.batch_tokens is None:
        return
    if args.total_batch_size is not None or args.use_avg_len:
        other = '--use_avg_len' if args.use_avg_len else '--total_batch_size'
        raise InputError(f'--batch_tokens and {other} both say how large a batch is: give one')
    if args.synthetic_data:
        raise InputError('--batch_tokens needs samples of different lengths, not --synthetic_data')
    args.batch_size, args.use_avg_len = args.batch_tokens, True
    if args.num_buckets == 1:
        args.num_buckets = NUM_BUCKETS


def check_phases(args):
    if args.phase2 and args.phase1_num_steps is None:
        raise InputError('--phase2 needs --phase1_num_steps')
    if args.phase1_num_steps is not None and not args.phase2:
        raise InputError('--phase1_num_steps goes with --phase2')
    if args.phase2 and args.start_step is None:
        args.start_step = args.phase1_num_steps
    if args.phase2 and args.start_step < args.phase1_num_steps:
        raise InputError(
            f'--start_step {args.start_step} counts the steps of both phases: give '
            f'--phase1_num_steps {args.phase1_num_steps} or more'
        )


def own_gpus(args, workers):
    """The value of ``--gpus``: by default each of several workers has its own GPU."""
    if args.gpus is None and workers.size > 1 and mx.runtime.Features().is_enabled('CUDA'):
        return ','.join(map(str, range(mx.context.num_gpus())))
    return args.gpus


def set_batch_sizes(args, parts, workers):
    """Compute the batch size of one of an update's `parts` batches where the total was given."""
    for name, count in (('batch_size', parts), ('batch_size_eval', workers.size)):
        total, size = getattr(args, f'total_{name}'), getattr(args, name)
        if total is None:
            setattr(args, name, size or 8)
            continue
        if total % count:
            raise InputError(
                f'--total_{name} {total} is not divisible by {count}: the product of the '
                'numbers of workers, GPUs and --accumulate'
                if name == 'batch_size'
                else f'--total_{name} {total} is not divisible by {count} workers'
            )
        if size is not None and size * count != total:
            raise InputError(
                f'--{name} {size} and --total_{name} {total}: the total is {size * count}; give '
                'one of them'
            )
        setattr(args, name, total // count)


def make_model(args, contexts):
    args.vocab_file = args.sentencepiece or args.vocab_file
    check_files(args, 'vocab_file')
    given = args.pretrained_parameters or args.model_parameters or args.init_checkpoint
    args.from_scratch = not (args.pretrained or given or is_model_folder(args.model))

    choice, lowers = ModelChoice(args), False if args.cased else None
    block_class = pretraining_class(args, choice.model, args.dataset)
    return choice.build(block_class, contexts, do_lower_case=lowers)


def make_loaders(args, model, tokenizer, contexts, workers):
    """Those of ``--data`` and ``--data_eval``; None where the flag isn't given."""
    if args.raw or args.synthetic_data:
        check_length(args, 'max_seq_length', model)
    common = {'ctx': contexts, 'workers': workers}
    train = evaluation = None
    if args.synthetic_data:
        masks = min(args.max_predictions_per_seq, args.max_seq_length)
        sizes = args.batch_size, args.max_seq_length, masks
        train = SyntheticLoader(*sizes, tokenizer.vocab, seed=args.seed, **common)
    elif args.data:
        train = PretrainingLoader(
            make_source(args, args.data, args.raw, model, tokenizer, workers),
            args.batch_size,
            num_buckets=args.num_buckets,
            use_avg_len=args.use_avg_len,
            circle_length=args.circle_length,
            accumulate=args.accumulate * len(contexts),
            seed=args.seed,
            **common,
        )
    if args.data_eval:
        is_text = args.raw and not args.eval_use_npz
        evaluation = PretrainingLoader(
            make_source(args, args.data_eval, is_text, model, tokenizer, workers),
            args.batch_size_eval,
            shuffle=is_text,
            **common,
        )
    return train, evaluation


def make_source(args, files, is_text, model, tokenizer, workers):
    has_pairs = 'nsp' in model.pretraining_terms
    if not is_text:
        source = ShardFiles(files, tokenizer.vocab, model.context_length, has_pairs, workers)
        check_sizes(args, source)
        return source
    options = sample_options(args, has_pairs)
    return TextFiles(files, tokenizer, options, num_workers=args.num_dataset_workers)


def check_sizes(args, source):
    """Raise InputError if flags contradict the samples; TFRecords have one size, as Google's."""
    path = source.paths[0]
    for name in filter(
        lambda name: cli.is_given(args, name), ('max_seq_length', 'max_predictions_per_seq')
    ):
        samples = source.read(path)
        array = samples.input_ids if name == 'max_seq_length' else samples.masked_lm_positions
        value, width = getattr(args, name), array.shape[1]
        if width > value or width < value and is_tfrecord(path):
            raise InputError(f'--{name} {value}: the samples in {path!r} were made with {width}')


class Results(Callback):
    """results.json after each evaluation, and the curves at times."""

    def __init__(self, folder):
        self._folder = folder
        self._curves = Curves(self._draw)

    def on_epoch(self, loop, record):
        self._curves.update(loop.state)
        self._write_results(loop.state)

    def write(self, state, **more):
        self._curves.finish(state)
        self._write_results(state, **more)

    def _draw(self, state):
        model = os.path.basename(os.path.normpath(self._folder.args.model))
        plot_pretraining(self._folder.file('curves.png'), state, f'pre-training {model}')

    def _write_results(self, state, **more):
        self._folder.write('results.json', state, **more)
        if state.epochs:
            self._folder.write_eval_results(state.epochs[-1]['report'], state.epochs[-1])


def make_loop(folder, model, tokenizer, objective, loaders, contexts, workers):
    args, (train, evaluation) = folder.args, loaders
    evaluate = None
    if evaluation is not None:

        def evaluate(guard):
            return evaluate_pretraining(
                objective, evaluation, workers, guard, args.max_eval_steps
            )

    results = Results(folder)
    callbacks = [PretrainingLogger(), results]
    if args.tensorboard and workers.rank == 0:
        callbacks.append(TensorBoardWriter(args.tensorboard))
    if args.profile and workers.rank == 0:
        callbacks.append(Profiler(args.profile))
    # as GluonNLP's: the first update isn't of rate 0, the last one is
    schedule = finetune_schedule(args.lr, args.num_steps, args.warmup_ratio, first_step=1)
    job = job_of(
        args,
        FREE,
        data=None if args.synthetic_data else describe_files(args.data),
        gpus=len(contexts),
        vocab_file=describe_vocab(tokenizer.vocab),
    )
    loop = TrainingLoop(
        make_updater(args, model, schedule),
        objective,
        train,
        Plan(args.num_steps, args.accumulate * len(contexts), args.seed, args.log_interval),
        Evaluation(evaluate, args.eval_interval),
        Checkpoints(
            open_store(folder, args.phase2), args.ckpt_interval, job, BATCH_SIZES, UPDATE_NUMBERS,
            totals=TOTALS,
        ),
        callbacks,
        workers,
    )
    return loop, results


def open_store(folder, phase2):
    """The checkpoints of a phase; each phase counts its own steps."""
    return folder.checkpoints('checkpoints_phase2' if phase2 else 'checkpoints')


def begin(folder, loop, workers):
    """Go back to where an earlier run was, if the flags say so."""
    args, path = folder.args, None
    if args.resume:
        path = loop.resume()
    if path is None and args.phase2:
        checkpoint = open_store(folder, phase2=False).at(args.start_step)
        checkpoint.restore(loop.block, loop.updater.trainer)
        loop.state.step = args.start_step - args.phase1_num_steps
        path = checkpoint.path
    elif path is None and args.start_step:
        path = loop.resume(args.start_step)
    elif path is None and not args.resume and open_store(folder, args.phase2).paths():
        if not args.overwrite_output_dir:
            raise InputError(
                f'--ckpt_dir {args.ckpt_dir!r} has checkpoints of another training: add --resume '
                'to go on with it, --overwrite_output_dir to replace it, or name another folder'
            )
        if workers.rank == 0:
            open_store(folder, args.phase2).clear()
    if path is not None:
        logger.info('going on from %s', path)


def train(folder, model, tokenizer, objective, loaders, contexts, workers):
    args = folder.args
    loop, results = make_loop(folder, model, tokenizer, objective, loaders, contexts, workers)
    begin(folder, loop, workers)
    parts = args.accumulate * len(contexts) * workers.size
    logger.info(
        'training: %d steps of %d x %d %s, by %d workers with %s',
        args.num_steps,
        parts,
        args.batch_size,
        'tokens' if args.use_avg_len else 'samples',
        workers.size,
        ', '.join(map(str, contexts)),
    )
    state = loop.run()
    if workers.rank > 0:
        return
    logger.info('Train cost=%.1fs', state.seconds)
    model.save_pretrained(folder.file('model'), tokenizer)
    results.write(state, model='model')
    logger.info('the model is in %s', folder.file('model'))


def main(argv=None, comm_backend=None):
    args = parse_arguments(argv, comm_backend)
    for patterns in filter(None, (None if args.synthetic_data else args.data, args.data_eval)):
        matching_files(patterns)  # where none is there, say so before weights are loaded
    workers = make_workers(args.comm_backend, args.allreduce_dtype)
    contexts = find_contexts(own_gpus(args, workers), workers)
    set_batch_sizes(args, args.accumulate * len(contexts) * workers.size, workers)
    log = f'log_phase{2 if args.phase2 else 1}.txt'
    folder = RunFolder(args.ckpt_dir, args, log, workers, args.verbose)
    model, tokenizer = make_model(args, contexts)
    loaders = make_loaders(args, model, tokenizer, contexts, workers)
    if args.mirror:
        model.mirror()
    objective = pretraining_objective(model, accuracies=not args.no_compute_acc)
    try:
        if loaders[0] is not None:
            train(folder, model, tokenizer, objective, loaders, contexts, workers)
        else:
            evaluate_only(folder, objective, loaders[1], workers)
    finally:
        for loader in filter(None, loaders):
            loader.close()


def evaluate_only(folder, objective, loader, workers):
    _, report = evaluate_pretraining(
        objective, loader, workers, max_batches=folder.args.max_eval_steps
    )
    if workers.rank == 0:
        folder.write('evaluation.json', **report)
        folder.write_eval_results(report)


if __name__ == '__main__':
    sys.exit(cli.run(main))
