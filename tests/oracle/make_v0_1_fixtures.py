"""Write tests/fixtures/v0_1: what version 0.1 took, named, computed and wrote.

    git worktree add /tmp/v0_1 9f6298d
    python tests/oracle/make_v0_1_fixtures.py --checkout /tmp/v0_1

Later versions are held against these files: tests/compat. The code that runs is that of the
checkout, in a process of its own; the results are those of one processor core.
"""

import argparse
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
FIXTURES = HERE.parent / 'fixtures' / 'v0_1'
PARTS = ('commands', 'names', 'files')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--checkout', required=True, type=pathlib.Path, help='of version 0.1')
    parser.add_argument('--output_dir', default=FIXTURES, type=pathlib.Path)
    parser.add_argument('--parts', nargs='+', choices=PARTS, default=list(PARTS))
    args = parser.parse_args()
    checkout, output = args.checkout.resolve(), args.output_dir.resolve()
    output.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        'COLUMNS': '80',
        'HF_HUB_OFFLINE': '1',
        'OMP_NUM_THREADS': '1',
        'PYTHONDONTWRITEBYTECODE': '1',
        'PYTHONPATH': os.pathsep.join([str(checkout), str(HERE.parent)]),
    }
    for part in args.parts:
        program = HERE / 'v0_1' / f'record_{part}.py'
        command = [sys.executable, str(program), str(checkout), str(output)]
        subprocess.run(command, env=environment, cwd=checkout, check=True)


if __name__ == '__main__':
    main()
