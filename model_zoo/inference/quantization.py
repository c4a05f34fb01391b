"""INT8 with MXNet: a block's matrix products in integers, with calibrated scales.

Source: ``mxnet.contrib.quantization``, and GluonNLP 0.10's ``finetune_classifier.py
--only_calibration``, whose modes and files these are.
"""

import ctypes
import json
import logging
import os
import tempfile
import types

import mxnet as mx
import numpy as np

from ..errors import InputError, UnknownNameError
from ..util.choices import CALIBRATION_MODES

__all__ = ['leave_out', 'quantize']

logger = logging.getLogger(__name__)

_BACKEND = 'MKLDNN_QUANTIZE'
_INPUTS = ('data0', 'data1', 'data2')
_PRODUCTS = ('_sg_mkldnn_fully_connected', '_sg_mkldnn_selfatt')
#: greatest output of a GELU and least of a layer normalization, as in GluonNLP's BertLayerCollector
_LARGEST_GELU, _SMALLEST_NORM = 10.0, -50.0
#: TensorRT's number; MXNet's 8001 take 16 times as long, and are too fine for small samples
_BINS = 2001


def quantize(block, batches, mode='customize', dtype='auto', exclude=()):
    """Make a graph of a block whose matrix products are computed with 8-bit integers.

    Each output of a layer has its own scale, except in mode 'none'. With mode 'none' or dtype
    'int8', the products of attention stay in float32.

    Parameters
    ----------
    block : ZooBlock
        On the CPU, in float32.
    batches : iterable of (words, token_types, valid_length)
        Text of the kind that the model will see; a few batches are enough.
    mode : str
        One of `CALIBRATION_MODES`.
    dtype : str
        'auto', 'int8' or 'uint8'.
    exclude : sequence of str
        Parts of the names of layers, or of their parameters, that stay in float32, such as 'ffn_2'.

    Returns
    -------
    mxnet.gluon.SymbolBlock
        With the inputs data0, data1 and data2, or without token types data0 and data1. Its
        ``export`` writes two files that ``SymbolBlock.imports`` reads.

    Raises
    ------
    UnknownNameError
        If there is no such mode.
    InputError
        If there are no batches.
    """
    from mxnet.contrib import quantization  # loads scipy.stats

    UnknownNameError.check('calib_mode', mode, CALIBRATION_MODES)
    batches = list(batches)
    if not batches:
        raise InputError('there is no text to calibrate the model with')
    block.hybridize()
    block(*batches[0])
    if 'token_types' in block.unused_inputs:
        batches = [(words, valid_length) for words, _, valid_length in batches]
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, 'float')
        block.export(prefix)
        symbol, parameters, auxiliary = mx.model.load_checkpoint(prefix, 0)
    symbol = symbol.get_backend_symbol(_BACKEND)
    if mode == 'none' or dtype == 'int8':
        # MXNet finds no common type for the inputs of attention's products then
        exclude = (*exclude, 'selfatt')
    nodes = json.loads(symbol.tojson())['nodes']
    products = [  # the names of the node and of its parameters
        [node['name'], *(nodes[number]['name'] for number, *_ in node['inputs'])]
        for node in nodes
        if node['op'].startswith(_PRODUCTS)
    ]
    excluded = [each[0] for each in products if any(part in n for part in exclude for n in each)]
    graph, weights, auxiliary, _ = quantization.quantize_graph(
        symbol,
        parameters,
        auxiliary,
        excluded_sym_names=excluded,
        excluded_op_names=[],
        calib_mode='none',
        quantized_dtype=dtype,
        quantize_mode='smart',
        # a scale for each output of a layer needs ranges that are known before
        quantize_granularity='tensor-wise' if mode == 'none' else 'channel-wise',
    )
    if mode != 'none':
        ranges = _calibrate(symbol, parameters, batches, mode, dtype)
        logger.info('calibrated on %d batches', len(batches))
        options = {'calib_mode': 'customize', 'quantized_dtype': dtype, 'logger': None}
        collector = types.SimpleNamespace(min_max_dict=ranges)
        found = quantization.calib_graph(graph, parameters, auxiliary, collector, **options)
        graph, weights, _ = found
    graph = graph.get_backend_symbol(_BACKEND)
    inputs = [name for name in _INPUTS if name in graph.list_inputs()]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'weights')
        mx.nd.save(path, {f'arg:{name}': array for name, array in weights.items()})
        graph.save(f'{path}.json')
        return mx.gluon.SymbolBlock.imports(f'{path}.json', inputs, path)


