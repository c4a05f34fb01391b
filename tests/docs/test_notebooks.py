"""The stored notebooks; ``make docs`` runs them."""

import re

import pytest
from script_runs import ROOT, load_script

nbformat = pytest.importorskip('nbformat')

SCRIPT = ROOT / 'docs' / 'run_notebooks.py'
NOTEBOOKS = sorted((ROOT / 'docs' / 'notebooks').glob('*.ipynb'))
ABSOLUTE = re.compile(r'(?<![\w.~/])/(?:home|root|tmp|usr|var|opt|work|Users)/\w')

run_notebooks = load_script('run_notebooks', SCRIPT.parent)


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


def test_outputs_belong_to_the_code(stored):
    notebook, path = stored
    run_notebooks.check_stored(notebook, path)
    cells = [cell for _, cell in run_notebooks.code_cells(notebook)]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    # each cell after the imports shows something
    assert all(cell.outputs for cell in cells[2:])
    kinds = {run_notebooks.kind_of(output) for cell in cells for output in cell.outputs}
    assert not kinds & {'stream stderr', 'error'}


def test_names_no_folder_of_a_machine(stored):
    notebook, path = stored
    sources = [cell.source for cell in notebook.cells]
    assert not [text for text in [*texts(notebook), *sources] if ABSOLUTE.search(text)]
    assert set(notebook.metadata) == {'kernelspec', 'language_info', run_notebooks.CODE_KEY}
    assert not any(cell.metadata for cell in notebook.cells)
    assert path.stat().st_size <= 250_000  # in a repository
