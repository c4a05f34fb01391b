"""The module that the original package calls `bert`, and the script that its users run.

``python bert_embedding/bert.py --sentences "..."`` is the command ``bert-embedding``; see
:mod:`bert_embedding.cli`.
"""

import os
import sys

if __name__ == '__main__':
    # Python puts the folder of a script first on the path, where `import bert` would find this
    # very file instead of the package: the folder above replaces it.
    _here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != _here]
    sys.path.insert(0, os.path.dirname(_here))

from bert_embedding.embedding import BertEmbedding

__all__ = ['BertEmbedding']

if __name__ == '__main__':
    from bert_embedding.cli import console

    console()
