"""Does what pytorch-pretrained-bert's simple_lm_finetuning.py does, by scripts/finetune_lm.py."""

import sys

from model_zoo.app import cli, original_main

main = original_main(__file__)

if __name__ == '__main__':
    sys.exit(cli.run(main))
