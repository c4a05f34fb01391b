"""Pre-training: tokens per second of its steps, beside the installed peers', and of Horovod's 1
and 2 processes; and samples per second of data creation on one core, beside the originals' scripts.

    git clone https://github.com/google-research/bert
    git clone --branch v0.10.0 https://github.com/dmlc/gluon-nlp
    python pretraining.py --input_file corpus.txt --vocab vocab.txt \\
        --google bert --gluonnlp gluon-nlp

An original whose checkout isn't named is left out. Each makes the same samples of the same text,
from reading it to the arrays in memory or (with --write) in a file; Google's file format needs
TensorFlow, so that its samples stay in memory.
"""

import argparse
import contextlib
import functools
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import types

from inference import VOCAB_SIZE
from side_by_side import (
    Case,
    Contender,
    add_flags,
    gluon_step,
    measure,
    our_update,
    parse_shapes,
    report,
    run,
    threads,
    torch_step,
)

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCRIPT = os.path.join(SCRIPTS, 'run_pretraining_hvd.py')
PARTS = ('steps', 'horovod', 'data')


def make_batch(shape):
    """Full sequences with 15 % of their words masked, as NumPy arrays."""
    import numpy as np

    batch, length = shape
    rng = np.random.RandomState(0)
    positions = np.sort(np.argsort(rng.rand(batch, length))[:, : max(1, round(0.15 * length))])
    return (
        rng.randint(0, VOCAB_SIZE, (batch, length)),
        rng.randint(0, 2, (batch, length)),
        np.full((batch,), length),
        positions,
        rng.randint(0, VOCAB_SIZE, positions.shape),
        rng.randint(0, 2, (batch,)),
    )


def ours(options):
    import mxnet as mx

    from bert import BertConfig, BertForPreTraining

    model = BertForPreTraining(BertConfig(num_hidden_layers=options.layers))
    model.initialize()
    model.hybridize(static_alloc=True)
    update = our_update(model, 'bertadam', {'learning_rate': 1e-4, 'wd': 0.01})

    def prepare(shape):
        batch = make_batch(shape)

        def compute():
            return model(*(mx.nd.array(array, dtype='float32') for array in batch))

        return gluon_step(compute, update)

    return prepare


