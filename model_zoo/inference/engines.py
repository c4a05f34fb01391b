"""The choice of an engine, based on measured speeds."""

import functools
import importlib.util
import logging
import math
import os
import threading
from typing import Any, NamedTuple

import numpy as np

from ..environment import cpu_flags
from ..errors import InputError, MissingExtraError, UnknownNameError
from ..generation import GenerationMixin
from ..util.choices import ENGINES
from ..util.reading import read_json
from .engine import Engine, MXNetEngine
from .onnx_engine import (
    OnnxEngine,
    OnnxGenerationEngine,
    OnnxRuntimeEngine,
    OpenVINOEngine,
    OpenVINOGenerationEngine,
    OpenVINOInt8Engine,
)

__all__ = ['AutoEngine', 'Choice', 'choices', 'has_engine', 'processor']

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
#: How many tokens MXNet runs through a model of any size while another engine's file is made, or
#: while a file that is there is loaded. A step of generation reads as many bytes as a small batch.
_TOKENS_OF_EXPORT, _TOKENS_OF_LOADING, _TOKENS_OF_STEP = 40_000, 5_000, 30
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
    is_installed: bool
    cure: str


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
    ranked = []
    for engine in {name: None for row in rows for name in row}:
        ratios = [
            row.get('mxnet', next(iter(row.values()))) / row[engine]
            for row in rows
            if engine in row
        ]
        ranked.append(
            Choice(
                engine,
                math.exp(sum(map(math.log, ratios)) / len(ratios)),
                has_engine(engine),
                ''
                if engine == 'mxnet'
                else f"pip install 'gluon-transformer-zoo[{_EXTRAS[engine]}]'",
            )
        )
    return sorted(ranked, key=lambda choice: -choice.speed)


