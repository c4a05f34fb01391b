"""``from bert.embedding import BertEmbedding``, as the originals' README has it.

The class lives in the package `bert_embedding`, which stands on this one; so that no import goes
upwards, it is looked up by name when somebody asks for it (PEP 562).
"""

from model_zoo.families import load_above


def __getattr__(name):
    if name != 'BertEmbedding':
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return load_above('bert_embedding').BertEmbedding


def __dir__():
    return ['BertEmbedding']
