"""Does what Google's extract_features.py does, by scripts/extract_features.py."""

import sys

from model_zoo.app import cli, original_main

main = original_main(__file__)

if __name__ == '__main__':
    sys.exit(cli.run(main))
