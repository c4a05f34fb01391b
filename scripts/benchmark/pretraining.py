"""Pre-training: tokens a second of its steps, beside the installed peers', and of Horovod's 1 and 2
processes; and samples a second of data creation on one core, beside the originals' scripts.

    git clone https://github.com/google-research/bert
    git clone --branch v0.10.0 https://github.com/dmlc/gluon-nlp
    python pretraining.py --input_file corpus.txt --vocab vocab.txt \\
        --google bert --gluonnlp gluon-nlp

An original whose checkout isn't named is left out. Each makes the same samples of the same text,
from reading it to the arrays in memory or (with --write) in a file; Google's file format needs
TensorFlow, so that its samples stay in memory.
"""

import contextlib
import functools
import importlib.util
import os
import random
import statistics
import sys
import tempfile
import time
import types

import model_zoo  # isort: skip  sets MXNet's threads before it loads

from pretraining_step import compare_processes, compare_steps
from side_by_side import parse_shapes

from bert.tokenizer import BertTokenizer
from model_zoo.app import cli
from model_zoo.errors import InputError
from model_zoo.tasks.pretraining import Corpus, SampleMaker, SampleOptions, matching_files
from model_zoo.tasks.pretraining.shards import read_lengths, write_shard
from model_zoo.tokenization.vocab import load_vocab
from model_zoo.util.files import write_json

PARTS = ('steps', 'horovod', 'data')


def _load(name, path):
    """Import a file as a module."""
    if not os.path.isfile(path):
        raise InputError(f'no such file: {path!r}; name the folder of a checkout')
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def _stand_in_for_tensorflow():
    """What Google's scripts take from TensorFlow when no file of its is written."""
    module = types.ModuleType('tensorflow')
    flags = types.SimpleNamespace(do_whole_word_mask=False)
    kinds = 'string', 'bool', 'integer', 'float'
    defines = {f'DEFINE_{kind}': lambda *args: None for kind in kinds}
    module.flags = types.SimpleNamespace(FLAGS=flags, **defines)
    module.gfile = types.SimpleNamespace(GFile=functools.partial(open, encoding='utf-8'))
    hidden = {name: sys.modules.get(name) for name in ('tensorflow', 'tokenization')}
    sys.modules['tensorflow'] = module
    try:
        yield flags
    finally:
        for name, former in hidden.items():
            sys.modules.pop(name, None)
            if former is not None:
                sys.modules[name] = former


def google_original(folder):
    """Google's algorithm, from a checkout of google-research/bert.

    Returns
    -------
    callable
        ``run(files, vocab_file, options, seed) -> list of its TrainingInstance``, of lower-cased
        text; ``options`` are `SampleOptions`.
    """
    with _stand_in_for_tensorflow() as flags:
        tokenization = _load('tokenization', os.path.join(folder, 'tokenization.py'))
        sys.modules['tokenization'] = tokenization
        original = _load('google_bert', os.path.join(folder, 'create_pretraining_data.py'))

    def run(files, vocab_file, options, seed=12345):
        flags.do_whole_word_mask = options.whole_word_mask
        tokenizer = tokenization.FullTokenizer(vocab_file, do_lower_case=True)
        return original.create_training_instances(
            files,
            tokenizer,
            options.max_seq_length,
            options.dupe_factor,
            options.short_seq_prob,
            options.masked_lm_prob,
            options.max_predictions_per_seq,
            random.Random(seed),
        )

    return run


def gluonnlp_original(folder):
    """GluonNLP's algorithm, from a checkout of gluon-nlp v0.10.0.

    Returns
    -------
    callable
        ``run(files, vocab, options, seed, path=None)``, of lower-cased text; writes `path` or
        returns lists of arrays, of which the fifth has the labels of the next sentences.
    """
    import gluonnlp

    path = os.path.join(folder, 'scripts', 'bert', 'data', 'create_pretraining_data.py')
    original = _load('gluonnlp_create_pretraining_data', path)

    def run(files, vocab, options, seed=12345, path=None):
        random.seed(seed)
        return original.create_training_instances(
            (
                files,
                gluonnlp.data.BERTTokenizer(vocab, lower=True),
                options.max_seq_length,
                options.short_seq_prob,
                options.masked_lm_prob,
                options.max_predictions_per_seq,
                options.whole_word_mask,
                vocab,
                options.dupe_factor,
                1,
                None,
                path,
            )
        )

    return run


