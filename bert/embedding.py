"""``from bert.embedding import BertEmbedding``, as the originals' README has it.

The class lives in the package `bert_embedding`, which stands on this one; so that no import goes
upwards, it is looked up by name when somebody asks for it (PEP 562).
"""

from model_zoo.families import names_later

__getattr__, _NAMES = names_later(__name__, {'bert_embedding': 'BertEmbedding'})


def __dir__():
    return _NAMES
