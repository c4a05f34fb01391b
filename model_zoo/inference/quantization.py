"""INT8 with MXNet: a block's matrix products in integers, with calibrated scales.

Source: ``mxnet.contrib.quantization``, and GluonNLP 0.10's ``finetune_classifier.py
--only_calibration``, whose modes and files these are.
"""

import ctypes
import json
import logging
import os
import tempfile

import mxnet as mx
import numpy as np

from ..errors import InputError, UnknownNameError
from ..util.choices import CALIBRATION_MODES, QUANTIZED_DTYPES

__all__ = [
    'LAYER_TYPES',
    'Quantizer',
    'choose_layers',
    'leave_out',
    'quantize',
]

logger = logging.getLogger(__name__)

#: parts of the names of layers, by what they compute: products of attention and projections
LAYER_TYPES = ('selfatt', 'qkv', 'proj', 'ffn_1', 'ffn_2', 'pooler', 'classifier')
_BACKEND = 'MKLDNN_QUANTIZE'
_INPUTS = ('data0', 'data1', 'data2')
_PRODUCTS = ('_sg_mkldnn_fully_connected', '_sg_mkldnn_selfatt')


class _Ranges:
    """Collect the least and greatest outputs, `clipped` as in GluonNLP's BertLayerCollector."""

    largest_gelu, smallest_norm = 10.0, -50.0

    def __init__(self, clipped):
        self.min_max_dict, self._clipped = {}, clipped

    def collect(self, name, array):
        low, high = float(array.min()), float(array.max())
        if self._clipped and ('eltwise' in name or 'gelu' in name):
            high = min(high, self.largest_gelu)
        elif self._clipped and 'layernorm' in name:
            low = max(low, self.smallest_norm)
        old = self.min_max_dict.get(name, (low, high))
        self.min_max_dict[name] = min(low, old[0]), max(high, old[1])


class _Histograms:
    """Counts values of outputs, whose ranges are known."""

    #: TensorRT's number; MXNet's 8001 take 16 times as long, and are too fine for small samples
    bins = 2001

    def __init__(self, ranges):
        self._ranges, self._counts = ranges, {}

    def collect(self, name, array):
        high = max(map(abs, self._ranges[name])) or 1.0
        counts, edges = np.histogram(array, self.bins, (-high, high))
        if name in self._counts:
            counts = counts + self._counts[name][0]
        self._counts[name] = counts, edges

    def best_ranges(self, dtype):
        """The ranges whose values in 8 bits are distributed most like the values themselves."""
        best = {}
        for name, (counts, edges) in self._counts.items():
            one_sided = self._ranges[name][0] >= 0 and dtype != 'int8'
            high, _ = mx.nd.contrib.calibrate_entropy(
                hist=mx.nd.array(counts),
                hist_edges=mx.nd.array(edges),
                num_quantized_bins=511 if one_sided else 255,
            )
            high = float(high.asscalar())
            best[name] = 0.0 if one_sided else -high, high
        return best


def quantize(block, batches, mode='customize', dtype='auto', exclude=()):
    """Make a graph of a block whose matrix products are computed with 8-bit integers.

    Parameters
    ----------
    block, batches, mode, dtype
        See `Quantizer`.
    exclude : sequence of str
        Parts of the names of layers, or of their parameters, that stay in float32, such as 'ffn_2';
        see `LAYER_TYPES`.

    Returns
    -------
    mxnet.gluon.SymbolBlock
        With the inputs data0, data1 and data2. Its ``export`` writes two files that
        ``SymbolBlock.imports`` reads.
    """
    quantizer = Quantizer(block, batches, mode, dtype)
    kept = [
        layer
        for layer, names in quantizer.layers.items()
        if any(part in name for part in exclude for name in names)
    ]
    return quantizer.block(kept)


