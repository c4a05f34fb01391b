"""Train or fine-tune a language model, OpenAI GPT, GPT-2 or Transformer-XL, on a text.

    python train_lm.py --model gpt2 --train_file train.txt --eval_file valid.txt
    python train_lm.py --family gpt2 --from_scratch --learn_vocab 8000 --train_file ... \\
        --hparams num_layers=4,units=256,num_heads=4,max_length=256
    python train_lm.py --family transfo_xl --from_scratch --train_file ... --tgt_len 64 --mem_len 64

OpenAI GPT and GPT-2 read blocks of the text in random order. Transformer-XL reads it in order, in
``--batch_size`` streams with a memory. Perplexity is measured after each epoch; without
``--train_file`` the script only measures it. ``--output_dir`` receives the log, ``results.json``,
``curves.png``, the parameters after the last epochs and the best one, checkpoints for ``--resume``,
and ``best_model/`` for ``from_pretrained``, generate_gpt2.py and eval_transfo_xl.py.
"""

import os
import sys
from typing import NamedTuple

import numpy as np

from gpt import OpenAIGPTLMHeadModel
from gpt.tokenizer import OpenAIGPTTokenizer
from gpt2 import GPT2LMHeadModel
from gpt2.tokenizer import GPT2Tokenizer
from model_zoo.app import (
    About,
    ModelChoice,
    Outcome,
    Run,
    Score,
    Training,
    add_comm_backend_argument,
    add_originals,
    add_training_arguments,
    check_at_least_one,
    check_files,
    check_training_arguments,
    cli,
    describe,
    family_of,
    job_of,
)
from model_zoo.errors import InputError
from model_zoo.optimizer import SCHEDULES, get_schedule
from model_zoo.tasks.language_model import BlockLoader, evaluate_perplexity
from model_zoo.tokenization.learn import learn_byte_pairs
from model_zoo.tokenization.vocab_file import find_vocab_file
from model_zoo.training.objective import Objective
from model_zoo.training.workers import make_workers
from model_zoo.util.lines import read_text
from transfo_xl import (
    CarriedMemory,
    SegmentReader,
    StreamLoader,
    TransfoXLLMHeadModel,
    TransfoXLTokenizer,
)


class Family(NamedTuple):
    """A family in this script."""

    head: type
    tokenizer: type
    default: str  # name of the model


FAMILIES = {
    'gpt': Family(OpenAIGPTLMHeadModel, OpenAIGPTTokenizer, 'gpt_12_768_12'),
    'gpt2': Family(GPT2LMHeadModel, GPT2Tokenizer, 'gpt2_12_768_12'),
    'transfo_xl': Family(TransfoXLLMHeadModel, TransfoXLTokenizer, 'transfo_xl_18_1024_16'),
}
LENGTHS = ('tgt_len', 'ext_len', 'mem_len')
# What may differ when a training is resumed: where the files are.
PLACES = ('train_file', 'eval_file', 'vocab_file')


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument_group('text').add_argument
    add('--train_file', help='text in UTF-8')
    add('--eval_file', required=True, help='text to measure the perplexity on')
    add('--block_size', type=int, help="tokens of a block; default: the model's context")
    add('--tgt_len', type=int, help="Transformer-XL's segments; default: as the model says")
    add('--ext_len', type=int, help='positions of a segment that are repeated with the next one')
    add('--mem_len', type=int, help="positions that the model's memory holds")
    add(
        '--learn_vocab',
        type=int,
        metavar='SIZE',
        help='with --from_scratch: learn the vocabulary from the training text, at most this many '
        'byte pairs for GPT-2 or words for Transformer-XL (default for this one: all words)',
    )
    add(
        '--cutoffs',
        type=int,
        nargs='*',
        help="Transformer-XL's, --from_scratch; default: by the frequencies of the words",
    )
    add('--max_grad_norm', type=float, default=1.0, help='clip the norm of all gradients to this')
    add('--lr_schedule', default='warmup_cosine', choices=list(SCHEDULES))
    add('--family', choices=list(FAMILIES), help="default: --model's")
    ModelChoice.add_arguments(parser, None)
    add_training_arguments(parser, lengths_differ=False)  # but for the last block of a text
    add_comm_backend_argument(parser)
    parser.set_defaults(
        optimizer='openaiadam', batch_size=8, lr=2.5e-4, epsilon=1e-8, warmup_ratio=0.01
    )
    add_originals(parser, 'train_lm')
    args = parser.parse_args(argv)
    check_arguments(args)
    return args


