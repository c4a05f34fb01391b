"""Run the notebooks of the documentation, and check or replace their stored outputs.

    python docs/run_notebooks.py
    python docs/run_notebooks.py embeddings classifier --write

Each notebook runs from top to bottom in a new kernel, offline, in its own folder; its temporary
files are removed afterwards. The run fails if a cell raises an error or writes to standard error.
Without ``--write`` it also fails if the kinds of the outputs (text, picture, ...) differ from the
stored ones, or if the code has changed since these were stored. The content of the outputs isn't
compared: trained models differ a little from machine to machine.
"""

import hashlib
import json
import os
import pathlib
import re
import sys
import tempfile
import time

from model_zoo.app import cli
from model_zoo.errors import InputError, UnknownNameError, ZooError
from model_zoo.util.files import atomic_write

FOLDER = pathlib.Path(__file__).resolve().parent / 'notebooks'
ROOT = FOLDER.parents[1]
CODE_KEY = 'outputs_of'  # in the metadata: digest of the code that gave the stored outputs
_ANSI = re.compile(r'\x1b\[[0-9;]*m')


class NotebookError(ZooError):
    """A notebook doesn't run, or its stored outputs don't belong to its code."""


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_argument('notebooks', nargs='*', help='names or files; default: all')
    parser.add_argument('--write', action='store_true', help='store the outputs')
    parser.add_argument('--timeout', type=int, default=600, help='seconds that a cell may take')
    return parser.parse_args(argv)


def find_notebooks(names):
    """Return the paths of notebooks, by default of all in the documentation."""
    known = {path.stem: path for path in sorted(FOLDER.glob('*.ipynb'))}
    for name in names:
        if name not in known and not os.path.isfile(name):
            raise UnknownNameError.of('notebook', name, known)
    return [known.get(name) or pathlib.Path(name) for name in names or known]


def read_notebook(path):
    """Read a notebook and check its format."""
    import nbformat

    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
    except (ValueError, nbformat.ValidationError) as error:
        raise NotebookError(f'{path.name} is not a notebook: {error}') from error
    return notebook


def code_cells(notebook):
    """Return the cells with code, each with its number among all cells, from 1."""
    return [(n, cell) for n, cell in enumerate(notebook.cells, 1) if cell.cell_type == 'code']


def code_digest(notebook):
    """Return a digest of the code, which changes with each cell."""
    sources = [cell.source for _, cell in code_cells(notebook)]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()


def run_notebook(notebook, path, timeout=600):
    """Run all cells and keep their outputs in `notebook`.

    Raises
    ------
    NotebookError
        If a cell fails, takes too long or writes to standard error.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellControlSignal
    from traitlets.config import Config

    # the kernel of this Python, not a user's kernel with the same name
    os.environ['JUPYTER_PREFER_ENV_PATH'] = '1'
    with tempfile.TemporaryDirectory(prefix='notebook-') as scratch:
        # sockets in the scratch folder, which nobody else can talk to
        private = {'transport': 'ipc', 'ip': os.path.join(scratch, 'kernel')}
        client = NotebookClient(
            notebook,
            config=Config(KernelManager=private),
            timeout=timeout,
            kernel_name='python3',
            coalesce_streams=True,
            record_timing=False,
            shutdown_kernel='immediate',
        )
        try:
            client.execute(cwd=str(path.resolve().parent), env=_environment(scratch))
        except (CellControlSignal, RuntimeError) as error:  # of a cell, or of the kernel
            raise NotebookError(f'{path.name}: {_ANSI.sub("", str(error))}') from None
        tidy(notebook, scratch)
    for number, cell in code_cells(notebook):
        for output in cell.outputs:
            if kind_of(output) == 'stream stderr':
                raise NotebookError(
                    f'{path.name}, cell {number} writes to standard error: {output.text.strip()}'
                )


def _environment(scratch):
    """Return the kernel's environment: this project, no user's settings, no network."""
    return {
        **os.environ,
        'HF_HUB_OFFLINE': '1',
        'IPYTHONDIR': os.path.join(scratch, 'ipython'),
        'MPLBACKEND': 'module://matplotlib_inline.backend_inline',
        'PYTHONPATH': os.pathsep.join(filter(None, [str(ROOT), os.environ.get('PYTHONPATH')])),
        'TMPDIR': scratch,
        'TQDM_DISABLE': '1',  # bars show times, and a notebook's output must be the same each time
    }


def tidy(notebook, scratch):
    """Remove what depends on this machine and this run from a notebook."""
    notebook.metadata = {
        'kernelspec': {'display_name': 'Python 3', 'language': 'python', 'name': 'python3'},
        'language_info': {'name': 'python'},
        CODE_KEY: code_digest(notebook),
    }
    places = {scratch: 'TMPDIR', str(ROOT): 'PROJECT', str(pathlib.Path.home()): 'HOME'}
    places.pop('/', None)  # a home

    def clean(text):
        for place, name in places.items():
            text = text.replace(place, name)
        return text

    for _, cell in code_cells(notebook):
        cell.metadata = {}
        for output in cell.outputs:
            if 'metadata' in output:
                output.metadata = {}
            if output.output_type == 'stream':
                output.text = clean(output.text)
            for kind, content in output.get('data', {}).items():
                if kind.startswith('text/'):
                    output.data[kind] = clean(content)


def kind_of(output):
    """Return the kind of an output, such as ``stream stdout`` or ``image/png text/plain``."""
    if output.output_type == 'stream':
        return f'stream {output.name}'
    return ' '.join(sorted(output.get('data', [output.output_type])))


def check_stored(stored, path):
    """Raise NotebookError if there are no stored outputs, or if the code has changed since."""
    if not any(cell.outputs for _, cell in code_cells(stored)):
        problem = 'has no outputs'
    elif stored.metadata.get(CODE_KEY) != code_digest(stored):
        problem = 'was changed after its last run'
    else:
        return
    raise NotebookError(f'{path.name} {problem}; {_advice(path)}')


def compare_outputs(stored, fresh, path):
    """Raise NotebookError if the kinds of a cell's stored outputs and new outputs differ."""
    for (number, old), (_, new) in zip(code_cells(stored), code_cells(fresh)):
        before, now = ([kind_of(output) for output in cell.outputs] for cell in (old, new))
        if before != now:
            raise NotebookError(
                f'{path.name}, cell {number}: the stored outputs are {before}, the new ones {now}; '
                f'{_advice(path)}'
            )


def _advice(path):
    return f'run: python docs/run_notebooks.py --write {path.stem}'


def process(path, write, timeout):
    """Run one notebook, and check its stored outputs or replace them."""
    import nbformat

    stored, fresh = read_notebook(path), read_notebook(path)
    if not write:
        check_stored(stored, path)
    run_notebook(fresh, path, timeout)
    if not write:
        compare_outputs(stored, fresh, path)
        return
    with atomic_write(path) as file:
        file.write(nbformat.writes(fresh) + '\n')


def main(argv=None):
    args = parse_arguments(argv)
    try:
        import ipykernel  # noqa: F401
        import nbclient  # noqa: F401
    except ImportError as error:
        raise InputError(
            f'{error.name} is not installed: pip install -r requirements/docs.txt'
        ) from error
    for path in find_notebooks(args.notebooks):
        started = time.perf_counter()
        process(path, args.write, args.timeout)
        seconds, state = time.perf_counter() - started, 'stored' if args.write else 'as stored'
        print(f'{path.name}: {state}, {seconds:.0f} s', flush=True)


if __name__ == '__main__':
    sys.exit(cli.run(main))
