"""The command ``zoo`` as pip installs it from a wheel, outside of the checkout."""

import os
import subprocess
import sys
import sysconfig

import pytest
from script_runs import ROOT

pytestmark = pytest.mark.slow

#: prints the commands whose --help fails, and modules of ours that aren't the wheel's
PROBE = """
import contextlib, io, pathlib, sys
from zoo_scripts import zoo
from model_zoo.app import cli
failed = []
for name in zoo.list_commands():
    text = io.StringIO()
    try:
        with contextlib.redirect_stdout(text):
            cli.run(zoo.main, [*name.split('/'), '--help'])
        failed.append(name)
    except SystemExit as stop:
        if stop.code or 'usage: zoo ' + name.replace('/', ' ') not in text.getvalue():
            failed.append(name)
ours = ('bert', 'bert_embedding', 'export', 'gpt', 'gpt2', 'model_zoo', 'transfo_xl', 'zoo_scripts')
for name in ours:
    __import__(name)
files = [sys.modules[name].__file__ for name in ours]
scripts = pathlib.Path(sys.modules['zoo_scripts'].__file__).parent
assert (scripts / 'originals/pytorchic_bert/config/pretrain.json').is_file()
assert len(zoo.list_commands()) > 30
assert not failed, failed
assert all(file.startswith(sys.prefix) for file in files), files
"""


def run(*words, cwd, **options):
    # pip's settings may hold paths relative to the folder that make ran in
    environment = {k: v for k, v in os.environ.items() if not k.startswith(('PYTHON', 'PIP_'))}
    options.update(env=environment, capture_output=True, text=True, timeout=900)
    done = subprocess.run(list(map(str, words)), cwd=cwd, **options)
    assert done.returncode == 0, f'{done.stdout}\n{done.stderr}'
    return done.stdout


@pytest.fixture(scope='module')
def installed(tmp_path_factory):
    """The folder of the commands in a new environment, which sees the libraries of this one."""
    folder = tmp_path_factory.mktemp('installed')
    build = folder / 'build'
    build.mkdir()
    words = f'setup.py -q egg_info --egg-base {build} build --build-base {build}'.split()
    words += ['bdist_wheel', '--bdist-dir', build / 'wheel', '--dist-dir', folder]
    run(sys.executable, *words, cwd=ROOT)
    (wheel,) = folder.glob('*.whl')
    run(sys.executable, '-m', 'venv', '--without-pip', folder / 'env', cwd=folder)
    python = folder / 'env' / 'bin' / 'python'
    code = 'import sysconfig; print(sysconfig.get_path("purelib"))'
    packages = run(python, '-c', code, cwd=folder).strip()
    # as a mere folder of the path: what is installed there in editable form isn't seen
    with open(os.path.join(packages, 'libraries.pth'), 'w') as file:
        file.write(sysconfig.get_path('purelib') + '\n')
    pip = [sys.executable, '-m', 'pip', '--python', python, 'install', '-q', '--no-deps']
    run(*pip, '--no-index', '--disable-pip-version-check', wheel, cwd=folder)
    return python.parent


def test_help_of_all_commands(installed, tmp_path):
    run(installed / 'python', '-c', PROBE, cwd=tmp_path)


def test_commands_work(installed, fixtures, tmp_path):
    assert run(installed / 'zoo', '--version', cwd=tmp_path).startswith('gluon-transformer-zoo 1.')
    source = fixtures / 'checkpoints' / 'gpt2_tensorflow' / 'model.ckpt'
    words = ['convert_gpt2_checkpoint', source, 'model.safetensors']
    run(installed / 'zoo', *words, cwd=tmp_path)
    assert (tmp_path / 'model.safetensors').is_file() and (tmp_path / 'config.json').is_file()
