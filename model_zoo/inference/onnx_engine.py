"""ONNX Runtime and OpenVINO as engines: both run a block's ONNX file, also to continue texts."""

import contextlib
import importlib.metadata
import logging
import os
import pathlib
import shutil
import sys
import threading
from typing import Any, NamedTuple

import filelock
import mxnet as mx
import numpy as np

from ..checkpoint.readers import check_sums, sums_path
from ..environment import used_processors
from ..errors import CheckpointError, InputError, reporting
from ..families import load_exporter
from ..pretrained import default_root
from ..util.choices import ONNX_LIBRARIES
from ..util.files import make_writable_dir, remove_leftovers
from .mxnet_engine import Engine

__all__ = [
    'OnnxEngine',
    'OnnxGenerationEngine',
    'OnnxRuntimeEngine',
    'OpenVINOEngine',
    'OpenVINOGenerationEngine',
]

logger = logging.getLogger(__name__)

#: most bytes of the files that are kept for engines
MOST_BYTES = 20 * 10**9
#: other programs' names of an encoder's inputs -> names in this project
_GIVEN = {'segment_ids': 'token_type_ids', 'input_mask': 'attention_mask'}
_GIVEN.update((name, name) for name in ('input_ids', *_GIVEN.values(), 'position_ids'))
#: outputs of which a backbone's file needs one: states, or vectors of texts
_OF_BACKBONES = 'last_hidden_state', 'token_embeddings', 'sentence_embedding'


class Port(NamedTuple):
    """An input of a file: its sizes, not an int where any will do, and its type of NumPy."""

    shape: tuple
    dtype: str


class OnnxEngine(Engine):
    """Runs an ONNX file with inputs and outputs as `export.export_onnx` names them, or optimum.

    A subclass has ``_open()``, which loads the file, and returns its inputs, each a `Port` by its
    name, and the names of its outputs. With the `block` that the file stands for, `outputs` are
    the block's; a file that hasn't these, or has other inputs, is refused.
    """

    library = None  #: its name in messages
    extra = None  #: the extra that installs its packages
    packages = ()

    def __init__(self, path, precision='float32', block=None):
        super().__init__()
        check_sums(sums_path(path))
        self.path, self.precision = path, precision
        self.context_length = None if block is None else block.base.context_length
        problem = f'{self.library} cannot load {path!r}'
        # the libraries' own classes have no common base
        with reporting(problem, error_class=CheckpointError, errors=Exception):
            self.inputs, found = self._open()
        self.outputs = found if block is None else self._check(block, found)
        self.pools = self.outputs == ['sentence_embedding']
        self._first_position = getattr(block and block.config, 'first_position', 0)

    def _check(self, block, found):
        """Return the block's outputs; InputError if the file is for another task, or lacks axes."""
        for name, port in self.inputs.items():
            if name not in _GIVEN:
                raise InputError(f'{self.path!r} has an input {name!r}, which is unknown here')
            if any(isinstance(size, int) for size in port.shape):
                raise InputError(f'{name} of {self.path!r} has the fixed shape {port.shape}')
        wanted = load_exporter().onnx_graphs.output_names(block)
        if {*wanted} <= {*found}:
            return wanted
        of_backbone = [name for name in _OF_BACKBONES if name in found]
        if block is block.base and of_backbone:
            return of_backbone[:1]
        names = f'{", ".join(found)}; {type(block).__name__} has {", ".join(wanted)}'
        raise InputError(f'{self.path!r} has the outputs {names}: is it for another task?')

    @classmethod
    def of(cls, block, precision='float32'):
        """The engine of a block, whose ONNX file is made unless it has one, or the cache.

        A block with a graph for short texts has a file for them, too.
        """
        if block.onnx_file:
            return cls(block.onnx_file, precision, block)
        if not block.short_length:
            return cls._made(block, precision)
        with block.for_short_texts():
            short = cls._made(block, precision)
        return EngineByLength(block.short_length, short, lambda: cls._made(block, precision))

    @classmethod
    def _made(cls, block, precision):
        path = _make_file(block, precision)
        try:
            return cls(path, precision, block)
        except CheckpointError as error:
            logger.warning('%s; it is made anew', error)
            for name in (path, sums_path(path)):
                pathlib.Path(name).unlink(missing_ok=True)  # another process may do the same
            shutil.rmtree(os.path.join(os.path.dirname(path), 'openvino'), ignore_errors=True)
        return cls(_make_file(block, precision), precision, block)

    def feed(self, words, token_types, valid_length):
        """The file's inputs by their names; see `run`."""
        places = np.broadcast_to(np.arange(words.shape[1]), words.shape)
        given = {'input_ids': words, 'token_type_ids': token_types}
        given['attention_mask'] = places < valid_length[:, None]
        given['position_ids'] = places + self._first_position
        feed = {}
        for name, port in self.inputs.items():
            array = given[_GIVEN[name]].astype(port.dtype)
            # each choice is a separate text
            feed[name] = array[:, None] if len(port.shape) == 3 else array
        return feed

    def _as_states(self, outputs):
        """Return a text's vector like the state of its only token, if the file computes vectors."""
        outputs = [np.asarray(array, np.float32) for array in outputs]
        return [np.expand_dims(array, 1) for array in outputs] if self.pools else outputs


