"""OpenVINO as an engine: it runs the ONNX files of `onnx_engine`, in bfloat16, too."""

import os
import threading

import mxnet as mx

from ..batches import Batch
from ..environment import used_processors
from ..errors import InputError
from ..families import load_exporter
from .engine import Engine
from .onnx_engine import OnnxEngine

__all__ = ['LEAST_TOKENS', 'OpenVINOEngine', 'OpenVINOInt8Engine']

#: of the texts that INT8 is calibrated with
LEAST_TOKENS = 256
# without these, it computes float32 in bfloat16 where the processor has AMX, and keeps the keys and
# values of generation in 8 bits
_PRECISIONS = {'float32': 'f32', 'bfloat16': 'bf16', 'int8': 'f32'}


class OpenVINOEngine(OnnxEngine):
    """Runs an ONNX file with OpenVINO; see `OnnxEngine`.

    Compiled models are kept beside the file. Each thread that calls has a request of its own.

    Parameters
    ----------
    path : str
    precision : {'float32', 'bfloat16', 'int8'}
        The last one for a file that was calibrated, whose products run in 8 bits.
    streams : int
        How many calls of several threads run at once, each with its part of the processors.

    Attributes
    ----------
    model : openvino.CompiledModel
    """

    name, library = 'openvino', 'OpenVINO'

    def __init__(self, path, precision='float32', streams=1):
        self._streams, self._local = streams, threading.local()
        super().__init__(path, precision)
        wanted = _PRECISIONS[precision]
        if self.model.get_property('INFERENCE_PRECISION_HINT').get_type_name() != wanted:
            raise InputError(f'OpenVINO has no {precision} on this processor: take float32')

    def _open(self):
        import openvino

        return self._compile(openvino.Core(), {
            'INFERENCE_PRECISION_HINT': _PRECISIONS[self.precision],
            'KV_CACHE_PRECISION': _PRECISIONS[self.precision],
            'DYNAMIC_QUANTIZATION_GROUP_SIZE': '0',
            'INFERENCE_NUM_THREADS': used_processors(),
            'NUM_STREAMS': self._streams,
            'ENABLE_CPU_PINNING': False,
            'CACHE_DIR': os.path.join(os.path.dirname(self.path), 'openvino'),
        })  # fmt: skip

    def _compile(self, core, config):
        """Set `model`; returns `inputs` and `outputs`."""
        self.model = core.compile_model(self.path, 'CPU', config)
        return self._names(self.model)

    @staticmethod
    def _names(model):
        inputs = {
            each.node.friendly_name: tuple(
                size.get_length() if size.is_static else None for size in each.partial_shape
            )
            for each in model.inputs
        }
        # those of tensors, of which an output has several, are in no order
        return inputs, [each.node.friendly_name.split('/')[0] for each in model.outputs]

    def run(self, words, token_types, valid_length):
        if not hasattr(self._local, 'request'):
            self._local.request = self.model.create_infer_request()
        feed = self.feed(words, token_types, valid_length)
        return list(self._local.request.infer(feed, share_inputs=True).values())  # copies


class OpenVINOInt8Engine(Engine):
    """Products of 8 bits, whose ranges are found once with the first batch that is run.

    The calibrated file is kept in the cache, for later processes.

    Parameters
    ----------
    block : ZooBlock
        Of BERT's family, with one text an example.
    """

    name = 'openvino'

    def __init__(self, block):
        super().__init__()
        if not block.fuses_in_onnx:
            raise InputError(
                f'OpenVINO has no INT8 for {type(block).__name__}, only for models of BERT with '
                "one text an example; engine='onnxruntime' has"
            )
        self._block, self._engine = block, None

    @classmethod
    def is_calibrated(cls, block):
        """Whether the cache has the calibrated file of a block."""
        return os.path.exists(OpenVINOEngine.file_of(block, 'int8', True))

    def run(self, words, token_types, valid_length):
        with self.lock:
            if self._engine is None:
                self._engine = self._open(words, token_types, valid_length)
                self._block = None
        return self._engine.run(words, token_types, valid_length)

    def _open(self, *arrays):
        tokens = int(arrays[-1].sum())
        if tokens < LEAST_TOKENS and not self.is_calibrated(self._block):
            raise InputError(
                f"OpenVINO's INT8 is calibrated with the first texts, of {LEAST_TOKENS} tokens or "
                f'more, and these have {tokens}: give more texts at once, or take '
                "engine='onnxruntime', which finds the ranges of each batch"
            )
        batch = Batch(*(mx.nd.array(each, dtype=each.dtype) for each in arrays))
        measures = load_exporter().Measures([batch])
        return OpenVINOEngine.of(self._block, 'int8', measures)
