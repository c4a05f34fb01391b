"""Does what Google's create_pretraining_data.py does, by scripts/create_pretraining_data.py."""

import sys

from model_zoo.app import cli, original_main

main = original_main(__file__)

if __name__ == '__main__':
    sys.exit(cli.run(main))
