"""Inputs of all contenders, without a framework: words, texts, and the sizes of models."""

import itertools

import numpy as np

VOCAB_SIZE = 30522  # BERT's
SEGMENTS = 4  # segments of a text for Transformer-XL, whose memory goes from one to the next


def bert_sizes(options):
    """Return the sizes of a BERT, by this project's and transformers' names."""
    return {
        'hidden_size': options.units,
        'num_hidden_layers': options.layers,
        'num_attention_heads': 12,
        'intermediate_size': 4 * options.units,
    }


def bert_flops(options, batch, length):
    """Return the operations of the matrix products in a forward pass of BERT's encoder."""
    units = options.units
    return 2 * batch * length * options.layers * (12 * units * units + 2 * length * units)


def make_batch(shape):
    """Return random words, token types and lengths; no position is padding."""
    batch, length = shape
    words = np.random.RandomState(0).randint(0, VOCAB_SIZE, shape)
    return words, np.zeros_like(words), np.full((batch,), length)


def bert_feed(shape):
    """Return the same as transformers' inputs."""
    words, types, _ = make_batch(shape)
    return {'input_ids': words, 'attention_mask': np.ones_like(words), 'token_type_ids': types}


def prompts(shape, vocab_size):
    """Return random words to continue."""
    return np.random.RandomState(0).randint(0, vocab_size, shape)


def training_batches(options, shape):
    """Return the batches of a training task, without end."""
    batch, length = shape
    rng = np.random.RandomState(1)
    if options.task == 'classifier':
        return itertools.repeat((*make_batch(shape), rng.randint(0, 2, batch)))
    if options.task == 'pretraining':  # 15 % of the words are masked
        count = max(1, round(0.15 * length))
        positions = np.sort(np.argsort(rng.rand(batch, length))[:, :count])
        ids = rng.randint(0, VOCAB_SIZE, positions.shape)
        return itertools.repeat((*make_batch(shape), positions, ids, rng.randint(0, 2, batch)))
    # words as frequent as in a text (Zipf), on which the work of an adaptive softmax depends
    odds = 1 / np.arange(1, options.vocab_size + 1)
    size = (batch, SEGMENTS * length + 1)
    words = rng.choice(options.vocab_size, size, p=odds / odds.sum())
    return itertools.cycle(
        (words[:, i : i + length].copy(), words[:, i + 1 : i + length + 1].copy())
        for i in range(0, SEGMENTS * length, length)
    )


def transfo_xl_sizes(options):
    """Return the sizes of a Transformer-XL."""
    return {
        'vocab_size': options.vocab_size,
        'n_layer': options.layers,
        'tgt_len': options.tgt_len,
        'mem_len': options.mem_len,
        'clamp_len': options.mem_len + options.tgt_len,
        'cutoffs': [number for number in (20000, 40000, 200000) if number < options.vocab_size],
    }


def read_sentences(options):
    """Return the first lines of a file that aren't empty."""
    with open(options.file, encoding='utf-8') as file:
        lines = (line.strip() for line in file)
        return list(itertools.islice((line for line in lines if line), options.count))
