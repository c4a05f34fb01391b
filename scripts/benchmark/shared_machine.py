"""MiniLM's training step, forward pass and embedding on a quiet machine, beside a busy process, and
beside a niced one, by the environment variables that OpenMP's threads wait by."""

import contextlib
import subprocess
import sys
from statistics import median

from embedding import read_sentences
from side_by_side import Case, Contender, add_flags, gluon_step, measure, our_update, run

#: what keeps a processor busy -> the words before its program; None: nothing does
NEIGHBOURS = {'quiet': None, 'busy': (), 'niced': ('nice', '-n', '19')}
#: MXNet's own waiting, none, and one thread; '' is what importing model_zoo sets
SETTINGS = ['', 'GOMP_SPINCOUNT=300000', 'GOMP_SPINCOUNT=0', 'OMP_NUM_THREADS=1']
#: of all-MiniLM-L6-v2
SIZES = {
    'hidden_size': 384, 'num_hidden_layers': 6, 'num_attention_heads': 12,
    'intermediate_size': 1536,
}  # fmt: skip
#: what is timed -> rows, their length (of the embedding: of the file's), calls
WORK = {
    'step 16x64': (16, 64, 2), 'forward 1x32': (1, 32, 20), 'forward 8x128': (8, 128, 3),
    'embedding': (64, None, 2),
}  # fmt: skip


def ours(options):
    """Prepare each of `WORK`."""
    import mxnet as mx
    import numpy as np

    from bert import BertConfig, BertForSequenceClassification, BertModel

    def batch(rows, length):
        words = np.random.RandomState(0).randint(0, 30000, (rows, length))
        arrays = words, np.zeros_like(words), np.full(rows, length)
        return [mx.nd.array(array) for array in arrays]

    def block(cls):
        model = cls(BertConfig(**SIZES))
        model.initialize()
        model.hybridize(static_alloc=True, static_shape=True)
        return model

    def prepare(name):
        rows, length, calls = WORK[name]
        if name == 'embedding':
            once = _embedding(options, rows)
        elif name.startswith('step'):
            model = block(BertForSequenceClassification)
            inputs = [*batch(rows, length), mx.nd.array(np.arange(rows) % 2)]
            update = our_update(model, 'bertadam', {'learning_rate': 2e-5, 'wd': 0.01})
            once = gluon_step(lambda: model(*inputs), update)
        else:
            model, inputs = block(BertModel), batch(rows, length)

            def once():
                model(*inputs)[0].wait_to_read()

        def call():
            for _ in range(calls):
                once()

        return call

    return prepare


def _embedding(options, count):
    from bert_embedding import BertEmbedding

    sentences = read_sentences(options.file, count)
    embedding = BertEmbedding(model=options.model)
    return lambda: embedding.sentence_vectors(sentences, 'mean')


@contextlib.contextmanager
def neighbour(name):
    """Keep a processor busy meanwhile, as `NEIGHBOURS` has it."""
    if NEIGHBOURS[name] is None:
        yield
        return
    process = subprocess.Popen([*NEIGHBOURS[name], sys.executable, '-c', 'while True: pass'])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def variables(words):
    """``'A=1 B=2'`` as a dict."""
    return dict(word.split('=', 1) for word in words.split())


def main(argv=None):
    parser = add_flags(__doc__, rounds=9, seconds=20)
    parser.add_argument('--model', required=True, help="folder of all-MiniLM-L6-v2's files")
    parser.add_argument('--file', required=True, help='one sentence per line, in UTF-8')
    parser.add_argument(
        '--settings', nargs='+', default=SETTINGS,
        help="variables, such as 'OMP_NUM_THREADS=1 GOMP_SPINCOUNT=10'; '': those of model_zoo",
    )  # fmt: skip
    parser.add_argument('--work', nargs='+', default=list(WORK), choices=WORK)
    parser.add_argument('--neighbours', nargs='+', default=list(NEIGHBOURS), choices=NEIGHBOURS)
    args = parser.parse_args(argv)
    contenders = [
        Contender(words or 'model_zoo', ours, environment=variables(words))
        for words in args.settings
    ]
    cases = [Case(name, name, 1) for name in args.work]
    rows = []
    for name in args.neighbours:
        with neighbour(name):
            measured = measure(contenders, [], cases, args, warm=False)
        for result in measured:
            ms = [1e3 * seconds / WORK[result.case.value][2] for seconds in result.seconds]
            rows.append((name, result.case.label, result.contender, min(ms), median(ms)))
            print('{:8}{:16}{:28}best {:7.1f} ms, median {:7.1f} ms'.format(*rows[-1]), flush=True)
    if args.json:
        from model_zoo.util.files import write_json

        names = ('neighbour', 'work', 'setting', 'best_ms', 'median_ms')
        write_json(args.json, [dict(zip(names, row)) for row in rows])


if __name__ == '__main__':
    run(main)
