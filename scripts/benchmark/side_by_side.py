"""What the benchmarks share: contenders timed in turn, and figures as ratios."""

import gc
import importlib
import statistics
import time

import mxnet as mx
import numpy as np

from model_zoo.util.files import write_json
from model_zoo.util.threads import available_processors

__all__ = ['bert_flops', 'installed', 'matmul_peak', 'parse_shapes', 'report', 'time_in_turn']


def installed(*modules):
    """Whether all `modules` can be imported."""
    try:
        for module in modules:
            importlib.import_module(module)
    except ImportError:
        return False
    return True


def parse_shapes(text):
    """``'1x32,8x128'`` -> [(1, 32), (8, 128)]: batch and length."""
    return [tuple(int(size) for size in shape.split('x')) for shape in text.split(',')]


def bert_flops(config, batch, length):
    """Floating-point operations of the matrix products in one forward pass of the encoder."""
    units, inner = config.hidden_size, config.intermediate_size
    weights = 4 * units * units + 2 * units * inner
    attention = 2 * length * units
    return 2 * batch * length * config.num_hidden_layers * (weights + attention)


def matmul_peak(size=2048, rounds=8):
    """GF/s of MXNet's product of two square matrices: the floor that all times stand on."""
    x, w = (mx.nd.random.normal(shape=(size, size)) for _ in range(2))

    def product():
        mx.nd.FullyConnected(x, w, no_bias=True, num_hidden=size).wait_to_read()

    seconds = time_in_turn({'product': product}, rounds)['product']
    return 2 * size**3 / min(seconds) / 1e9


def time_in_turn(contenders, rounds, seconds=None):
    """Time each contender once a round, in turn, so that a drift of the machine hits them all.

    Each has an untimed call before its timed one: the threads of the contender before it may still
    be spinning, which at a batch of 1 doubled the time of whoever came next.

    Parameters
    ----------
    contenders : dict of str to callable
    rounds : int
    seconds : float, optional
        Stop after the round in which this has passed; at least three rounds are made.

    Returns
    -------
    dict of str to list of float
        Seconds of each timed call, without the first round.
    """
    for call in contenders.values():
        call()
    times = {name: [] for name in contenders}
    gc.disable()
    begin = time.perf_counter()
    for done in range(rounds):
        if seconds is not None and done >= 3 and time.perf_counter() - begin > seconds:
            break
        for name, call in contenders.items():
            call()
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    gc.enable()
    return times


def report(title, rows, path=None, unit='GF/s'):
    """Print a table of `time_in_turn`'s results, and write them as JSON.

    Parameters
    ----------
    title : str
    rows : list of (str, float, dict of str to list of float)
        Case, work, and seconds by contender; the first is ours. The work is in floating-point
        operations, or in tokens if these are the unit.
    path : str, optional
        Of the JSON file.
    unit : {'GF/s', 'tokens/s'}

    Returns
    -------
    dict
        What is written as JSON.
    """
    size, key = {'GF/s': (1e9, 'gflops'), 'tokens/s': (1, 'tokens_per_s')}[unit]
    peak = matmul_peak()
    print(f'{title}; {available_processors()} processors, matrix product {peak:.0f} GF/s')
    print(f'{"case":>8}  {"contender":<22}{"median ms":>10}{"min ms":>10}{unit:>10}  time / ours')
    results = []
    for case, work, times in rows:
        ours = next(iter(times.values()))
        for name, seconds in times.items():
            median, low = statistics.median(seconds), min(seconds)
            ratio = statistics.median(np.array(seconds) / np.array(ours))  # round by round
            print(
                f'{case:>8}  {name:<22}{1e3 * median:>10.1f}{1e3 * low:>10.1f}'
                f'{work / median / size:>10.0f}  {ratio:.2f}'
            )
            results.append(
                {
                    'case': case,
                    'contender': name,
                    'median_s': median,
                    'min_s': low,
                    key: work / median / size,
                    'time_over_ours': ratio,
                    'runs': len(seconds),
                }
            )
    content = {'title': title, 'matmul_gflops': peak, 'results': results}
    if path:
        write_json(path, content)
    return content
