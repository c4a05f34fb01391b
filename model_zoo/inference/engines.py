"""The choice of an engine."""

import importlib.util
import itertools
import logging

from ..errors import InputError, MissingExtraError, UnknownNameError
from ..generation import GenerationMixin
from ..util.choices import ENGINES
from . import onnx_engine
from .mxnet_engine import MXNetEngine

__all__ = ['FASTEST', 'is_installed']

logger = logging.getLogger(__name__)

#: precision -> the engines that compute in it, the fastest first (docs/benchmarks.rst); 'auto'
#: takes none that stands behind MXNet
FASTEST = {
    'float32': ('openvino', 'onnxruntime', 'mxnet'),
    'bfloat16': ('openvino', 'mxnet'),
    'float16': ('mxnet',),
    'int8': ('onnxruntime',),
}
#: engine that runs a block -> its class, called with the block, `ctx` and the precision
_OF_BLOCKS = {'mxnet': MXNetEngine}
#: engine that runs an ONNX file -> its class for batches, and the one that generates
_OF_FILES = {
    'onnxruntime': (onnx_engine.OnnxRuntimeEngine, onnx_engine.OnnxGenerationEngine),
    'openvino': (onnx_engine.OpenVINOEngine, onnx_engine.OpenVINOGenerationEngine),
}


def is_installed(engine):
    """Return whether an engine's libraries are installed."""
    return engine in _OF_BLOCKS or all(map(importlib.util.find_spec, _OF_FILES[engine][0].packages))


def make_engine(block, engine='mxnet', precision='float32', ctx=None):
    """The engine of a block.

    Parameters
    ----------
    block : ZooBlock
        In float32. MXNet casts it to the precision.
    engine : str
        One of `ENGINES`. 'auto' is the fastest installed one of `FASTEST`. Its ONNX file is made
        first, if the cache lacks it, which takes a while. If it can't run the model, the log says
        so, and the next one does.
    precision : str
        'float32'; 'bfloat16' with MXNet or OpenVINO; 'float16' with MXNet; 'int8' with ONNX
        Runtime.
    ctx : mx.Context, or a list of one, optional
        Where MXNet runs; the others run on the CPU.

    The folder of an exported ONNX file has its own precision. ONNX Runtime runs the file, or, if
    asked for, OpenVINO.

    Raises
    ------
    UnknownNameError
        If there is no such engine.
    InputError
        If the engine can't compute in the precision or can't run the block.
    MissingExtraError
        If the engine isn't installed.
    """
    UnknownNameError.check('engine', engine, ENGINES)
    if isinstance(ctx, (list, tuple)):
        if len(ctx) != 1:
            raise InputError(f'has {len(ctx)} devices: a model runs on one', field='ctx')
        (ctx,) = ctx
    able = FASTEST.get(precision, ())
    if block.onnx_file is not None:
        if engine not in _OF_FILES:
            engine = 'onnxruntime' if is_installed('onnxruntime') else 'openvino'
        if precision != 'float32' and (engine, precision) != ('openvino', 'bfloat16'):
            raise InputError(f'{block.onnx_file!r} cannot change to {precision}: export it again')
    elif engine == 'auto':
        engine = 'mxnet' if 'mxnet' in able or not able else able[-1]
        is_on_cpu = ctx is None or ctx.device_type == 'cpu'
        for name in itertools.takewhile(engine.__ne__, able) if is_on_cpu else ():
            if is_installed(name):
                try:
                    return make_engine(block, name, precision)
                except Exception as error:  # the libraries' own have no common base
                    logger.warning('%s cannot run this model: %s', name, error)
    if engine not in able:
        hint = f'; {able[0]} does that: engine={able[0]!r}' if able else ''
        raise InputError(f"{engine} doesn't compute in {precision}{hint}")
    if engine in _OF_BLOCKS:
        return _OF_BLOCKS[engine](block, ctx, precision)
    is_writer = isinstance(block, GenerationMixin)
    engine_class = _OF_FILES[engine][is_writer]
    MissingExtraError.check(engine_class.extra, *engine_class.packages)
    if is_writer and not block.generates_in_onnx:
        raise InputError(f"{engine} doesn't generate with {type(block).__name__}: engine='mxnet'")
    return engine_class.of(block, precision)
