"""Does what Google's run_pretraining.py does, by scripts/run_pretraining.py."""

import sys

from model_zoo.app import cli, original_main

main = original_main(__file__)

if __name__ == '__main__':
    sys.exit(cli.run(main))
