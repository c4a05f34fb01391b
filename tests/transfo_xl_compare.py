"""What the comparisons of our Transformer-XL with the original share; needs no original itself."""

import json

import mxnet as mx
import numpy as np
from bert_compare import assert_gradients, gradients, load_state
from json_files import cases

import transfo_xl

#: a small model; its weights are large, so that nothing hides in linear ranges
CONFIG = {'vocab_size': 40, 'cutoffs': [9, 22], 'd_model': 10, 'd_embed': 8, 'n_head': 2}
CONFIG.update(d_head=4, d_inner=12, div_val=2, n_layer=2, tgt_len=5, mem_len=6, clamp_len=-1)
CONFIG.update(same_length=False, init_std=0.3, proj_init_std=0.3, dropout=0.0)
#: name -> what is different from CONFIG
VARIANTS = cases('transfo_xl')['VARIANTS']
#: lengths of the segments that follow one another
LENGTHS = (5, 4, 5)


def make_config(variant):
    """Fields of the configuration of a variant."""
    return {**CONFIG, **VARIANTS[variant]}


def make_inputs(config, seed=0, batch=3, lengths=LENGTHS):
    """Segments: a list of (words, labels)."""
    random = np.random.RandomState(seed)
    text = random.randint(0, config['vocab_size'], (batch, sum(lengths) + 1))
    ends = np.cumsum(lengths)
    return [
        (text[:, end - length : end], text[:, end - length + 1 : end + 1])
        for end, length in zip(ends, lengths)
    ]


def pack(variant, arrays):
    """Many small arrays as two for a file: their numbers, and the names and shapes as JSON."""
    shapes = {name: value.shape for name, value in arrays.items()}
    numbers = np.concatenate([value.ravel() for value in arrays.values()])
    return {variant: numbers.astype('float32'), f'{variant}_shapes': json.dumps(shapes)}


def unpack(file, variant):
    """What `pack` packed: a dict of dicts and lists of arrays, by the parts of their names."""
    numbers, start, result = file[variant], 0, {}
    for name, shape in json.loads(str(file[f'{variant}_shapes'])).items():
        size = int(np.prod(shape))
        kind, key = name.split('/', 1)
        result.setdefault(kind, {})[key] = numbers[start : start + size].reshape(shape)
        start += size
    for kind in ('scores', 'losses'):
        result[kind] = list(result[kind].values())
    mems = result.get('mems', {})
    result['mems'] = [
        [mems[key] for key in mems if key.startswith(f'{i}/')] for i in range(len(LENGTHS))
    ]
    return result


def make_block(state, folder, config, name='TransfoXLLMHeadModel'):
    """Our block with the weights `state` of the original, by way of a file."""
    block = getattr(transfo_xl, name)(transfo_xl.TransfoXLConfig(**config))
    return load_state(block, state, folder, ignore_extra=name == 'TransfoXLModel')


def run(block, segments):
    """Scores, losses and memories of segments that follow one another, and all gradients.

    The gradients are of the sum of all losses, by the original's names.
    """
    result = {'scores': [], 'losses': [], 'mems': []}
    mems = None
    for words, _ in segments:
        scores, mems = block(mx.nd.array(words, dtype='int32'), mems)
        result['scores'].append(scores.asnumpy())
        result['mems'].append([memory.asnumpy() for memory in mems])
    for parameter in block.collect_params().values():
        parameter.zero_grad()
    mems = None
    with mx.autograd.record(train_mode=False):
        losses = []
        for words, labels in segments:
            arrays = [mx.nd.array(array, dtype='int32') for array in (words, labels)]
            loss, mems = block(arrays[0], mems, labels=arrays[1])
            losses.append(loss)
        total = mx.nd.add_n(*[loss.sum() for loss in losses])
    total.backward()
    result['losses'] = [loss.asnumpy() for loss in losses]
    result['gradients'] = gradients(block)
    return result


def assert_same(ours, theirs, tolerance=1e-5):
    """Outputs and memories within `tolerance`, gradients within 1e-4 of their norms."""
    for kind in ('scores', 'losses'):
        for one, two in zip(ours[kind], theirs[kind]):
            np.testing.assert_allclose(one, two, atol=tolerance, rtol=0)
    for one, two in zip(ours['mems'], theirs['mems']):
        assert_same_memories(one, two, tolerance)
    assert_gradients(ours['gradients'], theirs['gradients'], rounding=1e-6)


def assert_same_memories(ours, theirs, tolerance=1e-5):
    """Our memory is theirs, which may be shorter; what ours has before that counts for nothing."""
    assert len(ours) == (len(theirs) + 1 if len(theirs) else 0)
    for memory, wanted in zip(ours, theirs):
        length = wanted.shape[0]
        assert (ours[-1] == length).all()
        np.testing.assert_allclose(memory[len(memory) - length :], wanted, atol=tolerance, rtol=0)
