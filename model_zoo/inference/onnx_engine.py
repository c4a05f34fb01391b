"""ONNX Runtime and OpenVINO as engines: both run a block's ONNX file, also to continue texts."""

import abc
import hashlib
import json
import logging
import os
import sys
import threading
from typing import Any, NamedTuple

import filelock
import mxnet as mx
import numpy as np

from ..batches import Batch
from ..checkpoint.readers import check_sums, sums_path
from ..environment import used_processors
from ..errors import CheckpointError, InputError, reporting
from ..families import load_exporter
from ..pretrained import default_root
from ..util.arrays import check_shape
from ..util.files import make_writable_dir
from .mxnet_engine import Engine

__all__ = [
    'LEAST_TOKENS',
    'OnnxEngine',
    'OnnxGenerationEngine',
    'OnnxRuntimeEngine',
    'OpenVINOEngine',
    'OpenVINOGenerationEngine',
    'OpenVINOInt8Engine',
]

logger = logging.getLogger(__name__)

_LIBRARIES = ('onnx', 'onnxruntime')
_FORMAT = 2  # raised when the exporter writes other graphs


class OnnxEngine(Engine):
    """Runs an ONNX file with the inputs that `export.export_onnx` gives it."""

    library = None  #: its name in messages

    def __init__(self, path, precision='float32'):
        super().__init__()
        check_sums(sums_path(path))
        self.path, self.precision = path, precision
        problem = f'{self.library} cannot load {path!r}'
        # the libraries' own classes have no common base
        with reporting(problem, error_class=CheckpointError, errors=Exception):
            self.inputs, self.outputs = self._open()
        self.pools = self.outputs == ['sentence_embedding']

    @classmethod
    def of(cls, block, precision='float32', measures=None, **options):
        """The engine of a block, whose ONNX file is made unless it is in the cache."""
        path = cls.file_of(block, precision, measures is not None)
        folder, name = os.path.split(path)
        make_writable_dir(folder)
        with filelock.FileLock(os.path.join(folder, f'.{name}.lock')):
            if not os.path.exists(path):
                logger.info('making the ONNX file of this model, once')
                load_exporter().export_onnx(
                    block,
                    folder,
                    name.removesuffix('.onnx'),
                    block.fuses_in_onnx and measures is None,
                    precision if precision == 'int8' else 'float32',
                    measures,
                )
        return cls(path, precision, **options)

    @staticmethod
    def file_of(block, precision, is_static=False):
        """Return the path of a block's ONNX file in the cache, whether or not it exists."""
        from ..onnx import reduces_range

        variant = ['int8', is_static, reduces_range()] if precision == 'int8' else 'float32'
        return os.path.join(default_root(), 'engines', f'{_key(block, variant)}.onnx')

    def feed(self, words, token_types, valid_length):
        """The file's inputs by their names; see `run`."""
        mask = np.arange(words.shape[1]) < valid_length[:, None]
        given = {'input_ids': words, 'token_type_ids': token_types, 'attention_mask': mask}
        feed = {}
        for name, shape in self.inputs.items():
            array = given[name].astype(np.int64)
            # each choice is a separate text
            feed[name] = array if len(shape) == 2 else array[:, None]
        return feed

    def _as_states(self, outputs):
        """Return a text's vector like the state of its only token, if the file computes vectors."""
        return [np.expand_dims(array, 1) for array in outputs] if self.pools else outputs

    @abc.abstractmethod
    def _open(self):
        """Load the file; returns `inputs` and `outputs`."""


class OnnxRuntimeEngine(OnnxEngine):
    """Runs an ONNX file with ONNX Runtime; see `OnnxEngine`."""

    name, library = 'onnxruntime', 'ONNX Runtime'

    def _open(self):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = used_processors()
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(
            self.path, options, providers=['CPUExecutionProvider']
        )
        inputs = {tensor.name: tuple(tensor.shape) for tensor in self.session.get_inputs()}
        return inputs, [tensor.name for tensor in self.session.get_outputs()]

    def run(self, words, token_types, valid_length):
        feed = self.feed(words, token_types, valid_length)
        # several threads may run a session, but each run takes all processors
        with self.lock:
            return self._as_states(self.session.run(None, feed))