def transformers(options):
    """The model of transformers with torch's AdamW; it too predicts the masked words only."""
    import numpy as np
    import torch
    import transformers

    torch.set_num_threads(threads())
    config = transformers.BertConfig(num_hidden_layers=options.layers)
    model = transformers.BertForPreTraining(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    cross_entropy = torch.nn.functional.cross_entropy

    def prepare(shape):
        batch = make_batch(shape)

        def compute():
            mask = np.ones(shape, np.int64)
            words, types, _, positions, ids, labels = map(torch.from_numpy, batch)
            outputs = model.bert(
                words, attention_mask=torch.from_numpy(mask), token_type_ids=types
            )
            masked = outputs.last_hidden_state[torch.arange(len(words))[:, None], positions]
            scores, pairs = model.cls(masked, outputs.pooler_output)
            loss = cross_entropy(scores.flatten(0, 1), ids.flatten())
            return loss + cross_entropy(pairs, labels)

        return torch_step(model, optimizer, compute)

    return prepare


def compare_steps(shapes, options):
    """Print tokens per second at each of the shapes, (batch, length)."""
    cases = [Case(f'{batch}x{length}', (batch, length), batch * length) for batch, length in shapes]
    peers = [Contender('torch+transformers', transformers, ('torch', 'transformers'))]
    measured = measure([Contender('ours', ours)], peers, cases, options)
    return report(
        f'BERT base pre-training step, {options.layers} layers, float32', measured, unit='tokens/s'
    )


def compare_processes(vocab_file, processes=(1, 2), steps=20, batch_size=16, length=128):
    """Print tokens per second of run_pretraining_hvd.py by 1 and 2 processes on one machine."""
    launcher = os.path.join(os.path.dirname(sys.executable), 'horovodrun')
    if not os.path.exists(launcher):
        print('Horovod is not installed (make horovod): its throughput is left out')
        return None
    rates = {}
    for count in processes:
        with tempfile.TemporaryDirectory() as folder:
            command = [launcher, '--gloo', '-np', count, '-H', f'localhost:{count}']
            command += [sys.executable, SCRIPT, '--synthetic_data', '--vocab_file', vocab_file]
            command += ['--max_seq_length', length, '--max_predictions_per_seq', 20]
            command += ['--batch_size', batch_size // count, '--num_steps', steps]
            command += ['--hparams', 'num_layers=4,units=256,hidden_size=1024,num_heads=4']
            command += ['--log_interval', 5, '--ckpt_dir', folder]
            subprocess.run(list(map(str, command)), check=True, stderr=subprocess.DEVNULL)
            with open(os.path.join(folder, 'results.json'), encoding='utf-8') as file:
                log = json.load(file)['training']['log']
        rates[count] = statistics.median(record['tokens_per_second'] for record in log[1:])
        print(
            f'Horovod, {count} processes: {rates[count]:.0f} tokens/s, '
            f'{rates[count] / rates[processes[0]]:.2f} of {processes[0]}'
        )
    return rates


def _load(name, path):
    """Import a file as a module."""
    from model_zoo.errors import InputError

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
    """Google's algorithm, from a checkout of google-research/bert."""
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
    """GluonNLP's algorithm, from a checkout of gluon-nlp v0.10.0."""
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


def _sample_options(options):
    from model_zoo.tasks.pretraining import SampleOptions

    return SampleOptions(
        max_seq_length=options.max_seq_length,
        max_predictions_per_seq=options.max_predictions_per_seq,
        dupe_factor=options.dupe_factor,
        whole_word_mask=options.whole_word_mask,
    )


def _on_one_core(make_samples):
    """``prepare`` for a function that makes all samples and returns their number."""
    if hasattr(os, 'sched_setaffinity'):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return lambda files: lambda: make_samples(files)


def our_samples(options):
    from bert import BertTokenizer
    from model_zoo.tasks.pretraining import Corpus, SampleMaker
    from model_zoo.tasks.pretraining.files import write_shard

    vocab = BertTokenizer(options.vocab).vocab

    def make_samples(files):
        corpus = Corpus(files)
        # a new tokenizer: this one's memory of words would make it faster than it is
        maker = SampleMaker(corpus, BertTokenizer.from_vocab(vocab), _sample_options(options))
        samples = maker.make(0, corpus.num_bytes, 12345)
        if options.write:
            write_shard(os.path.join(options.folder, 'ours.npz'), samples, vocab)
        return samples.count

    return _on_one_core(make_samples)


def gluonnlp_samples(options):
    from model_zoo.tasks.pretraining.files import read_lengths
    from model_zoo.tokenization.vocab import load_vocab

    make, vocab = gluonnlp_original(options.gluonnlp), load_vocab(options.vocab)
    path = os.path.join(options.folder, 'gluonnlp.npz')

    def make_samples(files):
        if not options.write:
            return len(make(files, vocab, _sample_options(options))[4])
        make(files, vocab, _sample_options(options), path=path)
        return len(read_lengths(path))

    return _on_one_core(make_samples)


def google_samples(options):
    make = google_original(options.google)
    return _on_one_core(lambda files: len(make(files, options.vocab, _sample_options(options))))


PEERS = {
    'gluonnlp': Contender('GluonNLP 0.10', gluonnlp_samples),
    'google': Contender("Google's", google_samples),
}


def measure_data(args):
    """Samples a second of each contender, in seconds of CPU, on one core."""
    from model_zoo.tasks.pretraining import Corpus, matching_files

    files = matching_files(args.input_file)
    peers = []
    for name, contender in PEERS.items():
        if getattr(args, name):
            peers.append(contender)
        else:
            print(f'--{name} is not given: left out')
    case = Case('data', files, 0)
    measured = measure([Contender('ours', our_samples)], peers, [case], args, warm=False)
    # each makes its own number of samples
    measured = [each._replace(case=case._replace(work=each.answer)) for each in measured]
    size = Corpus(files).num_bytes / 2**20
    return report(
        f'Samples of {args.max_seq_length} tokens, {args.dupe_factor} times {size:.1f} MB of text, '
        'on one core',
        measured,
        unit='samples/s',
        cpu=True,
    )


def main(argv=None):
    from model_zoo.errors import InputError
    from model_zoo.util.files import write_json

    parser = add_flags(' '.join(__doc__.split('\n')[:2]), rounds=3)
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
    add('--parts', nargs='+', choices=PARTS, default=PARTS, help='what to measure')
    add('--shapes', default='8x128,32x128', help='batch x length of the steps')
    add('--layers', type=int, default=12, help="of the steps' BERT base")
    add('--step_rounds', type=int, default=6, help='steps of each contender')
    args = parser.parse_args(argv)
    if args.rounds < 1:
        raise InputError(f'--rounds {args.rounds}: give 1 or more')
    results = {}
    if 'steps' in args.parts:
        options = argparse.Namespace(
            rounds=args.step_rounds, seconds=120, layers=args.layers, checkout=args.checkout,
            cpu_time=args.cpu_time,
        )  # fmt: skip
        results['steps'] = compare_steps(parse_shapes(args.shapes), options)
    if 'horovod' in args.parts:
        results['horovod'] = compare_processes(args.vocab)
    if 'data' in args.parts:
        results['data'] = measure_data(args)
    if args.json:
        write_json(args.json, results)


if __name__ == '__main__':
    run(main)
