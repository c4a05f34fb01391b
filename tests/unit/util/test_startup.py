"""What is told while a program is still importing: another NumPy, files in the way."""

import os
import subprocess
import sys

import pytest
from script_runs import ROOT

from model_zoo.errors import UnknownNameError, did_you_mean


def run(folder, *words):
    """A process in a folder, whose files come first."""
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(folder), str(ROOT)])}
    return subprocess.run(
        [sys.executable, *map(str, words)], cwd=folder, env=environment, capture_output=True,
        text=True, timeout=120,
    )  # fmt: skip


@pytest.fixture
def new_numpy(tmp_path):
    (tmp_path / 'numpy').mkdir()
    (tmp_path / 'numpy' / '__init__.py').write_text("__version__ = '1.26.4'\n")
    return tmp_path


def test_a_numpy_that_mxnet_cannot_use(new_numpy):
    command = run(new_numpy, ROOT / 'scripts' / 'doctor.py')
    assert command.returncode == 1
    assert command.stderr == (
        'error: NumPy 1.26.4 is too new for MXNet 1.9.1, which needs one below 1.24: pip install '
        "'numpy<1.24'\n"
    )
    library = run(new_numpy, '-c', 'import bert')
    last = library.stderr.strip().splitlines()[-1]
    assert library.returncode == 1 and last.startswith('ImportError: NumPy 1.26.4 is too new')


@pytest.mark.parametrize('name', ['bert', 'export'])
def test_a_users_own_file_in_the_way(tmp_path, name):
    path = tmp_path / f'{name}.py'
    path.write_text('')
    command = run(tmp_path, ROOT / 'scripts' / 'info.py', '--help')
    assert command.returncode == 1
    assert command.stderr == (
        f'error: {path} is in the way of the package {name} of gluon-transformer-zoo: rename it, '
        'or start from another folder\n'
    )
    load = {'bert': 'load_families', 'export': 'load_exporter'}[name]
    library = run(tmp_path, '-c', f'import model_zoo.families as f; f.{load}()')
    assert f'UserWarning: {path} is in the way' in library.stderr  # where it is imported
    last = library.stderr.strip().splitlines()[-1]
    assert library.returncode == 1 and last.startswith(f'ImportError: {path} is in the way')


def test_nothing_is_in_the_way(tmp_path):
    (tmp_path / 'beard.py').write_text('')
    done = run(tmp_path, '-c', 'import model_zoo.families as f; f.load_families()')
    assert done.returncode == 0 and 'in the way' not in done.stderr


@pytest.mark.parametrize(('name', 'found'), [
    ('bert-base-uncase', 'bert-base-uncased'), ('BERT_BASE_UNCASED', 'bert-base-uncased'),
    ('xyz', None),
])  # fmt: skip
def test_did_you_mean(name, found):
    known = ['bert-base-uncased', 'gpt2']
    hint = f'; did you mean {found}?' if found else ''
    assert did_you_mean(name, known) == hint
    assert str(UnknownNameError.of('model', name, known)).endswith(f'gpt2{hint}')
