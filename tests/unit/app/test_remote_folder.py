"""The folder of this machine in which a run works for a URL."""

import argparse
import contextlib
import os

import pytest
from refusals import refuses

from model_zoo.app import cli, run_folder
from model_zoo.app.run_folder import RemoteFolder, RunFolder
from model_zoo.errors import InputError
from model_zoo.util import remote

pytest.importorskip('fsspec')
URL = 'memory://remote-folder/out'


@pytest.fixture
def parent(tmp_path, monkeypatch):
    """The folder of such folders."""
    monkeypatch.setenv('MXNET_HOME', str(tmp_path / 'home'))
    yield tmp_path / 'home' / 'runs'
    for name in remote.sizes_in(os.path.dirname(URL)):
        remote.remove_file(remote.join(os.path.dirname(URL), name))


def test_a_command_fails_if_its_last_upload_does(parent, monkeypatch, capsys):
    def main(argv):
        args = argparse.Namespace(output_dir=URL, seed=0)
        with contextlib.closing(RunFolder(args, 'log.txt')):
            monkeypatch.setattr(run_folder, 'upload', refuse)

    def refuse(path, url):
        raise InputError('no')

    assert cli.run(main) == 1
    assert 'error: the results stay in' in capsys.readouterr().err
    assert len(list(parent.glob('*/out/log.txt'))) == 1


def test_checksums_are_not_sent_where_a_file_was_refused(parent, monkeypatch):
    folder = RemoteFolder(URL)
    upload = run_folder.upload

    def refuse(path, url):
        if url.endswith('model.params'):
            raise InputError('no')
        upload(path, url)

    monkeypatch.setattr(run_folder, 'upload', refuse)
    for name in ('SHA256SUMS', 'config.json', 'model.params'):
        with open(os.path.join(folder.path, name), 'w') as file:
            file.write('new')
    with refuses(says=folder.path):
        folder.close()
    assert 'SHA256SUMS' not in remote.names_in(URL)
    assert os.path.exists(os.path.join(folder.path, 'model.params'))
