"""A checkpoint's outputs in its own software beside those of our block.

`make_inputs` -> `run_ours` and `run_theirs` -> `differences_of` -> `plot_differences`.
"""

from typing import NamedTuple

import mxnet as mx
import numpy as np

from ..errors import InputError
from ..registry import family_of_class, get_family
from ..util.arrays import pad_rows
from ..util.display import new_figure, save_figure

__all__ = ['Inputs', 'differences_of', 'is_variant', 'make_inputs', 'plot_differences', 'run_ours']

MASKED = 0.15  # of the words, as in BERT's training


class Inputs(NamedTuple):
    """A batch, and the random parts that a task adds to it.

    Attributes
    ----------
    mask : numpy.ndarray, shape (batch, length), bool
        True where there is no padding.
    answers : numpy.ndarray, shape (2, batch), int32
        First and last token of each row's answer. All are within the shortest row: the originals
        let padding take part in the loss, so that rows are cut to the shortest one for it.
    span_weight : numpy.ndarray, shape (2, units), float32
        The last layer for answers, where a checkpoint has none.
    """

    words: np.ndarray
    token_types: np.ndarray
    valid_length: np.ndarray
    mask: np.ndarray
    answers: np.ndarray
    span_weight: np.ndarray


def make_inputs(config, num_examples, max_length, seed=0, texts=None, tokenizer=None):
    """Make the inputs of a comparison."""
    random = np.random.RandomState(seed)
    limit = getattr(config, 'position_rows', getattr(config, 'n_positions', 1 << 30))
    length = min(max_length, limit)
    if texts is None:
        shape = (num_examples, length)
        valid = random.randint(min(4, length), length + 1, num_examples)
        valid[0] = length
        # RoBERTa's counts positions by the ids that aren't padding's
        words = random.randint(getattr(config, 'first_position', 0), config.vocab_size, shape)
        types = random.randint(0, getattr(config, 'type_vocab_size', 1), shape)
    else:
        words, types, valid = _encode(config, texts[:num_examples], tokenizer, length, seed)
    answers = np.sort(random.randint(0, valid.min(), (2, len(words))), axis=0)
    span_weight = 0.02 * random.randn(2, getattr(config, 'hidden_size', 1))
    mask = np.arange(words.shape[1]) < valid[:, None]
    words, types, valid, answers = (x.astype('int32') for x in (words, types, valid, answers))
    return Inputs(words, types, valid, mask, answers, span_weight.astype('float32'))


def _encode(config, texts, tokenizer, length, seed):
    if hasattr(config, 'position_rows'):  # BERT, or a model like it
        firsts, seconds = zip(*((text.split(' ||| ') + [''])[:2] for text in texts))
        batch = tokenizer.encode_batch(list(firsts), list(seconds), max_length=length)
        special = [tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id]
        drawn = np.random.RandomState(seed).rand(*batch.input_ids.shape) < MASKED
        masked = drawn & ~np.isin(batch.input_ids, special)
        words = np.where(masked, tokenizer.mask_token_id, batch.input_ids)
        return words, batch.token_types, batch.valid_length
    rows = [row for row in (tokenizer.encode(text)[:length] for text in texts) if len(row)]
    if not rows:
        raise InputError('the texts have no tokens')
    words = pad_rows(rows)
    return words, np.zeros_like(words), np.array([len(row) for row in rows])


def is_variant(block):
    """Whether a block is of a family like BERT."""
    return family_of_class(type(block)).variant_of == 'bert'


def run_ours(block, inputs):
    """The outputs of a block."""
    words, types, valid = (
        mx.nd.array(array, dtype='int32')
        for array in (inputs.words, inputs.token_types, inputs.valid_length)
    )
    if is_variant(block):
        return _run_variant(block, inputs, words, types)
    if block.config.model_type == 'bert':
        return _run_bert(block, inputs, words, types, valid)
    if block.config.model_type == 'transfo-xl':
        # all layers' inputs are in the memory, if it is as long as the text
        block.reset_length(words.shape[1], 0, words.shape[1])
        losses, mems = block(words[:, :-1], labels=words[:, 1:])
        states = [memory.transpose((1, 0, 2))[:, 1:].asnumpy() for memory in mems[:-1]]
        outputs = {f'input of layer {i}': state for i, state in enumerate(states, 1)}
        return {**outputs, 'next word, mean loss': losses.mean().asnumpy()}
    base = block.base
    base.output_all_encodings = True
    base.hybridize(False)
    outputs = base(words, valid_length=valid)
    states = outputs[0] if base.has_past else outputs
    named = {f'layer {i}': state.asnumpy() for i, state in enumerate(states[1:], 1)}
    scores = mx.nd.dot(states[-1], base.word_embed.weight.data(), transpose_b=True)
    return {**named, 'next word': mx.nd.log_softmax(scores).asnumpy()}


