"""INT8 by MXNet: a block's matrix products in integers, with scales that calibration finds.

Source: ``mxnet.contrib.quantization``, and GluonNLP 0.10's ``finetune_classifier.py
--only_calibration``, whose modes and files these are.
"""

import ctypes
import json
import logging
import os
import tempfile

import mxnet as mx

from ..errors import InputError, UnknownNameError

__all__ = ['CALIBRATION_MODES', 'LAYER_KINDS', 'QUANTIZED_DTYPES', 'quantize']

logger = logging.getLogger(__name__)

#: how the ranges of activations are found: at each call; the smallest and largest ones seen; those
#: with the least divergence; the smallest and largest ones, with outliers clipped
CALIBRATION_MODES = ('none', 'naive', 'entropy', 'customize')
#: parts of the names of layers, by what they compute: products of attention and projections
LAYER_KINDS = ('selfatt', 'qkv', 'proj', 'ffn_1', 'ffn_2', 'pooler', 'classifier')
#: of activations; 'auto' chooses by their ranges
QUANTIZED_DTYPES = ('auto', 'int8', 'uint8')
_BACKEND = 'MKLDNN_QUANTIZE'
_INPUTS = ('data0', 'data1', 'data2')


class _ClippedRanges:
    """The collector of mode 'customize': a GELU's outputs over 10 and a LayerNorm's under -50 count
    as these (``BertLayerCollector`` of GluonNLP 0.10)."""

    largest_gelu, smallest_norm = 10.0, -50.0

    def __init__(self):
        self.min_max_dict = {}

    def collect(self, name, handle):
        name = name.decode() if isinstance(name, bytes) else name
        if not name.endswith('_output'):
            return
        handle = ctypes.cast(handle, mx.base.NDArrayHandle)
        array = mx.nd.NDArray(handle, writable=False)
        low, high = float(array.min().asscalar()), float(array.max().asscalar())
        if 'eltwise' in name or 'gelu' in name:
            high = min(high, self.largest_gelu)
        elif 'layernorm' in name:
            low = max(low, self.smallest_norm)
        old = self.min_max_dict.get(name, (low, high))
        self.min_max_dict[name] = min(low, old[0]), max(high, old[1])


def quantize(block, batches, mode='customize', dtype='auto', exclude=()):
    """A block as a graph whose matrix products are computed in integers of 8 bits.

    Each output of a layer has a scale of its own, except in mode 'none'. With mode 'none' or dtype
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
    exclude : sequence of str
        Parts of names of layers, or of their parameters, that stay in float32, such as 'ffn_2'; see
        `LAYER_KINDS`.

    Returns
    -------
    mxnet.gluon.SymbolBlock
        With the inputs data0, data1 and data2. Its ``export`` writes two files that
        ``SymbolBlock.imports`` reads.

    Raises
    ------
    UnknownNameError
        If there is no such mode or dtype.
    InputError
        If there are no batches.
    """
    from mxnet.contrib import quantization  # loads scipy.stats

    if mode not in CALIBRATION_MODES:
        raise UnknownNameError.of('calib_mode', mode, CALIBRATION_MODES)
    if dtype not in QUANTIZED_DTYPES:
        raise UnknownNameError.of('quantized_dtype', dtype, QUANTIZED_DTYPES)
    batches = iter(batches)
    first = next(batches, None)
    if first is None:
        raise InputError('there is no text to calibrate the model with')
    symbol, parameters, auxiliary = _trace(block, first)
    symbol = symbol.get_backend_symbol(_BACKEND)
    if mode == 'none' or dtype == 'int8':  # MXNet can't agree on the type of their inputs then
        exclude = (*exclude, 'selfatt')
    quantized, weights, auxiliary, collector = quantization.quantize_graph(
        symbol,
        parameters,
        auxiliary,
        excluded_sym_names=_named(symbol, exclude),
        excluded_op_names=[],
        calib_mode=mode,
        quantized_dtype=dtype,
        quantize_mode='smart',
        # a scale for each output of a layer needs ranges that are known before
        quantize_granularity='tensor-wise' if mode == 'none' else 'channel-wise',
        LayerOutputCollector=_ClippedRanges(),
    )
    if mode != 'none':
        count = _calibrate(symbol, parameters, collector, [first, *batches])
        logger.info('calibrated on %d batches', count)
        quantized, weights, auxiliary = quantization.calib_graph(
            quantized, parameters, auxiliary, collector, calib_mode=mode, quantized_dtype=dtype
        )
    return _as_block(quantized.get_backend_symbol(_BACKEND), weights)


def _named(symbol, parts):
    """Names of the nodes that are called so, or whose parameters are."""
    nodes = json.loads(symbol.tojson())['nodes']
    return [
        node['name']
        for node in nodes
        for names in [[node['name'], *(nodes[place[0]]['name'] for place in node['inputs'])]]
        if node['op'] != 'null' and any(part in name for part in parts for name in names)
    ]


def _trace(block, batch):
    """Symbol and parameters of a block."""
    block.hybridize()
    block(*batch)
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, 'float')
        block.export(prefix)
        return mx.model.load_checkpoint(prefix, 0)


def _calibrate(symbol, parameters, collector, batches):
    """Show the collector what the layers give for the batches; returns their number."""
    for batch in batches:
        inputs = dict(zip(_INPUTS, batch))
        executor = symbol.bind(mx.cpu(), {**parameters, **inputs}, grad_req='null')
        executor.set_monitor_callback(collector.collect, monitor_all=True)
        for output in executor.forward(is_train=False):
            output.wait_to_read()
    return len(batches)


def _as_block(symbol, weights):
    inputs = [name for name in _INPUTS if name in symbol.list_inputs()]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'weights')
        mx.nd.save(path, {f'arg:{name}': array for name, array in weights.items()})
        symbol.save(f'{path}.json')
        return mx.gluon.SymbolBlock.imports(f'{path}.json', inputs, path)
