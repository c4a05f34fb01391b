"""A block's graph for ONNX, the names of its inputs and outputs, and the check of its file."""

import functools
import hashlib
import json
import os
from collections.abc import Callable
from typing import NamedTuple

import mxnet as mx
import numpy as np

from bert.model import BertBlock
from model_zoo import __version__
from model_zoo.blocks.decoder import DecoderBlock
from model_zoo.blocks.decoder_heads import DecoderLM
from model_zoo.errors import InputError
from model_zoo.layers.graphs import standard_operators
from model_zoo.layers.sequences import Mask
from model_zoo.util.arrays import flatten

from .comparison import make_batch, parameters_of, plain_calls

__all__ = ['Graph', 'graph_of']

#: our names of inputs -> transformers'
INPUTS = {
    'words': 'input_ids',
    'token_types': 'token_type_ids',
    'valid_length': 'attention_mask',
    'mc_token_ids': 'mc_token_ids',
}
#: how the name of a class ends -> transformers' names of its outputs
OUTPUTS = {
    'BertForPreTraining': ('prediction_logits', 'seq_relationship_logits'),
    'ForQuestionAnswering': ('start_logits', 'end_logits'),
    'DoubleHeadsModel': ('logits', 'mc_logits'),
    'SentenceEncoder': ('sentence_embedding',),
    '': ('logits',),
}
#: a backbone's further outputs -> transformers' names
_MORE_OUTPUTS = {
    'pooled': 'pooler_output',
    'next_sentence': 'seq_relationship_logits',
    'masked_lm': 'prediction_logits',
}
_SIZES = ((1, 16), (3, 23), (2, 1))  #: sizes of the batches that a file is checked with


class Graph(NamedTuple):
    """A block's graph for ONNX.

    Attributes
    ----------
    inputs : dict of str to (str, str, tuple)
        See `model_zoo.onnx.to_onnx`.
    outputs : dict of str to tuple
        Name -> axes.
    compare : callable
        ``compare(run)`` runs the block and the file, by ``run(feed) -> dict of str to array``, and
        yields pairs of what the file gave and what the block did.
    """

    symbol: mx.sym.Symbol
    inputs: dict
    outputs: dict
    compare: Callable


def graph_of(block):
    """Return the `Graph` of a BERT, or of a decoder."""
    if not isinstance(block, (BertBlock, DecoderBlock)) or block.base.output_attentions:
        raise InputError(f'{type(block).__name__} cannot become ONNX, or has output_attentions')
    return (_language_model if isinstance(block, DecoderLM) else _encoder)(block)


def digest_of(block, about):
    """Return the digest of a block's graph, its parameters, and plain values `about` the rest.

    Of a block with an ONNX file it is the file's.
    """
    plain = [__version__, about]  # the version stands for whatever writes the files
    if block.onnx_file is not None:
        files = filter(os.path.exists, (block.onnx_file, f'{block.onnx_file}_data'))
        arrays = [np.memmap(file, mode='r') for file in files]
    else:
        graph, parameters = graph_of(block), parameters_of(block)
        content = json.loads(graph.symbol.tojson())
        arrays = [parameters[n['name']] for n in content['nodes'] if n['name'] in parameters]
        for node in content['nodes']:  # names depend on the blocks that were made before
            node['name'] = node['name'] if node['name'] in graph.inputs else ''
            node['attrs'] = None if node['op'] == 'null' else node.get('attrs')
        plain += [content, graph.inputs, graph.outputs]
    plain += [(array.shape, str(array.dtype)) for array in arrays]
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()[:32]


def _sizes(block):
    limit = block.context_length or 64
    return [(rows, min(length, limit)) for rows, length in _SIZES]


def _run_block(block, batch):
    with plain_calls(block):
        return [output.asnumpy() for output in flatten(block(**batch))]


# -- BERT, and decoders without a past ----------------------------------------------------------


def _encoder(block):
    names = block.export_inputs
    axes = ('batch', 'choices', 'sequence') if block.word_axes == 3 else ('batch', 'sequence')
    inputs = {name: (INPUTS[name], 'int64', axes) for name in names}
    if 'mc_token_ids' in names:
        inputs['mc_token_ids'] = ('mc_token_ids', 'int64', axes[:-1])
    variables = {name: mx.sym.var(name) for name in names}
    with standard_operators():
        traced = block(**{**variables, 'valid_length': Mask([variables['valid_length']])})
    symbol = mx.sym.Group(flatten(traced))
    outputs = output_names(block)
    symbol = mx.sym.Group(list(symbol)[: len(outputs)])  # without a decoder's keys and values
    compare = functools.partial(_compare_encoder, block, names, outputs)
    return Graph(symbol, inputs, dict.fromkeys(outputs), compare)


