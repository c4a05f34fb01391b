"""`make dist`: the same commit gives the same bytes."""

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import zipfile

import pytest
from script_runs import ROOT, load_script

SCRIPT = ROOT / '.ci' / 'dist.py'


def write_archive(path, names, time, mode, user):
    with tarfile.open(path, 'w:gz') as archive:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode, info.uname = len(name), time, mode, user
            archive.addfile(info, io.BytesIO(name.encode()))


def test_what_a_machine_leaves_in_an_archive_is_taken_out(tmp_path):
    dist = load_script('dist', SCRIPT.parent)
    write_archive(tmp_path / 'a.tar.gz', ['b', 'a'], 1e9, 0o664, 'one')
    write_archive(tmp_path / 'b.tar.gz', ['a', 'b'], 2e9, 0o600, 'two')
    first, second = (dist.packed_again(tmp_path / f'{n}.tar.gz', 1.5e9) for n in 'ab')
    assert first == second
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(first))) as archive:
        assert archive.getnames() == ['a', 'b']
        info = archive.getmember('a')
        assert (info.mtime, info.mode, info.uname) == (1.5e9, 0o644, '')
        assert archive.extractfile('a').read() == b'a'


@pytest.mark.slow
def test_two_builds(tmp_path):
    for module in ('setuptools', 'wheel'):
        pytest.importorskip(module)
    git = subprocess.run(['git', 'rev-parse', 'HEAD'], cwd=ROOT, capture_output=True)
    if git.returncode:
        pytest.skip('this is no checkout with git')
    sums = []
    for name, umask in (('one', '022'), ('two', '077')):
        words = f'umask {umask}; exec "$0" "$@"'
        subprocess.run(
            ['sh', '-c', words, sys.executable, SCRIPT, tmp_path / name],
            cwd=tmp_path,
            check=True,
            env={**os.environ, 'SOURCE_DATE_EPOCH': '1500000000'},
        )
        files = sorted(path for path in (tmp_path / name).iterdir() if path.name != 'SHA256SUMS')
        sums.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files})
        assert len(files) == 2
        listed = (tmp_path / name / 'SHA256SUMS').read_text().split()
        assert dict(zip(listed[1::2], listed[::2])) == sums[-1]
    assert sums[0] == sums[1]
    (wheel,) = (tmp_path / 'one').glob('*.whl')
    with zipfile.ZipFile(wheel) as archive:
        assert 'model_zoo/__init__.py' in archive.namelist()
        assert {each.date_time[:3] for each in archive.infolist()} == {(2017, 7, 14)}
        assert not any(name.startswith('tests/') for name in archive.namelist())
