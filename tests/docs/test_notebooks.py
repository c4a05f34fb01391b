"""The notebooks as they are stored, and docs/run_notebooks.py on made-up ones.

That the stored notebooks still run is found by `make docs`.
"""

import contextlib
import re

import pytest
from script_runs import ROOT, load_script, refusal

nbformat = pytest.importorskip('nbformat')

SCRIPT = ROOT / 'docs' / 'run_notebooks.py'
NOTEBOOKS = sorted((ROOT / 'docs' / 'notebooks').glob('*.ipynb'))
ABSOLUTE = re.compile(r'(?<![\w.~/])/(?:home|root|tmp|usr|var|opt|work|Users)/\w')

run_notebooks = load_script('run_notebooks', SCRIPT.parent)


# -- the stored ones ----------------------------------------------------------------------------


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def stored(request):
    """A notebook of the documentation, and its path; reading it checks its format."""
    return run_notebooks.read_notebook(request.param), request.param


def texts(notebook):
    """All texts of a notebook's outputs."""
    for _, cell in run_notebooks.code_cells(notebook):
        for output in cell.outputs:
            yield output.get('text', '')
            for kind, content in output.get('data', {}).items():
                if kind.startswith('text/'):
                    yield content


def test_outputs_are_those_of_the_code(stored):
    notebook, path = stored
    run_notebooks.check_stored(notebook, path)
    cells = [cell for _, cell in run_notebooks.code_cells(notebook)]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    # but for the imports, and what comes before them, each cell shows something
    assert all(cell.outputs for cell in cells[2:])
    kinds = [kind for cell in cells for kind in run_notebooks.kinds(cell)]
    within = any('src="data:image/png' in text for text in texts(notebook))  # of HTML
    assert within or any('image/png' in kind for kind in kinds)
    assert 'stream stderr' not in kinds
    assert 'error' not in kinds


def test_is_of_no_machine(stored):
    notebook, path = stored
    sources = [cell.source for cell in notebook.cells]
    assert not [text for text in [*texts(notebook), *sources] if ABSOLUTE.search(text)]
    assert set(notebook.metadata) == {'kernelspec', 'language_info', run_notebooks.CODE_KEY}
    assert not any(cell.metadata for cell in notebook.cells)
    assert path.stat().st_size <= run_notebooks.MOST_BYTES


# -- the runner ---------------------------------------------------------------------------------


@pytest.fixture
def make(tmp_path):
    """Makes a notebook of cells of code; returns its path."""
    pytest.importorskip('nbclient')
    pytest.importorskip('ipykernel')

    def make(*sources):
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [nbformat.v4.new_markdown_cell('# Title')]
        notebook.cells += map(nbformat.v4.new_code_cell, sources)
        path = tmp_path / 'made_up.ipynb'
        nbformat.write(notebook, path)
        return path

    return make


def run(path, *flags):
    return run_notebooks.main([str(path), *flags])


@contextlib.contextmanager
def changed(path):
    """The cells of the notebook at `path`, to be edited as a user of Jupyter might."""
    notebook = nbformat.read(path, as_version=4)
    yield notebook.cells
    nbformat.write(notebook, path)


def test_stores_outputs_and_finds_them_again(make, capsys):
    path = make(
        'import os, tempfile\nnumber = 6 * 7\nfile = os.path.join(tempfile.mkdtemp(), "file")',
        'print(number, os.path.basename(os.getcwd()))\nopen(file, "w").name',
    )
    run(path, '--write')
    notebook = run_notebooks.read_notebook(path)
    first, second = (cell for _, cell in run_notebooks.code_cells(notebook))
    assert first.outputs == []
    assert run_notebooks.kinds(second) == ['stream stdout', 'text/plain']
    # it ran in its own folder, and its temporary files were elsewhere
    assert second.outputs[0].text == f'42 {path.parent.name}\n'
    place = second.outputs[1].data['text/plain'].strip("'")
    assert place.startswith('TMPDIR/')
    assert list(path.parent.iterdir()) == [path]
    content = path.read_bytes()
    run(path)
    assert path.read_bytes() == content
    assert re.fullmatch(
        r'made_up.ipynb: stored, \d+ s\nmade_up.ipynb: as stored, \d+ s\n', capsys.readouterr().out
    )


def test_a_cell_that_fails(make, capsys):
    path = make('a = 1', 'b = a\n1 / 0')
    content = path.read_bytes()
    message = 'error: made_up.ipynb, cell 3 (b = a): ZeroDivisionError: division by zero'
    assert refusal(capsys, run_notebooks, path, '--write') == message
    assert path.read_bytes() == content


def test_code_has_changed(make):
    path = make('print(1)')
    run(path, '--write')
    with changed(path) as cells:
        cells[1].source = 'print(2)'
    with pytest.raises(run_notebooks.NotebookError):
        run(path)