def _run_variant(block, inputs, words, types):
    base, mask = block.base, mx.nd.array(inputs.mask, dtype='int32')
    base.output_all_encodings = True
    outputs = base(words, token_types=types, valid_length=mask)
    states, *rest = outputs if len(base.output_names) > 1 else [outputs]
    base.output_all_encodings = False
    if block is not base:
        rest = block(words, types, mask)
        rest = rest if isinstance(rest, list) else [rest]
    elif base.has_decoder:
        rest = rest[-1:]  # the only one that transformers has in one class
    named = {f'layer {i}': state for i, state in enumerate(states, 1)}
    named.update((f'output {i}', output) for i, output in enumerate(rest, 1))
    return {name: output.asnumpy() for name, output in named.items()}


def _run_bert(block, inputs, words, types, valid):
    base = block.base
    base.output_all_encodings = True
    outputs = base(words, types, valid)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    parts = ['layers'] + ['pooled vector'] * base.has_pooler
    parts += ['next sentence'] * base.has_classifier + ['masked words'] * base.has_decoder
    # a bare model of one output isn't wrapped in a list of outputs
    named = dict(zip(parts, outputs if len(parts) > 1 else [outputs]))
    result = {f'layer {i}': state.asnumpy() for i, state in enumerate(named['layers'], 1)}
    if base.has_pooler:
        result['pooled vector'] = named['pooled vector'].asnumpy()
    for name in ('next sentence', 'masked words'):
        if name in named:
            result[name] = mx.nd.log_softmax(named[name]).asnumpy()
    span = block
    if not hasattr(block, 'span_classifier'):
        span = get_family('bert').block_class('question_answering')(base)
        span.span_classifier.initialize()
        span.span_classifier.weight.set_data(mx.nd.array(inputs.span_weight))
    base.output_all_encodings = False
    shortest = int(inputs.valid_length.min())
    text = (words[:, :shortest], types[:, :shortest], None)
    start, end = span(*text)
    loss = span(*text, *(mx.nd.array(positions, dtype='int32') for positions in inputs.answers))
    return {**result, 'answer start': start.asnumpy(), 'answer end': end.asnumpy(),
            'answer loss': loss.asnumpy()}  # fmt: skip


PREDICTIONS = ('masked words', 'next sentence', 'next word')


def differences_of(ours, theirs, mask):
    """Compare the outputs that both programs have."""
    rows = []
    for name in ours:
        if name not in theirs:
            continue
        our, their = ours[name].astype('float64'), theirs[name].astype('float64')
        if our.shape != their.shape:
            raise InputError(f'{name}: our shape is {our.shape}, and theirs is {their.shape}')
        if our.shape[:2] == mask.shape:
            our, their = our[mask], their[mask]
        difference = our - their
        row = {
            'name': name,
            'max': float(np.abs(difference).max()),
            'std': float(difference.std()),
            'std_of_values': float(their.std()),
        }
        if name in PREDICTIONS:
            row['same'] = int((our.argmax(-1) == their.argmax(-1)).sum())
            row['of'] = int(our[..., 0].size)
        rows.append(row)
    return rows


def plot_differences(path, rows, title):
    """Draw the largest difference and the standard deviation of each output."""
    figure = new_figure(9, 4.5)
    axes = figure.subplots()
    positions = range(len(rows))
    for field, label in (('max', 'largest'), ('std', 'standard deviation')):
        # a logarithmic axis has no place for 0
        values = [max(row[field], 1e-12) for row in rows]
        axes.plot(positions, values, marker='o', label=label)
    axes.set_yscale('log')
    axes.set_xticks(list(positions), [row['name'] for row in rows], rotation=60, ha='right')
    axes.set(ylabel='difference', title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    save_figure(path, figure)
