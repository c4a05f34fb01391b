"""Inputs of all contenders, without a framework: words, texts, and the sizes of models."""

import itertools

import numpy as np

VOCAB_SIZE = 30522  # BERT's
#: `--family` -> what its base model has beside `bert_sizes`
FAMILIES = {
    'bert': {},
    'mpnet': {},
    'albert': {'vocab_size': VOCAB_SIZE},
    'modernbert': {'intermediate_size': 1152},
    'deberta-v2': {
        'pos_att_type': ['p2c', 'c2p'],
        'position_biased_input': False,
        'type_vocab_size': 0,
        'position_buckets': 256,
        'norm_rel_ebd': 'layer_norm',
        'vocab_size': 128100,
        **dict.fromkeys(['relative_attention', 'share_att_key'], True),
    },
}


def bert_sizes(options):
    """Return the sizes of a BERT, by this project's and transformers' names."""
    layers = {'num_hidden_layers': options.layers, 'num_attention_heads': 12}
    return {**layers, 'hidden_size': options.units, 'intermediate_size': 4 * options.units}


def bert_flops(options, batch, length):
    """Return the operations of the matrix products in a forward pass of BERT's encoder."""
    units = options.units
    return 2 * batch * length * options.layers * (12 * units * units + 2 * length * units)


def make_batch(shape):
    """Return random words, token types and lengths; no position is padding."""
    batch, length = shape
    words = np.random.RandomState(0).randint(0, VOCAB_SIZE, shape)
    return words, np.zeros_like(words), np.full((batch,), length)


def bert_feed(shape, family='bert'):
    """Return the same as transformers' inputs."""
    words, types, _ = make_batch(shape)
    types = {'token_type_ids': types} if family in ('bert', 'albert') else {}
    return {'input_ids': words, 'attention_mask': np.ones_like(words), **types}


def prompts(shape, vocab_size):
    """Return random words to continue."""
    return np.random.RandomState(0).randint(0, vocab_size, shape)


def labels(shape):
    """Return random labels of a batch, of two classes."""
    return np.random.RandomState(1).randint(0, 2, shape[0])


def read_sentences(options):
    """Return the first lines of a file that aren't empty."""
    with open(options.file, encoding='utf-8') as file:
        lines = (line.strip() for line in file)
        return list(itertools.islice((line for line in lines if line), options.count))