def check_arguments(args):
    check_training_arguments(args)
    check_at_least_one(args, 'tgt_len', 'learn_vocab')
    check_files(args, 'train_file', 'eval_file')
    if not args.max_grad_norm > 0:
        raise InputError(f'--max_grad_norm {args.max_grad_norm}: give a number above 0')
    if args.learn_vocab and not (args.from_scratch and args.train_file):
        raise InputError('--learn_vocab needs --from_scratch and --train_file')
    if args.learn_vocab and args.vocab_file:
        raise InputError('--learn_vocab makes a vocabulary: leave out --vocab_file')
    if args.resume and not args.train_file:
        raise InputError('--resume continues a training: it needs --train_file')
    args.family = find_family(args)
    args.model = args.model or FAMILIES[args.family].default
    is_streamed = args.family == 'transfo_xl'
    for name in ('block_size',) if is_streamed else (*LENGTHS, 'cutoffs'):
        if getattr(args, name) is not None:
            raise InputError(f'--{name} is not for {args.family}: leave it out')
    if args.cutoffs is not None and not args.from_scratch:
        raise InputError('--cutoffs needs --from_scratch: a trained model has its own')
    if args.learn_vocab and args.family == 'gpt':
        raise InputError(
            "--learn_vocab learns GPT-2's byte pairs, or Transformer-XL's words; for gpt give "
            '--vocab_file'
        )
    if args.vocab_file and os.path.isdir(args.vocab_file):
        args.vocab_file = find_vocab_file(None, path=args.vocab_file).path


def find_family(args):
    """The family that --family or --model names."""
    if args.model is None:
        if args.family is None:
            raise InputError('give --model, a name or a folder, or --family')
        return args.family
    found = family_of(args.model, args.dataset)
    if found is None and args.family is None:
        raise InputError(
            f'--model {args.model!r}: its config.json does not tell the family; give --family'
        )
    if found is not None and found not in FAMILIES:
        raise InputError(f'--model {args.model!r} is a {found}: give one of {", ".join(FAMILIES)}')
    if None not in (found, args.family) and found != args.family:
        raise InputError(f'--family {args.family}: --model {args.model!r} is a {found}')
    return found or args.family


def learn_vocab(args, workers):
    """Make the vocabulary of the training text; returns the path of its file."""
    folder = os.path.join(args.output_dir, 'vocab')
    path = os.path.join(folder, 'vocab.json')
    if (args.resume or workers.rank > 0) and os.path.isfile(path):
        return path
    if args.family == 'gpt2':
        return learn_byte_pairs(args.train_file, args.learn_vocab, folder)
    special = ['<unk>', '<eos>']
    size = None if args.learn_vocab is None else max(0, args.learn_vocab - len(special))
    tokenizer = TransfoXLTokenizer(special=special, max_size=size)
    tokenizer.count_file(args.train_file, add_eos=True)
    tokenizer.build_vocab()
    tokenizer.save_pretrained(folder)
    return path


class BlockModel:
    """OpenAI GPT or GPT-2: each block of the text is read by itself."""

    def __init__(self, run, model, tokenizer):
        args = run.args
        self.args, self.model, self._tokenizer, self._run = args, model, tokenizer, run
        self.block = model
        if args.block_size is None:
            args.block_size = model.context_length
        if not 2 <= args.block_size <= model.context_length:
            raise InputError(
                f'--block_size {args.block_size}: give 2 to {model.context_length}, the tokens '
                'that the model takes'
            )

    def load(self, path, batch_size, train=False):
        """Loader of a text's batches, the number of its words, and its tokens."""
        text = read_text(path)
        tokens = np.array(self._tokenizer.encode(text), np.int32)
        workers = self._run.workers if train else None
        loader = BlockLoader(
            tokens, self.args.block_size, batch_size, train, self.args.seed, self._run.contexts,
            workers,
        )  # fmt: skip
        return loader, len(text.split()), tokens

    def mean_loss(self, batch):
        return self.model(batch.words, valid_length=batch.valid_length, lm_labels=batch.words)

    def loss_sum(self, batch):
        return self.mean_loss(batch) * batch.count


