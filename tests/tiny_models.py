"""Tiny models that pipelines and the server run."""

import pathlib

import tiny

from gpt2 import GPT2Config, GPT2LMHeadModel, GPT2Tokenizer
from model_zoo.tokenization.learn import learn_byte_pairs

WORDS = 'the cat dog sleep ##s in paris good bad film . ? where a'.split()
LENGTH = 24  # most tokens of a text
README = pathlib.Path(__file__).parents[1] / 'README.rst'


def save_bert(folder, block_class, labels=None):
    """Save a model of one of BERT's classes; returns the folder."""
    options = {'scale': 0.4, 'seed': 7, 'max_position_embeddings': LENGTH}
    tiny.save_bert(pathlib.Path(folder), WORDS, block_class, labels, **options)
    return str(folder)


def save_gpt2(folder):
    """Save a GPT-2 that writes parts of words, learned from README.rst; returns the folder."""
    pairs = folder / 'pairs'
    tokenizer = GPT2Tokenizer(learn_byte_pairs(README, 400, pairs), str(pairs / 'merges.txt'))
    config = tiny.decoder_config(GPT2Config, len(tokenizer), n_positions=64)
    block = tiny.initialized(GPT2LMHeadModel(config), 0.4, 7)
    block.save_pretrained(str(folder), tokenizer)
    return str(folder)