class Quantizer:
    """A block that is calibrated once, and becomes graphs with other layers in integers.

    Each output of a layer has its own scale, except in mode 'none'. With mode 'none' or dtype
    'int8', the products of attention stay in float32.

    Parameters
    ----------
    block : ZooBlock
        On the CPU, in float32.
    batches : iterable of (words, token_types, valid_length)
        Text of the kind that the model will see; a few batches are enough. With mode 'none' only
        the first is used.
    mode : str
        One of `CALIBRATION_MODES`.
    dtype : str
        One of `QUANTIZED_DTYPES`.

    Attributes
    ----------
    layers : dict of str to list of str
        Layers that can be quantized: name -> the names of its node and of its parameters.

    Raises
    ------
    UnknownNameError
        If there is no such mode or dtype.
    InputError
        If there are no batches.
    """

    def __init__(self, block, batches, mode='customize', dtype='auto'):
        UnknownNameError.check('calib_mode', mode, CALIBRATION_MODES)
        UnknownNameError.check('quantized_dtype', dtype, QUANTIZED_DTYPES)
        self._mode, self._dtype, batches = mode, dtype, iter(batches)
        self._first = next(batches, None)
        if self._first is None:
            raise InputError('there is no text to calibrate the model with')
        symbol, self._parameters, self._auxiliary = _trace(block, self._first)
        self._symbol = symbol.get_backend_symbol(_BACKEND)
        self.layers, fixed = {}, []
        for name, names in _products(self._symbol, block.prefix):
            # MXNet finds no common type for the inputs of attention's products then
            if 'selfatt' in name and (mode == 'none' or dtype == 'int8'):
                fixed.append(names[0])
            else:
                self.layers[name] = names
        self._fixed, self._ranges, self._outputs = fixed, None, None
        if mode != 'none':
            batches = [self._first, *batches]
            self._ranges = self._calibrate(batches)
            logger.info('calibrated on %d batches', len(batches))

    def block(self, exclude=()):
        """The graph without the layers `exclude`, by their names, as a block."""
        symbol, weights = self._quantized(exclude)
        inputs = [name for name in _INPUTS if name in symbol.list_inputs()]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'weights')
            mx.nd.save(path, {f'arg:{name}': array for name, array in weights.items()})
            symbol.save(f'{path}.json')
            return mx.gluon.SymbolBlock.imports(f'{path}.json', inputs, path)

    def harm(self, layer):
        """Mean squared difference of the first batch's outputs with this layer alone in INT8."""
        if self._outputs is None:
            self._outputs = self._run(self._symbol, self._parameters, self._first)
        results = self._run(
            *self._quantized([name for name in self.layers if name != layer]), self._first
        )
        return sum(float(((new - old) ** 2).mean()) for new, old in zip(results, self._outputs))

    def _quantized(self, exclude):
        from mxnet.contrib import quantization  # loads scipy.stats

        quantized, weights, auxiliary, _ = quantization.quantize_graph(
            self._symbol,
            self._parameters,
            self._auxiliary,
            excluded_sym_names=[*self._fixed, *(self.layers[name][0] for name in exclude)],
            excluded_op_names=[],
            calib_mode='none',
            quantized_dtype=self._dtype,
            quantize_mode='smart',
            # a scale for each output of a layer needs ranges that are known before
            quantize_granularity='tensor-wise' if self._mode == 'none' else 'channel-wise',
        )
        if self._ranges is not None:
            quantized, weights, auxiliary = quantization.calib_graph(
                quantized,
                self._parameters,
                auxiliary,
                self._ranges,
                calib_mode='customize',
                quantized_dtype=self._dtype,
                logger=None,
            )
        return quantized.get_backend_symbol(_BACKEND), weights

    def _calibrate(self, batches):
        """The ranges of outputs, in ``min_max_dict`` by their names."""
        clipped = self._mode == 'customize'
        ranges = _Ranges(clipped)
        for batch in batches:
            self._run(self._symbol, self._parameters, batch, ranges.collect)
        if self._mode == 'entropy':
            histograms = _Histograms(ranges.min_max_dict)
            for batch in batches:
                self._run(self._symbol, self._parameters, batch, histograms.collect)
            ranges.min_max_dict = histograms.best_ranges(self._dtype)
        return ranges

    def _run(self, symbol, weights, batch, collect=None):
        known = set(symbol.list_inputs())
        values = {**weights, **dict(zip(_INPUTS, batch))}
        executor = symbol.bind(
            mx.cpu(),
            {name: array for name, array in values.items() if name in known},
            grad_req='null',
        )

        def watch(name, handle):
            name = name.decode() if isinstance(name, bytes) else name
            if name.endswith('_output'):
                handle = ctypes.cast(handle, mx.base.NDArrayHandle)
                collect(name, mx.nd.NDArray(handle, writable=False).asnumpy())

        if collect is not None:
            executor.set_monitor_callback(watch, monitor_all=True)
        return [output.asnumpy() for output in executor.forward(is_train=False)]


