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

from tqdm import tqdm

from model_zoo.app import cli
from model_zoo.errors import InputError, UnknownNameError, ZooError
from model_zoo.util.files import atomic_write

FOLDER = pathlib.Path(__file__).resolve().parent / 'notebooks'
ROOT = FOLDER.parents[1]
MOST_BYTES = 250_000  # a notebook with its pictures may have
CODE_KEY = 'outputs_of'  # in the metadata: digest of the code that gave the stored outputs
_ANSI = re.compile(r'\x1b\[[0-9;]*m')


class NotebookError(ZooError):
    """A notebook doesn't run, or its stored outputs don't belong to its code."""


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_argument('notebooks', nargs='*', help='names or files; default: all')
    parser.add_argument('--write', action='store_true', help='store the outputs')
    parser.add_argument('--timeout', type=int, default=600, help='most seconds of a cell')
    args = parser.parse_args(argv)
    if args.timeout < 1:
        raise InputError(f'--timeout {args.timeout}: give 1 or more seconds')
    return args


def find_notebooks(names, folder=FOLDER):
    """Paths of the named notebooks, by default of all in the folder."""
    known = {path.stem: path for path in sorted(folder.glob('*.ipynb'))}
    if not (names or known):
        raise InputError(f'there are no notebooks in {str(folder)!r}')
    found = []
    for name in names or known:
        stem = name[: -len('.ipynb')] if name.endswith('.ipynb') else name
        if stem in known:
            found.append(known[stem])
        elif stem != name and os.path.isfile(name):
            found.append(pathlib.Path(name))
        else:
            raise UnknownNameError.of('notebook', name, known)
    return found


def read_notebook(path):
    """Read a notebook and check its format."""
    import nbformat

    try:
        text = path.read_text(encoding='utf-8')
        content = json.loads(text)
        version = [content[name] for name in ('nbformat', 'nbformat_minor')]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise NotebookError(f'{path.name} is not a notebook: {error!r}') from error
    if version < [4, 5]:
        raise NotebookError(f'{path.name} is older than format 4.5: save it with a newer Jupyter')
    try:
        nbformat.validate(content)
    except nbformat.ValidationError as error:
        raise NotebookError(f'{path.name} is not a notebook: {error.message}') from error
    return nbformat.reads(text, as_version=4)


def code_cells(notebook):
    """The cells with code, each with its number among all cells, counted from 1."""
    return [(n, cell) for n, cell in enumerate(notebook.cells, 1) if cell.cell_type == 'code']


def code_digest(notebook):
    """A digest of the code; it also changes when a cell is added or removed."""
    sources = [cell.source for _, cell in code_cells(notebook)]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()


# -- running ------------------------------------------------------------------------------------


def run_notebook(notebook, path, timeout=600):
    """Run all cells and keep their outputs in `notebook`.

    Raises
    ------
    NotebookError
        If a cell fails, takes too long or writes to standard error; it names the cell.
    """
    for _, cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    with tempfile.TemporaryDirectory(prefix='notebook-') as scratch:
        _run_cells(notebook, path, timeout, scratch)
        tidy(notebook, scratch)


def _run_cells(notebook, path, timeout, scratch):
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    # the kernel of this Python, not one of the user's with the same name
    os.environ['JUPYTER_PREFER_ENV_PATH'] = '1'
    kernel = AsyncKernelManager(
        kernel_name='python3',
        connection_file=os.path.join(scratch, 'kernel.json'),
        transport='ipc',  # sockets in the scratch folder, which nobody else can talk to
        ip=os.path.join(scratch, 'kernel'),
    )
    client = NotebookClient(
        notebook,
        km=kernel,
        timeout=timeout,
        coalesce_streams=True,
        record_timing=False,
        shutdown_kernel='immediate',
    )
    client.owns_km = True  # so that the kernel ends with this block, however that is left
    cells = tqdm(code_cells(notebook), path.name, unit='cell', disable=None, leave=False)
    try:
        with client.setup_kernel(cwd=str(path.resolve().parent), env=_environment(scratch)):
            for number, cell in cells:
                _run_cell(client, cell, number, f'{path.name}, cell {number}')
    except RuntimeError as error:  # nbclient's and jupyter_client's, outside of cells
        raise NotebookError(f'{path.name}: no kernel to run it: {error}') from error


