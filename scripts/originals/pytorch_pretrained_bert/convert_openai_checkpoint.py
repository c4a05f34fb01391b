"""Does what pytorch_pretrained_bert's convert_openai_checkpoint does, with its arguments."""

import sys

from model_zoo.app import cli, original_main

main = original_main(__file__)

if __name__ == '__main__':
    sys.exit(cli.run(main))
