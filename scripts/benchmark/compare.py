"""Compare this project with its peers, or with an older version, in turns.

    python scripts/benchmark/compare.py forward --shapes 8x128
    python scripts/benchmark/compare.py training --checkout ../before

``forward``
    An encoder of ``--family`` with random weights. As peers, ONNX Runtime and OpenVINO run files
    made of transformers' model.
``vectors``
    Mean vectors of the sentences of ``--file``, normalized, with the weights of the folder
    ``--model``.
``generation``
    Greedy, by GPT-2 with random weights.
``training``
    A step (forward, backward, clipping, Adam) of fine-tuning a classifier.
``serving``
    Requests for a classifier, each with one text of ``--file``, by several clients.

All contenders must have the same vectors, tokens (in float32) and scores. ``--table`` adds the
best times to a file of figures, from which ``python docs/figures.py`` writes a page's table.
"""

import argparse
import functools
import os
import tempfile
from typing import NamedTuple

import numpy as np
from harness import Case, Contender, measure, rows_of, rst_table, run_apart, threads
from inputs import FAMILIES, bert_flops, read_sentences

from model_zoo.app import cli
from model_zoo.app.arguments import check_at_least_one
from model_zoo.environment import cpu_flags
from model_zoo.errors import InputError
from model_zoo.util.files import write_json
from model_zoo.util.reading import read_json

PRECISIONS = ('float32', 'bfloat16', 'int8', 'float16')
#: engine -> what it needs, and its precisions
ENGINES = {
    'mxnet': ((), ('float32', 'bfloat16')),
    'onnxruntime': (('onnx', 'onnxruntime'), ('float32', 'int8')),
    'openvino': (('onnx', 'onnxruntime', 'openvino'), ('float32', 'bfloat16')),
}
#: works whose times `--table` keeps
KEPT = 'forward', 'vectors', 'generation'


class Kind(NamedTuple):
    """A contender in all its precisions: its function, and what that needs."""

    name: str
    make: str
    needs: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ('float32',)
    arguments: dict[str, str] = {}


TORCH, HALF = ('torch', 'transformers'), ('float32', 'bfloat16')
PEERS = {
    'forward': (
        Kind('gluonnlp', 'gluon:gluonnlp_forward', ('gluonnlp',)),
        Kind('torch', 'pytorch:forward', TORCH, PRECISIONS[:3]),
        Kind('onnxruntime', 'runtimes:onnxruntime', (*TORCH, 'onnxruntime'), ('float32', 'int8')),
        Kind('openvino', 'runtimes:openvino', (*TORCH, 'openvino'), HALF),
    ),
    'vectors': (
        Kind('sentence-transformers', 'pytorch:vectors', ('sentence_transformers',), HALF),
    ),
    'generation': (Kind('torch', 'pytorch:generation', TORCH, HALF),),
    'training': (
        Kind('gluonnlp', 'gluon:gluonnlp_training', ('gluonnlp',)),
        Kind('torch', 'pytorch:training', TORCH, HALF),
    ),
    'serving': (Kind('torch', 'programs:serve_peer', (*TORCH, 'starlette', 'uvicorn')),),
}
OURS = {work: f'gluon:{work}' for work in ('forward', 'vectors', 'generation', 'training')}
OURS['serving'] = 'programs:serve'


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument
    add('work', choices=OURS)
    add('--precision', nargs='+', default=['float32'], choices=PRECISIONS)
    add('--only', nargs='+', default=(), metavar='TEXT', help='contenders with TEXT in their names')
    older = 'another version of this project, with the Python of its .venv; may be repeated'
    add('--checkout', action='append', default=[], metavar='DIR', help=older)
    add('--rounds', type=int, default=10, help='turns of each contender')
    add('--seconds', type=float, default=60, help='limit for one case')
    add('--shapes', help='batch x length, such as 8x128; for generation, of the prompts')
    add('--family', default='bert', choices=FAMILIES, help='for forward')
    add('--layers', type=int, default=12, help='22 in the base model of ModernBERT')
    add('--units', type=int, default=768, help="BERT's")
    add('--vocab_size', type=int, default=50257, help="GPT-2's")
    add('--new_tokens', type=int, default=128, help='for generation')
    add('--model', default='all-MiniLM-L6-v2', help='for vectors (a folder) and serving')
    add('--file', help='for vectors and serving: one text per line')
    add('--count', type=int, default=400, help='number of texts')
    add('--max_len', type=int, default=256, help='in tokens, for vectors')
    add('--clients', type=int, nargs='+', default=[1, 8, 64], help='for serving')
    add('--requests', type=int, default=500, help='for serving, in a turn')
    add('--cache', metavar='DIR', help='folder that keeps files for later runs')
    add('--json', metavar='FILE', help='file for the rows')
    add('--table', metavar='FILE', help='add the best times to this file of figures')
    # a plain object, which an older version's process can read
    args = argparse.Namespace(**vars(parser.parse_args(argv)))
    if args.table and args.work not in KEPT:
        raise InputError(f'has no {args.work}; use `json`', field='table')
    if args.work in ('vectors', 'serving') and not args.file:
        raise InputError(f'is missing, which {args.work} needs', field='file')
    check_at_least_one(args, 'rounds')
    return args


