"""Build the sdist and the wheel of the last commit, twice, and compare them byte by byte.

    python .ci/dist.py FOLDER

The builds differ in folder and time, so equal bytes show that neither gets in, and the umask is
fixed. What does get in are the commit, the versions of setuptools, wheel and zlib, and
``SOURCE_DATE_EPOCH``, by default the time of the commit.
"""

import gzip
import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = 'import sys; from setuptools import build_meta as b; b.{}(sys.argv[1])'


def git(*words):
    return subprocess.run(['git', *words], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def source(folder):
    """Write the files of the last commit to a folder."""
    with tarfile.open(fileobj=io.BytesIO(git('archive', '--format=tar', 'HEAD'))) as archive:
        members = archive.getmembers()
        for member in members:
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
        archive.extractall(folder, members)


def build(folder, epoch):
    """Build in a folder, and return the paths of sdist and wheel."""
    tree, out = folder / 'tree', folder / 'out'
    out.mkdir(parents=True)
    source(tree)
    environment = {**os.environ, 'SOURCE_DATE_EPOCH': str(epoch), 'PYTHONHASHSEED': '0'}
    environment.pop('PYTHONPATH', None)
    for kind in ('build_sdist', 'build_wheel'):
        command = [sys.executable, '-c', BUILD.format(kind), str(out)]
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
    (sdist,), (wheel,) = out.glob('*.tar.gz'), out.glob('*.whl')
    sdist.write_bytes(packed_again(sdist, epoch))
    return sdist, wheel


def packed_again(path, epoch):
    """An sdist with sorted files, without the times and users that setuptools leaves in it."""
    target = io.BytesIO()
    with (
        tarfile.open(path) as old,
        gzip.GzipFile('', 'wb', compresslevel=9, fileobj=target, mtime=epoch) as zipped,
        tarfile.open(fileobj=zipped, mode='w', format=tarfile.GNU_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            plain = tarfile.TarInfo(member.name)
            plain.type, plain.size, plain.mtime = member.type, member.size, epoch
            plain.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(plain, old.extractfile(member) if member.isfile() else None)
    return target.getvalue()


def main(folder):
    epoch = int(os.environ.get('SOURCE_DATE_EPOCH') or git('log', '-1', '--format=%ct', 'HEAD'))
    if git('status', '--porcelain', '--untracked-files=no'):
        print('-- note: changes that are not committed are left out', file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        os.umask(0o022)  # a wheel has the modes of its files
        names = ('first', 'second-of-another-length')
        built = [build(pathlib.Path(temporary) / name, epoch) for name in names]
        for first, second in zip(*built):
            if first.name != second.name or first.read_bytes() != second.read_bytes():
                sys.exit(f'{first.name} was built twice, and the bytes differ')
        folder.mkdir(parents=True, exist_ok=True)
        lines = []
        for path in built[0]:
            content = path.read_bytes()
            (folder / path.name).write_bytes(content)
            lines.append(f'{hashlib.sha256(content).hexdigest()}  {path.name}\n')
        (folder / 'SHA256SUMS').write_text(''.join(lines))
    print(''.join(lines), end='')


if __name__ == '__main__':
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else 'dist'))
