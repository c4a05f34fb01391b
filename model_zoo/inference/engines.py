"""The choice of an engine, based on measured speeds."""

import functools
import importlib.util
import logging
import math
import os
from typing import NamedTuple

from ..environment import cpu_flags
from ..errors import InputError, MissingExtraError, UnknownNameError
from ..generation import GenerationMixin
from ..util.choices import ENGINES
from ..util.reading import read_json
from .mxnet_engine import MXNetEngine
from .onnx_engine import (
    OnnxGenerationEngine,
    OnnxRuntimeEngine,
    OpenVINOEngine,
    OpenVINOGenerationEngine,
    OpenVINOInt8Engine,
)

__all__ = ['Choice', 'choices', 'has_engine', 'processor']

logger = logging.getLogger(__name__)

#: precisions of each engine
PRECISIONS = {
    'mxnet': ('float32', 'bfloat16', 'float16'),
    'onnxruntime': ('float32', 'int8'),
    'openvino': ('float32', 'bfloat16', 'int8'),
}
_LIBRARIES = {
    'mxnet': (),
    'onnxruntime': ('onnx', 'onnxruntime'),
    'openvino': ('onnx', 'onnxruntime', 'openvino'),
}
_EXTRAS = {'onnxruntime': 'onnx', 'openvino': 'openvino'}
#: the figures that scripts/benchmark/compare.py writes
SPEED_FILE = os.path.join(os.path.dirname(__file__), 'speed.json')
_LEAST_GAIN = 1.1
#: processors in the figures; a figure that is missing for one is taken from the next
_PROCESSORS = ('amx', 'avx512', 'avx2')


class Choice(NamedTuple):
    """An engine for a precision on this kind of processor.

    Attributes
    ----------
    engine : str
    speed : float
        Speed relative to MXNet; in INT8, relative to the first engine of the table.
    """

    engine: str
    speed: float

    @property
    def is_installed(self):
        return has_engine(self.engine)

    @property
    def cure(self):
        """The command that installs it."""
        return f"pip install 'gluon-transformer-zoo[{_EXTRAS[self.engine]}]'"


def has_engine(engine):
    """Whether an engine's libraries are installed."""
    return all(importlib.util.find_spec(name) for name in _LIBRARIES[engine])


def processor():
    """The name of this kind of processor in the table of speeds."""
    known = cpu_flags()
    flags = ('amx_bf16', 'avx512_vnni')
    return next((name for flag, name in zip(flags, _PROCESSORS) if flag in known), _PROCESSORS[-1])


@functools.cache
def _figures():
    return read_json(SPEED_FILE)


def choices(precision, work='forward'):
    """Engines for a precision, fastest first on this kind of processor."""
    rows = []
    for level in _PROCESSORS[_PROCESSORS.index(processor()) :]:
        cases = _figures()['processors'].get(level, {}).get('ours', {}).get(work, {})
        rows = rows or [
            {name.split()[0]: ms for name, ms in case.items() if name.split()[1] == precision}
            for case in cases.values()
        ]
        is_of_mxnet = precision in PRECISIONS['mxnet']
        rows = [row for row in rows if len(row) > 1 and (not is_of_mxnet or 'mxnet' in row)]
    logs = {}
    for row in rows:
        first = row.get('mxnet', next(iter(row.values())))
        for engine, ms in row.items():
            logs.setdefault(engine, []).append(math.log(first / ms))
    ranked = [Choice(engine, math.exp(sum(each) / len(each))) for engine, each in logs.items()]
    return sorted(ranked, key=lambda choice: -choice.speed)


def make_engine(block, engine='mxnet', precision='float32', ctx=None):
    """The engine of a block.

    Parameters
    ----------
    block : ZooBlock
        In float32. MXNet casts it to the precision.
    engine : str
        One of `ENGINES`. 'auto' is the fastest installed one on this kind of processor, by a table
        of measured speeds. Its ONNX file is made first, if the cache lacks it, which takes a while.
        If it can't run the model, the log says so and MXNet does.
    precision : str
        'float32'; 'bfloat16' with MXNet or OpenVINO; 'float16' with MXNet; 'int8' with ONNX
        Runtime, or with OpenVINO, which calibrates it on the first texts.
    ctx : mx.Context, optional
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
    if block.onnx_file is not None:
        return _of_file(block, engine, precision)
    if engine == 'auto':
        if precision != 'int8':
            return _fastest(block, precision, ctx)
        # OpenVINO is faster for batches of one shape, and slower for texts of any lengths
        engine = 'onnxruntime' if has_engine('onnxruntime') else 'mxnet'
    if precision not in PRECISIONS[engine]:
        able = [name for name in PRECISIONS if precision in PRECISIONS[name]]
        hint = f'; {able[0]} does that: engine={able[0]!r}' if able else ''
        raise InputError(
            f'{engine} computes in {" or ".join(PRECISIONS[engine])}, not {precision}{hint}'
        )
    if engine == 'mxnet':
        return MXNetEngine(block, ctx, precision)
    if not has_engine(engine):
        raise MissingExtraError.of(engine, _EXTRAS[engine])
    if engine == 'openvino' and precision == 'int8':
        return OpenVINOInt8Engine(block)
    return _CLASSES[engine][isinstance(block, GenerationMixin)].of(block, precision)


_CLASSES = {
    'onnxruntime': (OnnxRuntimeEngine, OnnxGenerationEngine),
    'openvino': (OpenVINOEngine, OpenVINOGenerationEngine),
}


def _of_file(block, engine, precision):
    """The engine of an exported ONNX file."""
    if engine not in _CLASSES:
        engine = 'onnxruntime' if has_engine('onnxruntime') else 'openvino'
    if precision != 'float32' and (engine, precision) != ('openvino', 'bfloat16'):
        raise InputError(
            f'{block.onnx_file!r} has the precision that it was exported with, not {precision}: '
            'export it again'
        )
    if not has_engine(engine):
        raise MissingExtraError.of(engine, _EXTRAS[engine])
    is_writer = isinstance(block, GenerationMixin)
    options = {'writer': block} if is_writer else {}
    return _CLASSES[engine][is_writer](block.onnx_file, precision, **options)


def _fastest(block, precision, ctx):
    """The fastest installed engine that can run a block."""
    work = 'generation' if isinstance(block, GenerationMixin) else 'forward'
    is_on_cpu = ctx is None or ctx.device_type == 'cpu'
    for choice in choices(precision, work) if is_on_cpu else ():
        if choice.speed >= _LEAST_GAIN and choice.is_installed:
            try:
                return make_engine(block, choice.engine, precision)
            except Exception as error:  # the libraries' own have no common base
                logger.warning('%s cannot run this model: %s', choice.engine, error)
    return make_engine(block, 'mxnet', precision, ctx)
