"""Engines that continue texts: a language model's ONNX file in ONNX Runtime and in OpenVINO."""

import abc
from typing import Any, NamedTuple

import mxnet as mx
import numpy as np

from ..errors import InputError
from ..util.checks import check_shape
from .onnx_engine import OnnxEngine, OnnxRuntimeEngine, OpenVINOEngine

__all__ = ['OnnxGenerationEngine', 'OpenVINOGenerationEngine']

_PAST, _PRESENT, _MEMORY = 'past_key_values', 'present', 'mems'


class _GenerationEngine(OnnxEngine):
    """Runs a language model's ONNX file, for `model_zoo.generation.generate`."""

    def __init__(self, path, precision, writer):
        super().__init__(path, precision)
        self.context_length = writer.context_length
        self._block = writer

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
        return self._block.collect_params()

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
        """Scores of whole texts, padded on the right, and what is kept of them."""
        mask = np.arange(words.shape[1]) < lengths[:, None]
        places = np.minimum(np.arange(words.shape[1]), lengths[:, None] - 1)
        return self._go_on(words, mask, places, lengths, self._before(self._empty(len(words))))

    def _go_on(self, words, mask, places, lengths, past):
        given = {
            'input_ids': words, 'attention_mask': mask, 'position_ids': places,
            'valid_length': lengths,
        }  # fmt: skip
        feed = {
            name: np.ascontiguousarray(array.astype(np.int64)) for name, array in given.items()
            if name in self.inputs
        }
        return self._compute(feed, past)

    def _empty(self, rows):
        """What there is before a text: no keys, and a memory as Transformer-XL begins with."""
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
        """What `_compute` takes as the past, of arrays by their names; it has `select`."""

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
        return scores, _Values({_input_of(name): each for name, each in results.items()})


class OpenVINOGenerationEngine(_GenerationEngine, OpenVINOEngine):
    """Continues texts with OpenVINO, which keeps keys, values and memories in its requests."""

    def _compile(self, core, config):
        from openvino._offline_transformations import apply_make_stateful_transformation

        model = core.read_model(self.path)
        inputs, outputs = self._names(model)
        # it has no variables of integers
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
        feed = {**past.others, **feed}
        results = past.request.infer(feed, share_inputs=True).values()
        results = dict(zip(map(_input_of, self.outputs), results))
        return results.pop('logits'), past._replace(others=results)


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
        return _Values({
            name: _value(_rows_of(name, value.numpy(), rows)) for name, value in self.items()
        })  # fmt: skip


class _Request(NamedTuple):
    """A request of OpenVINO, the inputs that its variables were, and the arrays of the others."""

    request: Any
    inputs: dict
    others: dict

    def fill(self, arrays):
        """Set the variables to arrays by the names of inputs."""
        import openvino

        for variable in self.request.query_state():
            array = np.ascontiguousarray(arrays[self.inputs[variable.name]])
            variable.state = openvino.Tensor(array)
        inner = self.inputs.values()
        return self._replace(others={name: arrays[name] for name in arrays if name not in inner})

    def select(self, rows):
        arrays = {self.inputs[each.name]: each.state.data for each in self.request.query_state()}
        arrays.update(self.others)
        return self.fill({name: _rows_of(name, array, rows) for name, array in arrays.items()})


class _State(NamedTuple):
    """What the next step needs of the texts before it."""

    past: Any
    mask: np.ndarray
    lengths: np.ndarray

    def select(self, rows):
        return _State(self.past.select(rows), self.mask[rows], self.lengths[rows])