class EngineByLength(Engine):
    """Runs short texts with one engine; the first longer one opens another, for these."""

    def __init__(self, length, short, open_long):
        super().__init__()
        self.name, self.path = short.name, short.path
        self._length, self._short, self._open_long, self._long = length, short, open_long, None

    def run(self, words, token_types, valid_length):
        engine = self._short
        if words.shape[1] > self._length:
            with self.lock:
                self._long = self._long or self._open_long()
            engine = self._long
        return engine.run(words, token_types, valid_length)


def _make_file(block, precision):
    """Return the path of a block's ONNX file in the cache, named after what it is made from."""
    from ..onnx import reduces_range

    precision, exporter = precision if precision == 'int8' else 'float32', load_exporter()
    versions = [importlib.metadata.version(name) for name in ('onnx', 'onnxruntime')]
    about = [precision, precision == 'int8' and reduces_range(), block.fuses_in_onnx, *versions]
    name = exporter.onnx_graphs.digest_of(block, about)
    folder = os.path.join(default_root(), 'engines')
    path = os.path.join(make_writable_dir(folder), f'{name}.onnx')
    with filelock.FileLock(os.path.join(folder, f'.{name}.onnx.lock')):
        remove_leftovers(folder)
        if os.path.exists(path):
            with contextlib.suppress(OSError):  # another user's file
                os.utime(path)  # it was used
        else:
            logger.info('making the ONNX file of this model, once')
            exporter.export_onnx(block, folder, name, block.fuses_in_onnx, precision)
            _evict(pathlib.Path(folder), path)
    return path


def _evict(folder, newest):
    """Remove the files of the cache that weren't used for the longest time, above its limit."""
    files = [path for path in folder.rglob('[!.]*') if path.is_file()]
    used = {path: path.stat() for path in files if not str(path).startswith(newest)}
    size = os.path.getsize(newest) + sum(state.st_size for state in used.values())
    for path, state in sorted(used.items(), key=lambda item: item[1].st_mtime):
        if size > MOST_BYTES:
            path.unlink(missing_ok=True)
            size -= state.st_size


def _dtype(kind):
    """NumPy's type of ONNX Runtime's, such as ``tensor(int64)``; its float is 32 bits long."""
    kind = kind[len('tensor(') : -1]
    return np.dtype('float32' if kind == 'float' else kind)


class OnnxRuntimeEngine(OnnxEngine):
    """Runs an ONNX file with ONNX Runtime; see `OnnxEngine`."""

    name, library = 'onnxruntime', 'ONNX Runtime'
    extra, packages = 'onnx', ONNX_LIBRARIES

    def _open(self):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = used_processors()
        options.log_severity_level = 3
        providers = ['CPUExecutionProvider']
        self.session = onnxruntime.InferenceSession(self.path, options, providers=providers)
        inputs = self.session.get_inputs()
        ports = {each.name: Port(tuple(each.shape), _dtype(each.type)) for each in inputs}
        return ports, [tensor.name for tensor in self.session.get_outputs()]

    def run(self, words, token_types, valid_length):
        feed = self.feed(words, token_types, valid_length)
        # several threads may run a session, but each run takes all processors
        with self.lock:
            return self._as_states(self.session.run(self.outputs, feed))


# by default OpenVINO computes float32 in bfloat16 where the processor has AMX, and keeps the keys
# and values of generation in 8 bits
_PRECISIONS = {'float32': 'f32', 'bfloat16': 'bf16'}


