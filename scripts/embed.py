"""Print or write the vectors of words or sentences.

    python embed.py all-MiniLM-L6-v2 'A sentence.' 'Another.' --pooling model --output vectors.npz

The command ``bert-embedding`` is the same with the original's default model and format.
"""

from bert_embedding.cli import embed as main
from model_zoo.app import cli

if __name__ == '__main__':
    cli.run_script(main)