class StreamModel:
    """Transformer-XL: reads the text in order, with a memory."""

    def __init__(self, run, model, tokenizer):
        args = run.args
        self.args, self.model, self._tokenizer, self._run = args, model, tokenizer, run
        for name in LENGTHS:
            if getattr(args, name) is None:
                setattr(args, name, getattr(model.config, name))
        lengths = [getattr(args, name) for name in LENGTHS]
        model.reset_length(*lengths)
        for name, length in zip(LENGTHS, lengths):
            setattr(model.config, name, length)  # of what is saved
        self.block = CarriedMemory(model, args.batch_size, run.workers)
        self._reader = SegmentReader(model)

    def load(self, path, batch_size, train=False):
        """Loader of a text's batches, the number of words that they predict, and its tokens."""
        tokens = self._tokenizer.encode_file(path, ordered=True, add_eos=True)
        lengths = self.args.tgt_len, self.args.ext_len
        workers = self._run.workers if train else None
        loader = StreamLoader(tokens, batch_size, *lengths, self._run.ctx, workers)
        ends = self._tokenizer.convert_tokens_to_ids('<eos>')
        return loader, int((loader.labels != ends).sum()), tokens

    def mean_loss(self, batch):
        return self.block(batch).sum() / batch.count

    def loss_sum(self, batch):
        return self._reader(batch).sum()


def make_model(args, contexts):
    """The model, initialized, and its tokenizer."""
    family = FAMILIES[args.family]
    choice = ModelChoice(args)
    options = {}
    if args.family == 'transfo_xl' and args.from_scratch:
        options['cutoffs'] = args.cutoffs
        if args.cutoffs is None:
            options['cutoffs'] = choice.tokenizer(family.head).cutoffs()
    return choice.build(family.head, contexts, **options)


def build(run):
    """The model of the flags, as a `BlockModel` or `StreamModel`, and its tokenizer."""
    args = run.args
    if args.family == 'transfo_xl' and len(run.contexts) > 1:
        raise InputError(
            f'--gpus {args.gpus}: Transformer-XL reads batch after batch, and remembers; give one '
            'GPU, or --comm_backend horovod with a process for each'
        )
    if args.learn_vocab or (args.family == 'transfo_xl' and args.from_scratch):
        with run.workers.first_alone():
            args.vocab_file = args.vocab_file or learn_vocab(args, run.workers)
    model, tokenizer = make_model(args, run.contexts)
    kind = StreamModel if args.family == 'transfo_xl' else BlockModel
    return kind(run, model, tokenizer), tokenizer


def train(run, task, tokenizer, evaluate):
    args = run.args
    loader, _, tokens = task.load(args.train_file, args.batch_size, train=True)
    model = task.model
    objective = Objective(
        lambda batch: [task.mean_loss(batch)], lambda batch: (batch.count,), unit='tokens'
    )

    def schedule(num_steps):
        return get_schedule(args.lr_schedule, args.lr, args.warmup_ratio, num_steps, first_step=1)

    title = f'{os.path.basename(args.train_file)}, {args.family}'
    run.train(
        Training(title, task.block, loader, objective, args.max_grad_norm, schedule),
        Score('log-likelihood of a token', evaluate),
        Outcome(
            lambda folder, **options: model.save_pretrained(folder, tokenizer, **options),
            results={'tokens': len(tokens), 'vocab_size': model.config.vocab_size},
            about=About('text-generation', args.family, {'train': len(tokens)}, 'tokens'),
        ),
        job_of(args, PLACES, train_file=describe(len(tokens), 'tokens', [tokens])),
    )


def main(argv=None):
    args = parse_arguments(argv)
    workers = make_workers(args.comm_backend, args.allreduce_dtype)
    run = Run(args, 'lm', workers=workers, trains=bool(args.train_file))
    task, tokenizer = build(run)
    loader, num_words, _ = task.load(args.eval_file, args.dev_batch_size)

    def evaluate(guard=None):
        return evaluate_perplexity(task.loss_sum, loader, num_words, guard=guard)

    if args.train_file:
        train(run, task, tokenizer, evaluate)
    else:
        run.infer(evaluate, lambda folder: [])


if __name__ == '__main__':
    sys.exit(cli.run(main))
