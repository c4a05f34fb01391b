"""The family Transformer-XL, and the model that it adds to the zoo."""

from model_zoo.registry import Family, register_family
from model_zoo.zoo import add_models

from .config import TransfoXLConfig
from .heads import TransfoXLLMHeadModel
from .model import TransfoXLModel
from .tokenizer import TransfoXLTokenizer


def _adapt(fields):
    """Leave out cutoffs beyond the vocabulary."""
    size = fields['vocab_size']
    return {**fields, 'cutoffs': [cut for cut in TransfoXLConfig().cutoffs if cut < size]}


_TASKS = {'language_model': TransfoXLLMHeadModel}
_OPTIONS = {'zoo_task': 'language_model', 'adapt': _adapt}
#: what ``open_model`` knows of Transformer-XL
TRANSFO_XL = Family('transfo_xl', TransfoXLModel, _TASKS, (TransfoXLTokenizer,), **_OPTIONS)
register_family(TRANSFO_XL)
_NOTES = """The vocabulary's words should be in the order of their frequency. Of the model's
    cutoffs (20000, 40000, 200000) a new model has those that are less than the number of words."""
__all__ = ['TRANSFO_XL', *add_models(TRANSFO_XL, __name__, _NOTES)]