def data_contenders(args, files, options, path):
    """Name -> function that makes all samples and returns their number."""
    tokenizer = BertTokenizer(args.vocab)
    corpus = Corpus(files)

    def run_ours():
        # a new tokenizer: this one's memory of words would make it faster than it is
        maker = SampleMaker(corpus, BertTokenizer.from_vocab(tokenizer.vocab), options)
        samples = maker.make(0, corpus.num_bytes, 12345)
        if args.write:
            write_shard(path, samples, tokenizer.vocab)
        return samples.count

    contenders = {'ours': run_ours}
    if args.gluonnlp:
        gluonnlp, vocab = gluonnlp_original(args.gluonnlp), load_vocab(args.vocab)

        def run_gluonnlp():
            if not args.write:
                return len(gluonnlp(files, vocab, options)[4])
            gluonnlp(files, vocab, options, path=path)
            return len(read_lengths(path))

        contenders['GluonNLP 0.10'] = run_gluonnlp
    if args.google:
        google = google_original(args.google)
        contenders["Google's"] = lambda: len(google(files, args.vocab, options))
    return contenders


def measure_data(args):
    """Samples a second of each contender, in CPU seconds of this process, on one core."""
    if hasattr(os, 'sched_setaffinity'):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    options = SampleOptions(
        max_seq_length=args.max_seq_length,
        max_predictions_per_seq=args.max_predictions_per_seq,
        dupe_factor=args.dupe_factor,
        whole_word_mask=args.whole_word_mask,
    )
    files = matching_files(args.input_file)
    rates = {}
    with tempfile.TemporaryDirectory() as folder:
        contenders = data_contenders(args, files, options, os.path.join(folder, 'part.npz'))
        for _ in range(args.rounds):
            for name, run in contenders.items():
                started = time.process_time()
                count = run()
                rates.setdefault(name, []).append(count / (time.process_time() - started))
    print(
        f'samples of {args.max_seq_length} tokens, {args.dupe_factor} times '
        f'{Corpus(files).num_bytes / 2**20:.1f} MB of text, on one core (model_zoo '
        f'{model_zoo.__version__})'
    )
    print(f'{"contender":<16}{"samples/s":>12}{"ours / it":>12}')
    results = []
    for name, each in rates.items():
        ratio = statistics.median(ours / it for ours, it in zip(rates['ours'], each))
        print(f'{name:<16}{statistics.median(each):>12.0f}{ratio:>12.1f}')
        results.append({'contender': name, 'samples_per_s': each, 'ours_over_it': ratio})
    for name in ('gluonnlp', 'google'):
        if not getattr(args, name):
            print(f'--{name} is not given: left out')
    return results


def main(argv=None):
    parser = cli.parser(' '.join(__doc__.split('\n')[:2]))
    add = parser.add_argument
    add('--input_file', required=True, help='text; wildcards, separated by commas')
    add('--vocab', required=True, help='vocab.txt of an uncased BERT')
    add('--google', metavar='DIR', help='checkout of google-research/bert')
    add('--gluonnlp', metavar='DIR', help='checkout of dmlc/gluon-nlp, v0.10.0')
    add('--max_seq_length', type=int, default=128)
    add('--max_predictions_per_seq', type=int, default=20)
    add('--dupe_factor', type=int, default=5)
    add('--whole_word_mask', action='store_true')
    add('--write', action='store_true', help='ours and GluonNLP write a file, too')
    add('--rounds', type=int, default=3)
    add('--parts', nargs='+', choices=PARTS, default=PARTS, help='what to measure')
    add('--shapes', default='8x128,32x128', help='batch x length of the steps')
    add('--step_rounds', type=int, default=6, help='steps of each contender')
    add('--json', help='file for the figures')
    args = parser.parse_args(argv)
    if args.rounds < 1:
        raise InputError(f'--rounds {args.rounds}: give 1 or more')
    results = {}
    if 'steps' in args.parts:
        results['steps'] = compare_steps(parse_shapes(args.shapes), args.step_rounds, seconds=120)
    if 'horovod' in args.parts:
        results['horovod'] = compare_processes(args.vocab)
    if 'data' in args.parts:  # last, because it keeps to one core from then on
        results['data'] = measure_data(args)
    if args.json:
        write_json(args.json, results)


if __name__ == '__main__':
    sys.exit(cli.run(main))