def _key(block, about):
    """A name for the file: of the weights, the configuration, and the versions."""
    import importlib.metadata  # slow to import

    digest = hashlib.blake2b(digest_size=16)
    versions = [importlib.metadata.version(name) for name in _LIBRARIES]
    about = [_FORMAT, type(block).__name__, block.config.to_dict(), about, versions]
    digest.update(json.dumps(about, sort_keys=True, default=str).encode())
    names = block._collect_params_with_prefix()  # these don't depend on what was made before
    for name in sorted(names):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(names[name].data().asnumpy()))
    return digest.hexdigest()


#: fewest tokens of the texts that INT8 is calibrated with
LEAST_TOKENS = 256
# by default OpenVINO computes float32 in bfloat16 where the processor has AMX, and keeps the keys
# and values of generation in 8 bits
_PRECISIONS = {'float32': 'f32', 'bfloat16': 'bf16', 'int8': 'f32'}


class OpenVINOEngine(OnnxEngine):
    """Runs an ONNX file with OpenVINO; see `OnnxEngine`.

    Compiled models are kept beside the file. Each calling thread has its own request. The first
    batch of a length takes longer than later ones, in INT8 four times as long, and keeps memory. So
    batches of bfloat16 and INT8 are padded to one of eight lengths between each two powers of 2.
    """

    name, library = 'openvino', 'OpenVINO'
    _most_tokens = 0  # the model's limit; 0 pads nothing

    def __init__(self, path, precision='float32'):
        self._local = threading.local()
        super().__init__(path, precision)
        wanted = _PRECISIONS[precision]
        if self.model.get_property('INFERENCE_PRECISION_HINT').get_type_name() != wanted:
            raise InputError(f'OpenVINO has no {precision} on this processor: take float32')

    @classmethod
    def of(cls, block, *args, **options):
        engine = super().of(block, *args, **options)
        if engine.precision != 'float32':  # float32 gains nothing by padding
            engine._most_tokens = block.base.context_length or sys.maxsize
        return engine

    def _open(self):
        import openvino

        return self._compile(
            openvino.Core(),
            {
                'INFERENCE_PRECISION_HINT': _PRECISIONS[self.precision],
                'KV_CACHE_PRECISION': _PRECISIONS[self.precision],
                'DYNAMIC_QUANTIZATION_GROUP_SIZE': '0',
                'INFERENCE_NUM_THREADS': used_processors(),
                'NUM_STREAMS': 1,
                'ENABLE_CPU_PINNING': False,
                # One folder a precision: with one for all, OpenVINO 2026.4 computes NaN in bfloat16
                # after the same file has been opened in float32.
                'CACHE_DIR': os.path.join(os.path.dirname(self.path), 'openvino', self.precision),
            },
        )

    def _compile(self, core, config):
        """Set `model`; returns `inputs` and `outputs`."""
        self.model = core.compile_model(self.path, 'CPU', config)
        return self._names(self.model)

    @staticmethod
    def _names(model):
        inputs = {
            tensor.node.friendly_name: tuple(
                size.get_length() if size.is_static else None for size in tensor.partial_shape
            )
            for tensor in model.inputs
        }
        # an output has several names of tensors, in no order
        return inputs, [tensor.node.friendly_name.split('/')[0] for tensor in model.outputs]

    def run(self, words, token_types, valid_length):
        if not hasattr(self._local, 'request'):
            self._local.request = self.model.create_infer_request()
        length = words.shape[1]
        step = max(1, 2 ** (length - 1).bit_length() // 16)
        more = [(0, 0), (0, max(0, min(-length % step, self._most_tokens - length)))]
        feed = self.feed(np.pad(words, more), np.pad(token_types, more), valid_length)
        outputs = self._local.request.infer(feed, share_inputs=True).values()  # copies
        return self._as_states(
            [array[_cut(tensor, length)] for array, tensor in zip(outputs, self.model.outputs)]
        )


def _cut(output, length):
    """The index that cuts off padding: the dynamic axes of an output, but the first, are tokens."""
    sizes = list(output.partial_shape)[1:]
    return (slice(None), *(slice(length if size.is_dynamic else None) for size in sizes))


class OpenVINOInt8Engine(Engine):
    """Products of 8 bits, whose ranges are found once with the first batch that is run.

    The calibrated file is kept in the cache, for later processes.
    """

    name = 'openvino'

    def __init__(self, block):
        super().__init__()
        if not block.fuses_in_onnx:
            raise InputError(
                f'OpenVINO has no INT8 for {type(block).__name__}, only for models of BERT with '
                "one text per example; engine='onnxruntime' has"
            )
        self._block, self._engine = block, None

    def run(self, words, token_types, valid_length):
        with self.lock:
            if self._engine is None:
                self._engine = self._open(words, token_types, valid_length)
                self._block = None
        return self._engine.run(words, token_types, valid_length)

    def _open(self, *arrays):
        tokens = int(arrays[-1].sum())
        is_calibrated = os.path.exists(OpenVINOEngine.file_of(self._block, 'int8', True))
        if tokens < LEAST_TOKENS and not is_calibrated:
            raise InputError(
                f"OpenVINO's INT8 is calibrated with the first texts, of {LEAST_TOKENS} tokens or "
                f'more, and these have {tokens}: give more texts at once, or take '
                "engine='onnxruntime', which finds the ranges of each batch"
            )
        batch = Batch(*(mx.nd.array(array, dtype=array.dtype) for array in arrays))
        measures = load_exporter().Measures([batch])
        return OpenVINOEngine.of(self._block, 'int8', measures)


#: beginnings of the names of inputs and outputs that hold the text before
_PAST, _PRESENT, _MEMORY = 'past_key_values', 'present', 'mems'


class _GenerationEngine(OnnxEngine):
    """Runs a language model's ONNX file, for `model_zoo.generation.generate`."""

    def __init__(self, path, precision, writer):
        super().__init__(path, precision)
        self.context_length = writer.context_length

    @classmethod
    def of(cls, block, precision='float32'):
        if not block.generates_in_onnx:
            raise InputError(
                f"{type(block).__name__} of this configuration doesn't generate with "
                f"{cls.library}; MXNet does that: engine='mxnet'"
            )
        return super().of(block, precision, writer=block)

    @property
    def language_model(self):
        return self

    def collect_params(self):
        """A parameter on the CPU, where the file is run."""
        parameter = mx.gluon.Parameter('cpu', shape=(1,))
        parameter.initialize()
        return {parameter.name: parameter}

    def run(self, words, token_types, valid_length):
        with self.lock:
            return [self._run_texts(words, valid_length)[0]]

    def start(self, words, valid_length, capacity):
        words, lengths = words.asnumpy(), valid_length.asnumpy().astype(np.int64)
        logits, past = self._run_texts(words, lengths)
        mask = np.arange(words.shape[1]) < lengths[:, None]
        scores = logits[np.arange(len(words)), lengths - 1]
        return mx.nd.array(scores), _State(past, mask.astype(np.int64), lengths)

    def step(self, tokens, state):
        check_shape('tokens', tokens, state.lengths.shape)
        ones = np.ones((len(state.lengths), 1), np.int64)
        mask = np.concatenate([state.mask, ones], axis=1)
        words = tokens.asnumpy().astype(np.int64)[:, None]
        logits, past = self._go_on(words, mask, state.lengths[:, None], ones[:, 0], state.past)
        return mx.nd.array(logits[:, 0]), _State(past, mask, state.lengths + 1)

    def _run_texts(self, words, lengths):
        """Scores of whole texts, padded on the right, and the past of the next call."""
        mask = np.arange(words.shape[1]) < lengths[:, None]
        positions = np.minimum(np.arange(words.shape[1]), lengths[:, None] - 1)
        return self._go_on(words, mask, positions, lengths, self._before(self._empty(len(words))))

    def _go_on(self, words, mask, positions, lengths, past):
        given = {
            'input_ids': words,
            'attention_mask': mask,
            'position_ids': positions,
            'valid_length': lengths,
        }
        feed = {
            name: np.ascontiguousarray(array.astype(np.int64))
            for name, array in given.items()
            if name in self.inputs
        }
        return self._compute(feed, past)

    def _empty(self, rows):
        """Return the past of a first call: no keys, and Transformer-XL's initial memory."""
        past = {}
        for name, shape in self.inputs.items():
            if name == f'{_MEMORY}_length':
                past[name] = np.full(rows, self.inputs[f'{_MEMORY}.0'][0], np.int64)
            elif name.startswith(_MEMORY):
                past[name] = np.zeros((shape[0], rows, shape[2]), np.float32)
            elif name.startswith(_PAST):
                past[name] = np.zeros((rows, shape[1], 0, shape[3]), np.float32)
        return past

    @abc.abstractmethod
    def _before(self, arrays):
        """The past for `_compute`, from arrays by their names; it has the method `select`."""

    @abc.abstractmethod
    def _compute(self, feed, past):
        """Scores, and the past of the next call."""


class OnnxGenerationEngine(_GenerationEngine, OnnxRuntimeEngine):
    """Continues texts with ONNX Runtime."""

    def _before(self, arrays):
        return _Values({name: _value(array) for name, array in arrays.items()})

    def _compute(self, feed, past):
        feed = {**past, **{name: _value(array) for name, array in feed.items()}}
        # keys, values and memories stay ONNX Runtime's, for they are large
        results = dict(zip(self.outputs, self.session.run_with_ort_values(self.outputs, feed)))
        scores = results.pop('logits').numpy()
        return scores, _Values({_input_of(name): value for name, value in results.items()})


class OpenVINOGenerationEngine(_GenerationEngine, OpenVINOEngine):
    """Continues texts with OpenVINO, which keeps keys, values and memories in its requests."""

    def _compile(self, core, config):
        from openvino._offline_transformations import apply_make_stateful_transformation

        model = core.read_model(self.path)
        inputs, outputs = self._names(model)
        # OpenVINO has no variables of integers
        kept = {
            _input_of(name): name for name in outputs if not name.endswith(('logits', 'length'))
        }
        apply_make_stateful_transformation(model, kept)
        self._variables = {name + output: name for name, output in kept.items()}
        self.model = core.compile_model(model, 'CPU', config)
        return inputs, self._names(self.model)[1]

    def _before(self, arrays):
        past = _Request(self.model.create_infer_request(), self._variables, {})
        return past.fill(arrays)

    def _compute(self, feed, past):
        feed = {**past.arrays, **feed}
        results = past.request.infer(feed, share_inputs=True).values()
        results = dict(zip(map(_input_of, self.outputs), results))
        return results.pop('logits'), past._replace(arrays=results)


def _input_of(name):
    """The name that an output has as the next call's input."""
    return name.replace(_PRESENT, _PAST).replace(f'new_{_MEMORY}', _MEMORY)


def _value(array):
    import onnxruntime

    return onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))


