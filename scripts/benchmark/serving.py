"""Serve a classifier to 1, 8 and 64 clients: our pipeline and that of transformers, in our server.

Each contender is a server process of its own, with the same weights and the same threads; the
clients are threads of this process, which send one text after the other. 'one by one' has a batch
for each text; the others have what waits as a batch. All answers are compared with ours.
"""

import http.client
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

from inference import read_sentences
from side_by_side import run

NAME = 'model'
CONTENDERS = {
    'ours': 'model_zoo',
    'ours, one by one': 'model_zoo',
    'transformers': 'transformers',
    'transformers, one by one': 'transformers',
}
WARM_SECONDS = 3
PATIENCE = 1800  # seconds: a machine that is busy otherwise is slow, which is no failure


class TransformersPipeline:
    """A pipeline of transformers with the three steps that our server asks for."""

    task = 'transformers'

    def __init__(self, folder, batch_tokens):
        import torch
        import transformers

        torch.set_num_threads(int(os.environ['OMP_NUM_THREADS']))
        self._pipeline = transformers.pipeline('text-classification', folder)
        self.batch_tokens, self.engine, self.max_length = batch_tokens, self, 512
        self.block = self.tokenizer = self.files = None
        self.name = self.task

    def prepare(self, items, options=None, meter=None):
        from model_zoo.inference.pipeline import Row, Work

        # only its length is looked at: the pipeline cuts the text again
        ids = self._pipeline.tokenizer(items, truncation=True, max_length=512)['input_ids']
        rows = [[Row(row, None, text)] for row, text in zip(ids, items)]
        return Work(items, rows, options)

    def run_batch(self, rows):
        return self._pipeline(
            [row.about for row in rows], batch_size=len(rows), top_k=None, truncation=True,
            max_length=512,
        )  # fmt: skip

    def finish(self, work, outputs):
        return iter(outputs)


def serve(options):
    """Be the server of one contender."""
    import model_zoo
    from model_zoo.inference.server import Settings, bind, build_app
    from model_zoo.inference.server import serve as serve_app

    tokens = 1 if 'one by one' in options.contender else options.batch_tokens
    if CONTENDERS[options.contender] == 'transformers':
        pipeline = TransformersPipeline(options.model, tokens)
    else:
        pipeline = model_zoo.pipeline(options.model, batch_tokens=tokens, engine=options.engine,
                                      precision=options.precision)  # fmt: skip
    app = build_app({NAME: pipeline}, Settings(timeout=PATIENCE))
    bound = bind('127.0.0.1', 0)
    print(bound.getsockname()[1], flush=True)
    serve_app(app, bound)


def write_model(name, folder):
    """A classifier with an untrained head, as transformers reads it."""
    import model_zoo  # noqa: F401  isort: skip  before MXNet
    import mxnet as mx

    from model_zoo import open_model

    mx.random.seed(0)
    block, tokenizer, _ = open_model(name, 'classification', num_labels=2)
    block.save_pretrained(folder, tokenizer, format='huggingface')


