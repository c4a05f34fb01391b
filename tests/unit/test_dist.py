"""`make dist`: the same commit gives the same bytes."""

import gzip
import io
import tarfile

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
