"""Arguments made wrong."""

import mxnet as mx
import numpy as np
from damage import NAMES, NUMBERS, TEXTS

__all__ = ['change', 'worse', 'worse_array']

_OTHERS = [None, True, -1, 0, 0.5, float('nan'), 2**70, '', 'x', '\ud800', b'x', [], [None], {},
           {'a': 1}, (1, 2), object(), [[1], [1, 2]], print, np.array([1.5]), range(3)]  # fmt: skip


def worse(value, rng):
    """Something like a value, and wrong; now and then of another type."""
    if rng.random() < 0.2:
        return rng.choice(_OTHERS)
    if isinstance(value, bool) or value is None:
        return rng.choice([None, True, False, 2, -1, 'x', 0.5, [], float('nan'), 10**9, (1, 2)])
    if isinstance(value, (int, float)):
        return rng.choice([value + 1, -value, str(value), value + 0.5, *NUMBERS])
    if isinstance(value, str):
        return rng.choice([value + 'x', value[:-1], value * 3, *TEXTS, *NAMES])
    if isinstance(value, mx.nd.NDArray):
        return worse_array(value, rng)
    if isinstance(value, np.ndarray):
        made = worse_array(mx.nd.array(value), rng)
        return made.asnumpy() if isinstance(made, mx.nd.NDArray) else made
    if isinstance(value, (list, tuple)) and value:
        items = list(value)
        place = rng.randrange(len(items))
        change = rng.randrange(5)
        if change == 0:
            del items[place]
        elif change == 1:
            items *= 300
        elif change == 2:
            items = [items]
        else:
            items[place] = worse(items[place], rng)
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict) and value:
        key = rng.choice(sorted(value))
        return {**value, key: worse(value[key], rng)}
    return rng.choice(_OTHERS)


def worse_array(value, rng):
    """An array of another shape, type, storage, or of other values."""
    kind = rng.randrange(9)
    if kind == 0:
        return rng.choice([value.expand_dims(0), value.reshape(-1), value.expand_dims(-1)])
    if kind == 1:
        return value.astype(rng.choice(['int32', 'int64', 'float16', 'float64', 'uint8', 'int8']))
    if kind == 2:
        return mx.nd.concat(*[value] * rng.choice([2, 40]), dim=rng.randrange(value.ndim))
    if kind == 3:
        return value.asnumpy()
    if kind == 4 and value.ndim == 2:
        return value.tostype(rng.choice(['csr', 'row_sparse']))
    if kind == 5:
        return mx.nd.array(np.zeros((0,) * value.ndim) if rng.random() < 0.5 else [1.0])
    made = value.asnumpy().astype('float32')
    for _ in range(rng.choice([1, 1, made.size])):
        made.flat[rng.randrange(made.size)] = rng.choice(
            [-1, -0.5, 0.5, 39, 40, 1e4, 1e9, -1e9, 3e38, np.nan, np.inf, -np.inf]
        )
    return mx.nd.array(made)


def change(arguments, rng):
    """Arguments of which one, or a few, are worse."""
    made = dict(arguments)
    for name in rng.sample(sorted(made), min(len(made), rng.choice([1, 1, 1, 2, 3]))):
        made[name] = worse(made[name], rng)
    return made