def _environment(scratch):
    """The kernel's environment: this project, none of the user's settings, no network."""
    own = {
        'HF_HUB_OFFLINE': '1',
        'IPYTHONDIR': os.path.join(scratch, 'ipython'),
        'MPLBACKEND': 'module://matplotlib_inline.backend_inline',
        'PYTHONPATH': os.pathsep.join(filter(None, [str(ROOT), os.environ.get('PYTHONPATH')])),
        'TMPDIR': scratch,
        'TQDM_DISABLE': '1',  # bars tell times, and a notebook's output must be the same each time
    }
    return {**os.environ, **own}


def _run_cell(client, cell, number, where):
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    first = next(iter(cell.source.split('\n')), '')
    where = f'{where} ({first})'
    try:
        client.execute_cell(cell, number - 1)
    except CellExecutionError as error:
        raise NotebookError(f'{where}: {error.ename}: {_ANSI.sub("", error.evalue)}') from None
    except CellTimeoutError:
        raise NotebookError(f'{where} took longer than {client.timeout} s') from None
    except DeadKernelError:
        raise NotebookError(f'{where}: the kernel died') from None
    for output in cell.outputs:
        if output.output_type == 'stream' and output.name == 'stderr':
            text = output.text.strip().split('\n')[0]
            raise NotebookError(f'{where} writes to standard error: {text}')


def tidy(notebook, scratch):
    """Remove what depends on this machine and this run from a notebook."""
    notebook.metadata = {
        'kernelspec': {'display_name': 'Python 3', 'language': 'python', 'name': 'python3'},
        'language_info': {'name': 'python'},
        CODE_KEY: code_digest(notebook),
    }
    places = {scratch: 'TMPDIR', str(ROOT): 'PROJECT', str(pathlib.Path.home()): 'HOME'}
    for _, cell in code_cells(notebook):
        cell.metadata = {}
        for output in cell.outputs:
            if 'metadata' in output:
                output.metadata = {}
            if output.output_type == 'stream':
                output.text = _without(places, output.text)
            for kind, content in output.get('data', {}).items():
                if kind.startswith('text/'):
                    output.data[kind] = _without(places, content)


def _without(places, text):
    for place, name in places.items():
        text = text.replace(place, name) if len(place) > 1 else text  # a home can be /
    return text


# -- what is stored -----------------------------------------------------------------------------


def kinds(cell):
    """The kinds of a cell's outputs, such as ``stream stdout`` and ``image/png text/plain``."""
    return [
        f'stream {output.name}'
        if output.output_type == 'stream'
        else ' '.join(sorted(output.get('data', [output.output_type])))
        for output in cell.outputs
    ]


def check_stored(stored, path):
    """Raise NotebookError if there are no stored outputs, or if the code has changed since."""
    advice = f'run: python docs/run_notebooks.py --write {path.stem}'
    if not any(cell.outputs for _, cell in code_cells(stored)):
        raise NotebookError(f'{path.name} has no outputs; {advice}')
    if stored.metadata.get(CODE_KEY) != code_digest(stored):
        raise NotebookError(f'{path.name}: its code has changed since it was run; {advice}')


def compare_outputs(stored, fresh, path):
    """Raise NotebookError if the kinds of a cell's stored outputs and new outputs differ."""
    for (number, old), (_, new) in zip(code_cells(stored), code_cells(fresh)):
        if kinds(old) != kinds(new):
            raise NotebookError(
                f'{path.name}, cell {number}: the stored outputs are {kinds(old)}, and now they '
                f'are {kinds(new)}; run: python docs/run_notebooks.py --write {path.stem}'
            )


def write_notebook(notebook, path):
    """Write a notebook, if it isn't too large for a repository."""
    import nbformat

    content = nbformat.writes(notebook) + '\n'
    size = len(content.encode())
    if size > MOST_BYTES:
        raise NotebookError(
            f'{path.name} would have {size} bytes; {MOST_BYTES} are the most: make its pictures '
            'smaller'
        )
    with atomic_write(path) as file:
        file.write(content)


def process(path, write=False, timeout=600):
    """Run one notebook, and check its stored outputs or replace them."""
    stored = read_notebook(path)
    if not write:
        check_stored(stored, path)
    fresh = read_notebook(path)
    run_notebook(fresh, path, timeout)
    if write:
        write_notebook(fresh, path)
    else:
        compare_outputs(stored, fresh, path)


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
        print(
            f'{path.name}: {"stored" if args.write else "as stored"}, '
            f'{time.perf_counter() - started:.0f} s',
            flush=True,
        )


if __name__ == '__main__':
    sys.exit(cli.run(main))
