"""Does what pregenerate_training_data.py of pytorch-pretrained-bert does, by our script."""

import sys

from model_zoo.app import cli, original_main

main = original_main(__file__)

if __name__ == '__main__':
    sys.exit(cli.run(main))
