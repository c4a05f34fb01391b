"""Build this project's operators, which make training on this machine's processor faster.

    python build_operators.py

Without them, trainings run on MXNet's operators.
"""

from model_zoo.app import cli


def main(argv=None):
    cli.parser(__doc__).parse_args(argv)
    from model_zoo.operators import build  # which loads MXNet

    print(build())


if __name__ == '__main__':
    cli.run_script(main)