def _products(symbol, prefix):
    """Yield the name of each quantizable layer, and the names of its node and parameters."""
    nodes = json.loads(symbol.tojson())['nodes']
    for node in nodes:
        if node['op'].startswith(_PRODUCTS):
            inputs = [nodes[n]['name'] for n, *_ in node['inputs']]
            weight = next((name for name in inputs if name.endswith('_weight')), None)
            name = node['name'] if weight is None else weight[: -len('_weight')]
            name = name[len(prefix) :] if name.startswith(prefix) else name
            yield name, [node['name'], *inputs]


def _trace(block, batch):
    block.hybridize()
    block(*batch)
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, 'float')
        block.export(prefix)
        return mx.model.load_checkpoint(prefix, 0)


def choose_layers(layers, harm, make, forward_of, evaluate, before, metric, most_lost):
    """Make a model in INT8, except for as few layers as possible, until its score suffices.

    Parameters
    ----------
    layers, harm
        See `leave_out`.
    make : callable
        ``make(exclude)`` is the model with all other layers quantized, and ``forward_of(made)`` its
        function of a batch.
    evaluate : callable
        ``evaluate(forward) -> (score, report)``.
    before : callable
        ``before(batch)`` gives the outputs in float32.
    metric : str
        Name of the score.
    most_lost : float
        How much of the score INT8 may cost.

    Returns
    -------
    (object, dict)
        The model, and plain JSON: both reports, what is lost, and the layers in float32.
    """
    best, report = evaluate(before)
    logger.info('float32: %s %.4f', metric, best)

    def attempt(exclude):
        made = make(exclude)
        score, int8_report = evaluate(forward_of(made))
        logger.info('INT8%s: %s %.4f', _without(exclude), metric, score)
        return score, int8_report, made

    (score, int8_report, made), exclude = leave_out(
        layers, harm, attempt, lambda tried: best - tried[0] <= most_lost
    )
    logger.info('INT8%s: %s %.4f, of float32 %.4f', _without(exclude), metric, score, best)
    return made, {
        'metric': metric,
        'float32': report,
        'int8': int8_report,
        'lost': best - score,
        'float32_layers': exclude,
    }


def _without(exclude):
    return f' without {", ".join(exclude)}' if exclude else ''


def leave_out(layers, harm, attempt, is_enough):
    """Quantize all layers but the few that cost too much.

    Layers are ordered by the harm that each does alone, measured once. Then as few of the most
    harmful ones as possible stay in float32, found by bisection.

    ``harm(layer)`` is how far the model's outputs move if only this layer is quantized, and
    ``attempt(exclude)`` the model with all other layers quantized. Returns the last attempt that
    ``is_enough``, and the layers that it leaves in float32; with all layers left out, it is
    returned however good it is.
    """
    result = attempt([])
    layers = list(layers)
    if is_enough(result) or not layers:
        return result, []
    logger.info('measuring the harm of %d layers', len(layers))
    layers.sort(key=harm, reverse=True)
    bad, good, result = 0, 1, None
    while result is None:
        tried = attempt(layers[:good])
        if is_enough(tried) or good == len(layers):
            result = tried
        else:
            bad, good = good, min(2 * good, len(layers))
    while good - bad > 1:
        middle = (bad + good) // 2
        tried = attempt(layers[:middle])
        if is_enough(tried):
            good, result = middle, tried
        else:
            bad = middle
    return result, layers[:good]
