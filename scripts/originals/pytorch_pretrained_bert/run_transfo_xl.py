"""Does what pytorch-pretrained-bert's run_transfo_xl.py does, by scripts/eval_transfo_xl.py."""

import sys

from model_zoo.app import cli, original_main

main = original_main(__file__)

if __name__ == '__main__':
    sys.exit(cli.run(main))