def make_engine(block, engine='mxnet', precision='float32', ctx=None):
    """The engine of a block.

    Parameters
    ----------
    block : ZooBlock
        In float32. MXNet casts it to the precision.
    engine : str
        One of `ENGINES`. 'auto' never changes the precision; see `AutoEngine`.
    precision : str
        'float32'; 'bfloat16' with MXNet or OpenVINO; 'float16' with MXNet; 'int8' with ONNX
        Runtime, or with OpenVINO, which calibrates it on the first texts.
    ctx : mx.Context, optional
        Where MXNet runs; the others run on the CPU.

    The folder of an exported ONNX file has a precision of its own. ONNX Runtime runs it, or, if
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
            return AutoEngine(block, precision, ctx)
        # OpenVINO is faster for batches of one shape, and slower for texts of any lengths
        engine = 'onnxruntime' if has_engine('onnxruntime') else 'mxnet'
    if precision == 'int8' and engine == 'mxnet':
        raise InputError(
            "MXNet's INT8 needs calibration: quantize the model first (only_calibration), or take "
            "engine='onnxruntime' or 'openvino'"
        )
    if precision not in PRECISIONS[engine]:
        able = [name for name in PRECISIONS if precision in PRECISIONS[name]]
        hint = f'; {able[0]} does that: engine={able[0]!r}' if able else ''
        raise InputError(
            f'{engine} computes in {" or ".join(PRECISIONS[engine])}, not {precision}{hint}'
        )
    is_writer = isinstance(block, GenerationMixin)
    if engine == 'mxnet':
        _tell_of_faster(precision, 'generation' if is_writer else 'forward')
        return MXNetEngine(block, ctx, precision)
    if not has_engine(engine):
        raise MissingExtraError.of(engine, _EXTRAS[engine])
    if engine == 'openvino' and precision == 'int8':
        return OpenVINOInt8Engine(block)
    return _CLASSES[engine][is_writer].of(block, precision)


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
    made = _CLASSES[engine][is_writer](block.onnx_file, precision, **options)
    return _SentenceEngine(made) if made.outputs == ['sentence_embedding'] else made


class _SentenceEngine(Engine):
    """Runs a file that computes vectors of texts."""

    pools = True

    def __init__(self, engine):
        super().__init__()
        self.name, self._engine = engine.name, engine

    def run(self, words, token_types, valid_length):
        vectors = self._engine.run(words, token_types, valid_length)
        return [np.expand_dims(vector, 1) for vector in vectors]


@functools.cache  # once in a process
def _tell_of_faster(precision, work):
    for choice in choices(precision, work)[:1]:
        if choice.speed >= _LEAST_GAIN:
            logger.info(
                f"engine={choice.engine!r} is {choice.speed:.1f} times as fast as 'mxnet' in "
                f'{precision} here{"" if choice.is_installed else f": {choice.cure}"}'
            )


class AutoEngine(Engine):
    """MXNet at first, and a faster engine once the switch pays off.

    A table of measured speeds, by precision and processor, says which engines are faster. Exporting
    a model's ONNX file takes as long as computing a few thousand tokens, so few texts stay with
    MXNet. Models without an ONNX file also stay, with one line in the log.
    """

    def __init__(self, block, precision, ctx=None):
        if precision not in PRECISIONS['mxnet']:
            raise InputError(f'no engine computes in {precision}')
        self._engine = MXNetEngine(block, ctx, precision)
        self._block, self._precision = block, precision
        self._tokens, self._changing = 0, threading.Lock()
        is_on_cpu = ctx is None or ctx.device_type == 'cpu'
        work = 'generation' if isinstance(block, GenerationMixin) else 'forward'
        self._better = next(
            (
                choice
                for choice in choices(precision, work)
                if choice.is_installed and choice.speed >= _LEAST_GAIN and is_on_cpu
            ),
            None,
        )
        self._has_file = None  # not looked yet

    @property
    def name(self):
        """Name of the engine that runs now."""
        return self._engine.name

    @property
    def lock(self):
        return self._engine.lock

    def run(self, words, token_types, valid_length):
        self._count(words.size)
        return self._engine.run(words, token_types, valid_length)

    def settle(self):
        """Switch to the faster engine now, and return it, as a server does for each model."""
        with self._changing:
            if self._better is None:
                return self._engine
            before, better, self._better = self._engine, self._better, None
            with before.lock:
                try:
                    self._block.cast('float32')
                    self._engine = make_engine(self._block, better.engine, self._precision)
                except Exception as error:  # whatever it is, MXNet does the work
                    logger.warning('%s cannot run this model, MXNet does: %s', better.engine, error)
                finally:
                    self._block.cast(self._precision)
        return self._engine

    def _count(self, tokens):
        """Count computed tokens, and switch the engine as soon as that pays off."""
        self._tokens += tokens
        if self._better is None:
            return
        saved = self._tokens * (1 - 1 / self._better.speed)
        if self._has_file is None and saved > _TOKENS_OF_LOADING:
            self._has_file = os.path.exists(OnnxEngine.file_of(self._block, self._precision))
        if saved > _TOKENS_OF_EXPORT or (self._has_file and saved > _TOKENS_OF_LOADING):
            self.settle()

    # -- what `model_zoo.generation.generate` uses of a language model ----------------------------

    @property
    def language_model(self):
        return self

    @property
    def context_length(self):
        return self._block.context_length

    def collect_params(self):
        """The block's."""
        return self._block.collect_params()

    def start(self, words, valid_length, capacity):
        """Run the prompts; see the block's method."""
        self._count(words.size)
        model = self._engine.language_model
        scores, state = model.start(words, valid_length, capacity)
        return scores, _State(model, state)

    def step(self, tokens, state):
        """Add one token to each row; see the block's method."""
        self._tokens += _TOKENS_OF_STEP  # a text stays with its first engine
        scores, after = state.model.step(tokens, state.state)
        return scores, _State(state.model, after)


class _State(NamedTuple):
    """A model and its state."""

    model: Any
    state: Any

    def select(self, rows):
        return _State(self.model, self.state.select(rows))