class Server:
    """The process of a contender."""

    def __init__(self, contender, options):
        command = [sys.executable, os.path.abspath(__file__), '--contender', contender]
        command += ['--model', options.model, '--file', options.file, '--engine', options.engine]
        command += ['--batch_tokens', str(options.batch_tokens), '--precision', options.precision]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f'{contender}: the server has not started')
        self.port = int(line)
        self._wait()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def _wait(self):
        for _ in range(300):
            try:
                connection = http.client.HTTPConnection('127.0.0.1', self.port)
                connection.request('GET', '/health')
                return connection.getresponse().read()
            except OSError:
                time.sleep(0.1)
        raise SystemExit('the server does not answer')

    @property
    def megabytes(self):
        """Memory that the process has."""
        with open(f'/proc/{self.process.pid}/statm', encoding='ascii') as file:
            return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 2**20

    def load(self, texts, clients, seconds):
        """Send texts from several clients: the requests' seconds, the whole time, and failures."""
        numbers, taken, failures = itertools.count(), [], []
        end = time.perf_counter() + seconds

        def work():
            connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=PATIENCE)
            try:
                while time.perf_counter() < end:
                    body = json.dumps({'inputs': texts[next(numbers) % len(texts)]})
                    begin = time.perf_counter()
                    connection.request('POST', f'/models/{NAME}', body)
                    answer = connection.getresponse()
                    content = answer.read()
                    if answer.status != 200:
                        raise OSError(content.decode())
                    taken.append(time.perf_counter() - begin)
            except (OSError, http.client.HTTPException) as error:
                failures.append(error)
            connection.close()

        begin = time.perf_counter()
        threads = [threading.Thread(target=work) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return taken, time.perf_counter() - begin, failures

    def answers(self, texts):
        """The scores of texts, as one request."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=PATIENCE)
        connection.request('POST', f'/models/{NAME}', json.dumps({'inputs': texts}))
        results = json.loads(connection.getresponse().read())
        return [{entry['label']: entry['score'] for entry in result} for result in results]


def measure(options, texts):
    """Print and return the figures of all contenders."""
    import importlib.util

    import numpy as np

    figures, wanted = [], None
    for contender in options.contenders:
        library = CONTENDERS[contender]
        if importlib.util.find_spec(library) is None:
            print(f'{contender}: {library} is not installed')
            continue
        with Server(contender, options) as server:
            scores = server.answers(texts[:20])
            wanted = wanted or scores
            difference = max(
                abs(got[label] - want[label])
                for got, want in zip(scores, wanted) for label in want
            )  # fmt: skip
            print(f'{contender}: scores differ from ours by {difference:.1e} at most', flush=True)
            server.load(texts, 8, WARM_SECONDS)
            for clients in options.clients:
                taken, seconds, failures = server.load(texts, clients, options.seconds)
                if failures:
                    raise SystemExit(f'a request has failed: {failures[0]}')
                half, most = np.percentile(taken, [50, 99]) * 1e3
                figures.append({
                    'contender': contender, 'clients': clients, 'requests': len(taken),
                    'per_second': len(taken) / seconds, 'p50_ms': half, 'p99_ms': most,
                    'megabytes': server.megabytes,
                })  # fmt: skip
                print(
                    f'{contender:26} {clients:3} clients {len(taken) / seconds:8.1f} requests/s  '
                    f'p50 {half:8.1f} ms  p99 {most:8.1f} ms  {server.megabytes:6.0f} MB',
                    flush=True,
                )
    return figures


def soak(options, texts):
    """Keep the server busy, and read its memory."""
    figures, clients, answered, failed = [], max(options.clients), 0, 0
    with Server('ours', options) as server:
        begin, taken, seconds = time.perf_counter(), [], 1
        while True:
            figures.append({
                'minutes': (time.perf_counter() - begin) / 60, 'megabytes': server.megabytes,
                'per_second': len(taken) / seconds, 'answered': answered, 'failed': failed,
            })  # fmt: skip
            print(
                '{minutes:6.1f} min  {per_second:8.1f} requests/s  {megabytes:7.1f} MB  '
                '{answered} answered, {failed} failed'.format(**figures[-1]),
                flush=True,
            )
            if figures[-1]['minutes'] >= options.soak:
                return figures
            taken, seconds, failures = server.load(texts, clients, min(30, options.soak * 60))
            answered, failed = answered + len(taken), failed + len(failures)
            if failures:
                print(f'failed: {failures[0]}', flush=True)


def main(argv=None):
    from model_zoo.app import cli

    parser = cli.parser(__doc__.splitlines()[0])
    parser.add_argument('--file', required=True, help='one text per line, in UTF-8')
    parser.add_argument('--count', type=int, default=2000, help='how many of the texts')
    parser.add_argument('--model', default='all-MiniLM-L6-v2',
                        help="a name, or the folder of a classifier in transformers' format")
    parser.add_argument('--clients', type=int, nargs='+', default=[1, 8, 64])
    parser.add_argument('--seconds', type=float, default=8, help='for each number of clients')
    parser.add_argument('--batch_tokens', type=int, default=2048)
    parser.add_argument('--engine', default='mxnet', help='of our pipeline')
    parser.add_argument('--precision', default='float32', help='of our pipeline')
    parser.add_argument('--contenders', nargs='+', choices=CONTENDERS, default=list(CONTENDERS))
    parser.add_argument('--soak', type=float, metavar='MINUTES',
                        help='ours alone, with the most clients, and its memory')  # fmt: skip
    parser.add_argument('--json', help='file for the figures')
    parser.add_argument('--contender', choices=CONTENDERS, help='be the server of this one')
    options = parser.parse_args(argv)
    if options.contender:
        return serve(options)
    texts = read_sentences(options.file, options.count)
    with tempfile.TemporaryDirectory() as folder:
        if not os.path.isdir(options.model):
            write_model(options.model, folder)
            options.model = folder
        figures = (soak if options.soak else measure)(options, texts)
    if options.json:
        from model_zoo.util.files import write_json

        write_json(options.json, figures)
    return None


if __name__ == '__main__':
    run(main)