def _rows_of(name, array, rows):
    return array[:, rows] if name.startswith(f'{_MEMORY}.') else array[rows]


class _Values(dict):
    """ONNX Runtime's values by the names of inputs."""

    def select(self, rows):
        return _Values(
            {name: _value(_rows_of(name, value.numpy(), rows)) for name, value in self.items()}
        )


class _Request(NamedTuple):
    """A request of OpenVINO, the input of each variable, and the arrays of the other inputs."""

    request: Any
    inputs: dict
    arrays: dict

    def fill(self, arrays):
        """Set the variables to arrays by the names of inputs."""
        import openvino

        for variable in self.request.query_state():
            array = np.ascontiguousarray(arrays[self.inputs[variable.name]])
            variable.state = openvino.Tensor(array)
        inner = self.inputs.values()
        return self._replace(arrays={name: arrays[name] for name in arrays if name not in inner})

    def select(self, rows):
        arrays = {self.inputs[var.name]: var.state.data for var in self.request.query_state()}
        arrays.update(self.arrays)
        return self.fill({name: _rows_of(name, array, rows) for name, array in arrays.items()})


class _State(NamedTuple):
    """State of the texts that the next step needs."""

    past: Any
    mask: np.ndarray
    lengths: np.ndarray

    def select(self, rows):
        return _State(self.past.select(rows), self.mask[rows], self.lengths[rows])
