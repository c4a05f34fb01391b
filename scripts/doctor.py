"""Check this installation: what is there, what is wrong, and how to fix it.

    python doctor.py

The exit status is 1 if something is wrong. A missing extra isn't: only some commands need it.
"""

import sys

import model_zoo  # noqa: F401  isort: skip  before MXNet: Ctrl-C while it loads ends quietly

from model_zoo.app import cli
from model_zoo.app.doctor import examine


def main(argv=None):
    cli.parser(__doc__.split('\n')[0]).parse_args(argv)
    findings = examine()
    print(f'gluon-transformer-zoo {model_zoo.__version__}')
    for each in findings:
        print(f'{each.state:<8}{each.name:<13}{each.text}')
        if each.cure:
            print(f'{"":<21}-> {each.cure}')
    return 1 if any(each.state == 'wrong' for each in findings) else 0


if __name__ == '__main__':
    sys.exit(cli.run(main))