def contenders(args):
    """Return this project's contenders in all engines and checkouts, and the peers."""
    make = OURS[args.work]
    ours = [Kind(f'ours, {each}', make, *ENGINES[each], {'engine': each}) for each in ENGINES]
    if args.work == 'training':
        names = {'ours,': '', "ours, MXNet's operators,": 'off'}
        precisions = (*HALF, 'float16')
        ours = [Kind(name, make, (), precisions, {'operators': names[name]}) for name in names]
    here = [
        Contender(f'{name} {precision}', make, needs, {**arguments, 'precision': precision})
        for kinds in (ours, PEERS[args.work])
        for precision in args.precision
        for name, make, needs, precisions, arguments in kinds
        if precision in precisions and (args.family == 'bert' or name != 'gluonnlp')
    ]
    own, folders = [each for each in here if each.make == make], map(os.path.abspath, args.checkout)
    older = [each._replace(name=f'{each.name} in {f}', checkout=f) for f in folders for each in own]
    texts = args.only or ['']
    return [each for each in (*here, *older) if any(text in each.name for text in texts)]


def cases(args):
    """Return the cases to compute, and the unit of their work."""
    if args.work == 'vectors':
        count = len(read_sentences(args))
        return [Case(str(count), count, count)], 'sentences/s'
    if args.work == 'serving':
        return [Case(f'{n} clients', n, args.requests) for n in args.clients], 'requests/s'
    default = {'forward': '1x32,1x128,8x128,32x128', 'generation': '1x32,8x32'}
    text = args.shapes or default.get(args.work, '1x128,8x128')
    shapes = [tuple(map(int, shape.split('x'))) for shape in text.split(',')]
    if args.work == 'generation':
        work, unit = lambda batch, _: batch * args.new_tokens, 'tokens/s'
    elif args.work == 'training' or args.family != 'bert':
        work, unit = lambda batch, length: batch * length, 'tokens/s'
    else:
        work, unit = lambda *shape: bert_flops(args, *shape) / 1e9, 'GF/s'
    return [Case(f'{b}x{n}', (b, n), work(b, n)) for b, n in shapes], unit


#: work -> how far an answer may be from the first contender's, by precision
BOUNDS = {
    'vectors': {'float32': 1e-5, 'bfloat16': 1e-3, 'int8': 0.1},
    'generation': {'float32': 0, 'bfloat16': 1, 'int8': 1},
    'serving': {'float32': 1e-3, 'bfloat16': 0.1, 'int8': 0.3},
}


def check(work, name, answer, expected):
    """Raise InputError if an answer is too far from the first contender's."""
    if work == 'vectors':
        vectors = answer / np.linalg.norm(answer, axis=1, keepdims=True)
        distance = 1 - np.min(np.sum(np.multiply(vectors, expected), axis=1))
    elif work == 'generation':
        distance = float(answer != expected)
    else:
        pairs = zip(answer, expected)
        distance = max(abs(row[label] - want[label]) for row, want in pairs for label in want)
    bound = next(bound for precision, bound in BOUNDS[work].items() if precision in name)
    if distance > bound:
        raise InputError(f'{name} differs from the first by {distance:.2g}')


def run(args):
    """Measure, and return the measured figures and the unit."""
    everyone, (what, unit) = contenders(args), cases(args)
    with tempfile.TemporaryDirectory() as folder:
        args.folder = os.path.abspath(args.cache or folder)
        args.gpt2 = os.path.join(args.folder, f'gpt2-{args.layers}-{args.vocab_size}')
        args.classifier = os.path.join(args.folder, 'classifier')
        if args.work == 'generation' and not os.path.isdir(args.gpt2):
            run_apart('gluon:write_gpt2', args)
        args.encoder = os.path.join(args.folder, f'{args.family}-{args.layers}-{args.units}')
        if args.work == 'forward' and args.family != 'bert' and not os.path.isdir(args.encoder):
            run_apart('pytorch:write_encoder', args)
        if args.work == 'serving':
            run_apart('gluon:write_classifier', args)
        # a forward pass or a step is short; another one before it warms the caches
        warm = args.work in ('forward', 'training')
        compare = functools.partial(check, args.work) if args.work in BOUNDS else None
        return measure(everyone, what, args, warm, compare), unit


def processor():
    """Return the name of this kind of processor in the table of figures."""
    known = cpu_flags()
    return 'amx' if 'amx_bf16' in known else 'avx512' if 'avx512_vnni' in known else 'avx2'


def record(path, work, measured):
    """Write the best times, in milliseconds, to the table of this kind of processor."""
    content = read_json(path)
    table = content['processors'].setdefault(processor(), {})
    for result in measured:
        if ' in ' in result.contender:  # another checkout
            continue
        side = 'ours' if result.contender.startswith('ours') else 'peers'
        row = table.setdefault(side, {}).setdefault(work, {}).setdefault(result.case.label, {})
        row[result.contender.replace('ours, ', '')] = round(1e3 * min(result.seconds), 1)
    write_json(path, content)


def main(argv=None):
    args = parse_arguments(argv)
    measured, unit = run(args)
    rows = rows_of(measured, unit)
    print(f'{args.work}, {threads()} threads')
    if rows:
        cells = [[v if isinstance(v, str) else f'{v:.4g}' for v in row.values()] for row in rows]
        print('\n'.join(rst_table([*rows[0]], cells)))
    if args.json:
        write_json(args.json, {'work': args.work, 'threads': threads(), 'rows': rows})
    if args.table:
        record(args.table, args.work, measured)


if __name__ == '__main__':
    cli.run_script(main)