def output_names(block):
    """Return the names of the outputs of a block's file."""
    if block is not block.base:
        name = type(block).__name__
        return next(names for end, names in OUTPUTS.items() if name.endswith(end))
    hidden = []
    if block.output_all_encodings:  # a decoder's begin with the embedding's
        first = int(isinstance(block, BertBlock))
        hidden = [f'hidden_states_{layer}' for layer in range(first, block.config.num_layers)]
    named = [_MORE_OUTPUTS[name] for name in block.output_names if name in _MORE_OUTPUTS]
    return [*hidden, 'last_hidden_state', *named]


def _compare_encoder(block, names, outputs, run):
    """Compare a BERT for masks with holes, which it takes as the file does; a decoder for lengths.

    A decoder's outputs for padding don't count.
    """
    random, takes_masks = np.random.RandomState(0), isinstance(block, BertBlock)
    for rows, length in _sizes(block):
        batch = make_batch(block, names, rows, length, 'int64', random, takes_masks)
        arrays = zip(batch, flatten(list(batch.values())))
        feed, mask = {INPUTS[name]: array.asnumpy() for name, array in arrays}, None
        if not takes_masks:
            lengths = feed['attention_mask']
            mask = (np.arange(length) < lengths[..., None]).astype('int64')
            feed['attention_mask'] = mask
            if 'mc_token_ids' in batch:
                feed['mc_token_ids'] = lengths - 1
                batch['mc_token_ids'] = mx.nd.array(lengths - 1, dtype='int64')
        results = run(feed)
        for name, wanted in zip(outputs, _run_block(block, batch)):
            kept = 1 if mask is None or wanted.ndim <= mask.ndim else mask[..., None]
            yield results[name] * kept, wanted * kept


# -- language models with keys and values in and out ----------------------------------------------


def _language_model(block):
    """Return the graph as in optimum's files: any number of tokens after any past, also none."""
    names, config = ('input_ids', 'attention_mask', 'position_ids'), block.config
    axes = ('batch', 'sequence'), ('batch', 'past_sequence + sequence'), ('batch', 'sequence')
    inputs = {name: (name, 'int64', shape) for name, shape in zip(names, axes)}
    outputs = {'logits': None}
    for name, (rows, heads, _, size) in _past_shapes(config, 'batch').items():
        inputs[name] = name, 'float32', (rows, heads, 'past_sequence', size)
        present = name.replace('past_key_values', 'present')
        outputs[present] = rows, heads, 'past_sequence + sequence', size
    words, mask, positions, *past = map(mx.sym.var, inputs)
    past = [[*pair] for pair in zip(past[::2], past[1::2])]
    base = block.transformer
    with standard_operators():
        given = words, None, [mask], positions, past, None
        states, presents, _ = base.encode(mx.sym, given, base.position_weight.var())
        symbol = mx.sym.Group([block.token_scores(mx.sym, states[-1]), *flatten(presents)])
    return Graph(symbol, inputs, outputs, lambda run: _compare_steps(block, run))


def _past_shapes(config, rows):
    """Return the shapes of the keys and values before the first token, by the inputs' names."""
    heads = [len(config.kept_heads(layer)) for layer in range(config.num_layers)]
    return {
        f'past_key_values.{layer}.{part}': (rows, count, 0, config.head_size)
        for layer, count in enumerate(heads)
        for part in ('key', 'value')
    }


def _compare_steps(block, run):
    """Compare a text in two parts, the second after the first one's past, with padding in front."""
    random = np.random.RandomState(0)
    for rows, length in _sizes(block):
        words = make_batch(block, ['words'], rows, length, 'int64', random)['words'].asnumpy()
        begins = random.randint(0, (length + 1) // 2, rows)
        mask = (np.arange(length) >= begins[:, None]).astype('int64')
        positions = np.maximum(mask.cumsum(axis=1) - 1, 0)
        shapes = _past_shapes(block.config, rows)
        past = {name: np.zeros(shape, 'float32') for name, shape in shapes.items()}
        first, parts = length - length // 3, []
        for part in (slice(0, first), slice(first, length)):
            if part.start == length:
                continue
            feed = {'input_ids': words[:, part], 'attention_mask': mask[:, : part.stop]}
            results = run({**feed, 'position_ids': positions[:, part], **past})
            parts.append(results.pop('logits'))
            past = {n.replace('present', 'past_key_values'): each for n, each in results.items()}
        for row, begin in enumerate(begins):
            scores = np.concatenate(parts, axis=1)[row : row + 1, begin:]
            text = {'words': mx.nd.array(words[row : row + 1, begin:], dtype='int64')}
            yield scores, _run_block(block, text)[0]
