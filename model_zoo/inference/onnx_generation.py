"""ONNX Runtime as an engine that continues texts."""

from typing import Any, Dict, NamedTuple

import mxnet as mx
import numpy as np

from ..errors import InputError
from ..util.checks import check_shape
from .onnx_engine import OnnxRuntimeEngine

__all__ = ['OnnxGenerationEngine']

_PAST, _PRESENT, _MEMORY = 'past_key_values', 'present', 'mems'


class OnnxGenerationEngine(OnnxRuntimeEngine):
    """Runs a language model's ONNX file, for `model_zoo.generation.generate`.

    It has what `generate` uses of a block: `start`, `step` and `context_length`. The graph takes
    what it gave of the text before: keys and values that grow, or a memory.

    Parameters
    ----------
    path : str
    block : ZooBlock
        What the file was made of.
    """

    def __init__(self, path, block):
        super().__init__(path)
        self.context_length = block.context_length
        self._block = block
        self._outputs = [each.name for each in self._session.get_outputs()]
        self._shapes = {
            each.name: each.shape for each in self._session.get_inputs()
            if each.name.startswith((_PAST, _MEMORY))
        }  # fmt: skip

    @classmethod
    def of(cls, block, precision='float32'):
        """The engine of a language model; see `OnnxRuntimeEngine.of`."""
        if not block.generates_in_onnx:
            raise InputError(
                f"{type(block).__name__} of this configuration doesn't generate with ONNX Runtime; "
                "MXNet does that: engine='mxnet'"
            )
        return cls(cls.file_of(block, precision), block)

    @property
    def language_model(self):
        return self

    def collect_params(self):
        """The block's."""
        return self._block.collect_params()

    def run(self, words, token_types, valid_length):
        with self.lock:
            return [self._run_texts(words, valid_length)['logits']]

    def start(self, words, valid_length, capacity):
        """Run the prompts; see the block's method.

        Returns
        -------
        scores : (batch, tokens) NDArray
        state : _State
        """
        words, lengths = words.asnumpy(), valid_length.asnumpy().astype(np.int64)
        results = self._run_texts(words, lengths)
        logits = results.pop('logits')[np.arange(len(words)), lengths - 1]
        mask = np.arange(words.shape[1]) < lengths[:, None]
        return mx.nd.array(logits), _State(_next(results), mask.astype(np.int64), lengths)

    def step(self, tokens, state):
        """Add one token to each row; see the block's method."""
        check_shape('tokens', tokens, state.lengths.shape)
        ones = np.ones((len(state.lengths), 1), np.int64)
        mask = np.concatenate([state.mask, ones], axis=1)
        words = tokens.asnumpy().astype(np.int64)[:, None]
        results = self._compute(words, mask, state.lengths[:, None], ones[:, 0], state.past)
        logits = results.pop('logits')[:, 0]
        return mx.nd.array(logits), _State(_next(results), mask, state.lengths + 1)

    def _run_texts(self, words, lengths):
        """Outputs for whole texts, padded on the right."""
        mask = np.arange(words.shape[1]) < lengths[:, None]
        places = np.minimum(np.arange(words.shape[1]), lengths[:, None] - 1)
        return self._compute(words, mask, places, lengths, self._empty(len(words)))

    def _compute(self, words, mask, places, lengths, past):
        """All outputs; keys, values and memories stay ONNX Runtime's, for they are large."""
        given = {
            'input_ids': words, 'attention_mask': mask, 'position_ids': places,
            'valid_length': lengths,
        }  # fmt: skip
        feed = {
            name: past[name] if name in past else _value(given[name].astype(np.int64))
            for name in self._inputs
        }
        results = self._session.run_with_ort_values(self._outputs, feed)
        results = dict(zip(self._outputs, results))
        return {**results, 'logits': results['logits'].numpy()}

    def _empty(self, rows):
        """What there is before a text: no keys, and a memory as Transformer-XL begins with."""
        past = {}
        for name, shape in self._shapes.items():
            if name == f'{_MEMORY}_length':
                past[name] = np.full(rows, self._shapes[f'{_MEMORY}.0'][0], np.int64)
            elif name.startswith(_MEMORY):
                past[name] = np.zeros((shape[0], rows, shape[2]), np.float32)
            else:
                past[name] = np.zeros((rows, shape[1], 0, shape[3]), np.float32)
        return {name: _value(array) for name, array in past.items()}


def _value(array):
    """The array as ONNX Runtime's own."""
    import onnxruntime

    return onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))


class _State(NamedTuple):
    """What the next step needs of the texts before it."""

    past: Dict[str, Any]  # onnxruntime.OrtValue
    mask: np.ndarray
    lengths: np.ndarray

    def select(self, rows):
        """The state of these rows, in this order."""
        past = {}
        for name, value in self.past.items():
            array = value.numpy()
            array = array[:, rows] if name.startswith(f'{_MEMORY}.') else array[rows]
            past[name] = _value(array)
        return _State(past, self.mask[rows], self.lengths[rows])


def _next(results):
    """Outputs by the names that they have as inputs of the next call."""
    return {
        name.replace(_PRESENT, _PAST).replace(f'new_{_MEMORY}', _MEMORY): each
        for name, each in results.items()
    }