class OpenVINOEngine(OnnxEngine):
    """Runs an ONNX file with OpenVINO; see `OnnxEngine`.

    Compiled models are kept beside the file. Each calling thread has its own request. The first
    batch of a length takes longer than later ones, and keeps memory. So batches of bfloat16 are
    padded to one of eight lengths between each two powers of 2; float32 gains nothing by this.
    """

    name, library = 'openvino', 'OpenVINO'
    extra, packages = 'openvino', (*ONNX_LIBRARIES, 'openvino')

    def __init__(self, path, precision='float32', block=None):
        self._local = threading.local()
        super().__init__(path, precision, block)
        wanted = _PRECISIONS[precision]
        if self.model.get_property('INFERENCE_PRECISION_HINT').get_type_name() != wanted:
            raise InputError(f'OpenVINO has no {precision} on this processor: take float32')

    def _open(self):
        sys.modules.setdefault('openvino_telemetry', None)  # it would report the import to Intel
        import openvino

        config = {
            'INFERENCE_PRECISION_HINT': _PRECISIONS[self.precision],
            'KV_CACHE_PRECISION': _PRECISIONS[self.precision],
            'DYNAMIC_QUANTIZATION_GROUP_SIZE': '0',
            'INFERENCE_NUM_THREADS': used_processors(),
            'NUM_STREAMS': 1,
            'ENABLE_CPU_PINNING': False,
            # One folder a precision: with one for all, OpenVINO 2026.4 computes NaN in bfloat16
            # after the same file has been opened in float32.
            'CACHE_DIR': os.path.join(os.path.dirname(self.path), 'openvino', self.precision),
        }
        self.model, inputs = self._compile(openvino.Core(), config)
        return inputs, _names(self.model.outputs)

    def _compile(self, core, config):
        """Return the compiled model, and the file's inputs by their names."""
        model = core.compile_model(self.path, 'CPU', config)
        return model, _ports(model.inputs)

    def run(self, words, token_types, valid_length):
        if not hasattr(self._local, 'request'):
            self._local.request = self.model.create_infer_request()
        length, padding = words.shape[1], 0
        if self.precision == 'bfloat16':
            step = max(1, 2 ** (length - 1).bit_length() // 16)
            room = (self.context_length or sys.maxsize) - length
            padding = max(0, min(-length % step, room))
        more = [(0, 0), (0, padding)]
        feed = self.feed(np.pad(words, more), np.pad(token_types, more), valid_length)
        outputs = self._local.request.infer(feed, share_inputs=True).values()  # copies
        tensors = dict(zip(_names(self.model.outputs), zip(outputs, self.model.outputs)))
        results = map(tensors.get, self.outputs)
        return self._as_states([array[_cut(tensor, length)] for array, tensor in results])


def _ports(tensors):
    ports = {}
    for tensor in tensors:
        sizes = (size.get_length() if size.is_static else None for size in tensor.partial_shape)
        ports[tensor.node.friendly_name] = Port(tuple(sizes), tensor.element_type.to_dtype())
    return ports


def _names(outputs):
    # an output has several names of tensors, in no order
    return [tensor.node.friendly_name.split('/')[0] for tensor in outputs]


def _cut(output, length):
    """The index that cuts off padding: the dynamic axes of an output, but the first, are tokens."""
    sizes = list(output.partial_shape)[1:]
    return (slice(None), *(slice(length if size.is_dynamic else None) for size in sizes))


def _input_of(name):
    """The name that an output has as the next call's input."""
    return name.replace('present', 'past_key_values')


class _GenerationEngine(OnnxEngine):
    """Runs a language model's ONNX file, for `model_zoo.generation.generate`."""

    def __init__(self, path, precision, block):
        super().__init__(path, precision, block)
        self.language_model = self

    def _check(self, block, found):
        pasts = {name for name in self.inputs if name.startswith('past_key_values.')}
        odd = {*self.inputs} - pasts - {'input_ids', 'attention_mask', 'position_ids'}
        if odd or not pasts or 'logits' not in found:
            names = ', '.join(sorted(odd or found))
            raise InputError(f'{self.path!r} cannot continue texts: it has {names}, and no past')
        return found

    def collect_params(self):
        """No parameter of MXNet's, so the texts are on the CPU."""
        return {}

    def run(self, words, token_types, valid_length):
        with self.lock:
            return [self._run_texts(words, valid_length)[0]]

    def start(self, words, valid_length, capacity):
        words, lengths = words.asnumpy(), valid_length.asnumpy().astype(np.int64)
        logits, past = self._run_texts(words, lengths)
        mask = np.arange(words.shape[1]) < lengths[:, None]
        scores = logits[np.arange(len(words)), lengths - 1]
        return mx.nd.array(scores), _State(self, past, mask.astype(np.int64), lengths)

    def step(self, tokens, state):
        ones = np.ones((len(state.lengths), 1), np.int64)
        mask = np.concatenate([state.mask, ones], axis=1)
        words, positions = tokens.asnumpy()[:, None], state.lengths[:, None]
        logits, past = self._run(words, mask, positions, state.past)
        return mx.nd.array(logits[:, 0]), _State(self, past, mask, state.lengths + 1)

    def _run_texts(self, words, lengths):
        """Scores of whole texts, padded on the right, and the past of the next call."""
        before = {  # no keys
            name: np.zeros((len(words), port.shape[1], 0, port.shape[3]), np.float32)
            for name, port in self.inputs.items()
            if name.startswith('past_key_values')
        }
        mask = np.arange(words.shape[1]) < lengths[:, None]
        positions = np.minimum(np.arange(words.shape[1]), lengths[:, None] - 1)
        return self._run(words, mask, positions, self.past_of(before))

    def _run(self, words, mask, positions, past):
        feed = {'input_ids': words, 'attention_mask': mask, 'position_ids': positions}
        feed = {key: np.ascontiguousarray(feed[key], np.int64) for key in feed.keys() & self.inputs}
        return self._compute(feed, past)

    # An engine's `past_of(arrays, old)` makes the past for `_compute` from arrays by the names of
    # inputs, and may use an old one; `arrays_of(past)` reverses it; `_compute(feed, past)` returns
    # scores, and the past of the next call.


class _State(NamedTuple):
    """State of the texts that the next step needs."""

    engine: _GenerationEngine
    past: Any
    mask: np.ndarray
    lengths: np.ndarray

    def select(self, rows):
        arrays = self.engine.arrays_of(self.past)
        arrays = {name: array[rows] for name, array in arrays.items()}
        past = self.engine.past_of(arrays, self.past)
        return _State(self.engine, past, self.mask[rows], self.lengths[rows])


class OnnxGenerationEngine(_GenerationEngine, OnnxRuntimeEngine):
    """Continues texts with ONNX Runtime, in whose memory keys and values stay."""

    def past_of(self, arrays, old=None):
        from onnxruntime import OrtValue

        make = OrtValue.ortvalue_from_numpy
        return {name: make(np.ascontiguousarray(array)) for name, array in arrays.items()}

    def arrays_of(self, past):
        return {name: value.numpy() for name, value in past.items()}

    def _compute(self, feed, past):
        feed = {**past, **self.past_of(feed)}
        results = self.session.run_with_ort_values(self.outputs, feed)
        past = dict(zip(map(_input_of, self.outputs), results))
        return past.pop('logits').numpy(), past


class OpenVINOGenerationEngine(_GenerationEngine, OpenVINOEngine):
    """Continues texts with OpenVINO, which keeps keys and values in its requests."""

    def _compile(self, core, config):
        from openvino._offline_transformations import apply_make_stateful_transformation

        model = core.read_model(self.path)
        names = [name for name in _names(model.outputs) if name != 'logits']
        kept, inputs = {_input_of(name): name for name in names}, _ports(model.inputs)
        apply_make_stateful_transformation(model, kept)
        self._variables = {name + output: name for name, output in kept.items()}
        return core.compile_model(model, 'CPU', config), inputs

    def past_of(self, arrays, old=None):
        """A request whose variables are set."""
        import openvino

        request = old or self.model.create_infer_request()
        for variable in request.query_state():
            array = arrays[self._variables[variable.name]]
            variable.state = openvino.Tensor(np.ascontiguousarray(array))
        return request

    def arrays_of(self, past):
        return {self._variables[each.name]: each.state.data for each in past.query_state()}

    def _compute(self, feed, past):
        (logits,) = past.infer(feed, share_inputs=True).values()
        return logits, past