def _calibrate(symbol, parameters, batches, mode, dtype):
    """The least and greatest value of each output, by its name."""
    ranges, counts = {}, {}

    def widen(name, array):
        low, high = float(array.min()), float(array.max())
        if mode == 'customize' and ('eltwise' in name or 'gelu' in name):
            high = min(high, _LARGEST_GELU)
        elif mode == 'customize' and 'layernorm' in name:
            low = max(low, _SMALLEST_NORM)
        old = ranges.get(name, (low, high))
        ranges[name] = min(low, old[0]), max(high, old[1])

    def count(name, array):
        high = max(map(abs, ranges[name])) or 1.0
        new, edges = np.histogram(array, _BINS, (-high, high))
        counts[name] = new + counts.get(name, (0, None))[0], edges

    for collect in (widen, count) if mode == 'entropy' else (widen,):
        for batch in batches:
            _watch(symbol, {**parameters, **dict(zip(_INPUTS, batch))}, collect)
    for name, (histogram, edges) in counts.items():
        # the range whose values in 8 bits are distributed most like the values themselves
        one_sided = ranges[name][0] >= 0 and dtype != 'int8'
        arrays = {'hist': mx.nd.array(histogram), 'hist_edges': mx.nd.array(edges)}
        bins = 511 if one_sided else 255
        high, _ = mx.nd.contrib.calibrate_entropy(num_quantized_bins=bins, **arrays)
        high = float(high.asscalar())
        ranges[name] = 0.0 if one_sided else -high, high
    return ranges


def _watch(symbol, values, collect):
    """Run a graph, and call ``collect(name, array)`` for each output in it."""
    known = set(symbol.list_inputs())
    values = {name: array for name, array in values.items() if name in known}
    executor = symbol.bind(mx.cpu(), values, grad_req='null')

    def watch(name, handle):
        name = name.decode() if isinstance(name, bytes) else name
        if name.endswith('_output'):
            handle = ctypes.cast(handle, mx.base.NDArrayHandle)
            collect(name, mx.nd.NDArray(handle, writable=False).asnumpy())

    executor.set_monitor_callback(watch, monitor_all=True)
    for output in executor.forward(is_train=False):
        output.wait_to_read()


def leave_out(layers, harm, attempt, is_enough):
    """Quantize all layers but the few that cost too much.

    Layers are ordered by the harm that each does alone, measured once. Then as few of the most
    harmful ones as possible stay in float32, found by bisection.

    ``harm(layer)`` is how far the model's outputs move if only this layer is quantized, and
    ``attempt(exclude)`` the model with all other layers quantized. Returns the last attempt that
    ``is_enough``, and the layers that it leaves in float32; with all layers left out, it is
    returned however good it is.
    """
    made = attempt([])
    if is_enough(made) or not layers:
        return made, []
    logger.info('measuring the harm of %d layers', len(layers))
    layers, bad, good = sorted(layers, key=harm, reverse=True), 0, 1
    while not is_enough(made := attempt(layers[:good])) and good < len(layers):
        bad, good = good, min(2 * good, len(layers))
    while good - bad > 1:
        middle = (bad + good) // 2
        tried = attempt(layers[:middle])
        if is_enough(tried):
            good, made = middle, tried
        else:
            bad = middle
    return made, layers[:good]
