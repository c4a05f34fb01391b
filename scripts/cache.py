"""List the files that this project keeps on this machine, and remove one kind of them.

    python cache.py
    python cache.py --clear engines

All listed files can be downloaded or made again. huggingface_hub manages the hub's cache:
``hf cache`` lists and removes its files.
"""

import pathlib
import shutil

from model_zoo.app import cli
from model_zoo.errors import reporting

#: kind -> what it is for
KINDS = {
    'engines': 'files of models that engines have run; above 20 GB the oldest go',
    'weights': 'weights and vocabularies of the catalogue, archives and addresses',
}


def entries(root, kind):
    """Return the files and folders of a kind."""
    paths = sorted(root.iterdir()) if root.is_dir() else []
    return [path for path in paths if (path.name == 'engines') == (kind == 'engines')]


def size_of(path):
    """Return the bytes of a file, or of all files in a folder."""
    files = path.rglob('*') if path.is_dir() and not path.is_symlink() else [path]
    return sum(file.lstat().st_size for file in files)


def main(argv=None):
    parser = cli.parser(__doc__)
    parser.add_argument('--clear', choices=[*KINDS, 'all'], help='remove the files of a kind')
    args = parser.parse_args(argv)
    from model_zoo.pretrained import default_root  # which loads MXNet

    root = pathlib.Path(default_root())
    print(f'cache: {root}')
    for kind, purpose in KINDS.items():
        paths = entries(root, kind)
        megabytes = sum(map(size_of, paths)) / 1e6
        print(f'{kind:8} {megabytes:9.1f} MB  {purpose}')
        if args.clear not in (kind, 'all'):
            continue
        for path in paths:
            with reporting(f'cannot remove {str(path)!r}'):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        print(f'         removed {len(paths)} files and folders')


if __name__ == '__main__':
    cli.run_script(main)
