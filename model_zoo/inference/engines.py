"""The choice of an engine."""

import importlib.util

from ..errors import InputError, MissingExtraError, UnknownNameError
from ..generation import GenerationMixin
from .engine import MXNetEngine
from .onnx_engine import OnnxRuntimeEngine
from .onnx_generation import OnnxGenerationEngine

__all__ = ['ENGINES', 'has_onnxruntime', 'make_engine']

ONNX_PRECISIONS = ('float32', 'int8')
#: what runs a model; 'auto' is ONNX Runtime where it is installed and can do it, else MXNet
ENGINES = ('mxnet', 'onnxruntime', 'auto')


def has_onnxruntime():
    """Whether the extra ``onnx`` is installed."""
    return all(importlib.util.find_spec(name) for name in ('onnx', 'onnxruntime'))


def make_engine(block, engine='mxnet', precision='float32', ctx=None):
    """The engine of a block.

    Parameters
    ----------
    block : ZooBlock
        In float32. With MXNet it is cast to the precision.
    engine : str
        One of `ENGINES`. 'auto' never changes the precision.
    precision : str
        'float32'; 'bfloat16' or 'float16' with MXNet; 'int8' with ONNX Runtime.
    ctx : mx.Context, optional
        Where MXNet runs; ONNX Runtime runs on the CPU.

    Returns
    -------
    Engine

    Raises
    ------
    UnknownNameError
        If there is no such engine.
    InputError
        If the engine can't compute in the precision, or not run the block.
    MissingExtraError
        If ONNX Runtime isn't installed.
    """
    if engine not in ENGINES:
        raise UnknownNameError.of('engine', engine, ENGINES)
    if engine == 'auto':
        is_able = precision in ONNX_PRECISIONS and (ctx is None or ctx.device_type == 'cpu')
        if isinstance(block, GenerationMixin):
            is_able = is_able and block.generates_in_onnx
        engine = 'onnxruntime' if is_able and has_onnxruntime() else 'mxnet'
    if engine == 'onnxruntime':
        if precision not in ONNX_PRECISIONS:
            raise InputError(
                f"ONNX Runtime computes in {' or '.join(ONNX_PRECISIONS)}, not {precision}; "
                "MXNet does that: engine='mxnet'"
            )
        if not has_onnxruntime():
            raise MissingExtraError.of('onnxruntime', 'onnx')
        kind = OnnxGenerationEngine if isinstance(block, GenerationMixin) else OnnxRuntimeEngine
        return kind.of(block, precision)
    if precision == 'int8':
        raise InputError(
            "MXNet's INT8 needs calibration: quantize the model first (only_calibration), or take "
            "engine='onnxruntime'"
        )
    if precision != block.precision:
        block.cast(precision)
    return MXNetEngine(block, ctx)
