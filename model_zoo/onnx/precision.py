"""ONNX models in other precisions: float16, and products in integers of 8 bits."""

import copy
import functools
import os
import pathlib
import tempfile
import types

from ..environment import cpu_flags
from ..errors import InputError
from .graph import quiet, save

_DYNAMIC, _STATIC = ('MatMul', 'Attention'), ('MatMul',)  # operators that become integers


def convert(model, precision):
    """Convert a model to another precision; its inputs and outputs keep their types."""
    if precision == 'float16':
        from onnxruntime.transformers.float16 import convert_float_to_float16

        return convert_float_to_float16(model, keep_io_types=True)
    if precision == 'int8':
        return Quantizer(model).quantize()
    return model


def reduces_range():
    """Return whether weights get 7 bits: without VNNI or AMX, sums of 8-bit products saturate."""
    return not cpu_flags() & {'avx512_vnni', 'avx_vnni', 'amx_int8'}


class Quantizer:
    """Makes models whose matrix products with weights have 8 bits, from one model."""

    # Weights have a scale a channel. Activations have the range of each batch (dynamic), or a range
    # that is found once with calibration data (static). Embeddings and the products of activations
    # stay in float32.

    def __init__(self, model, feeds=None):
        self._op_types = _DYNAMIC if feeds is None else _STATIC
        weights = {array.name for array in model.graph.initializer}
        self.layers = {}
        for node in model.graph.node:
            if node.op_type in self._op_types and node.input[1] in weights:
                self.layers.setdefault(_layer_name(node), []).append(node.name)
        self._model, self._typed, self._ranges = model, None, None
        if feeds is not None:
            if not feeds:
                raise InputError('there is no text to calibrate the model with')
            self._ranges = self._calibrate(feeds)

    def quantize(self, exclude=()):
        """Return the model with all layers but `exclude`, by their names, in 8 bits."""
        excluded = [node for name in exclude for node in self.layers[name]]
        if len(exclude) == len(self.layers):
            return self._model
        with quiet():
            return (self._dynamic if self._ranges is None else self._static)(excluded)

    def _dynamic(self, excluded):
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic

        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ('model.onnx', 'int8.onnx')]
            files = save(self._model, paths[0])
            quantize_dynamic(
                *paths,
                op_types_to_quantize=self._op_types,
                nodes_to_exclude=excluded,
                per_channel=True,
                weight_type=QuantType.QInt8,
                extra_options={
                    'MatMulConstBOnly': True,
                    # of fused operators' outputs, which it doesn't know
                    'DefaultTensorType': onnx.TensorProto.FLOAT,
                },
                use_external_data_format=len(files) > 1,
            )
            return onnx.load(paths[1])

    def _static(self, excluded):
        from onnxruntime.quantization import QuantType
        from onnxruntime.quantization.qdq_quantizer import QDQQuantizer

        quantizer = QDQQuantizer(
            copy.deepcopy(self._typed),
            per_channel=True,
            reduce_range=reduces_range(),
            weight_qType=QuantType.QInt8,
            activation_qType=QuantType.QUInt8,
            tensors_range=self._ranges,
            nodes_to_quantize=[],
            nodes_to_exclude=excluded,
            op_types_to_quantize=self._op_types,
            # a product's result, to which a bias is added, stays in float32
            extra_options={
                'MatMulConstBOnly': True,
                'OpTypesToExcludeOutputQuantization': list(self._op_types),
            },
        )
        quantizer.quantize_model()
        return quantizer.model.model

    def _calibrate(self, feeds):
        """Return the smallest and largest value of each activation."""
        from onnxruntime.quantization.calibrate import create_calibrator
        from onnxruntime.quantization.quant_utils import load_model_with_shape_infer

        with quiet(), tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'model.onnx')
            files = save(self._model, path)
            self._typed = load_model_with_shape_infer(pathlib.Path(path))
            options = {'use_external_data_format': len(files) > 1}
            augmented = os.path.join(folder, 'augmented.onnx')
            calibrator = create_calibrator(path, self._op_types, augmented, **options)
            reader = types.SimpleNamespace(get_next=functools.partial(next, iter(feeds), None))
            calibrator.collect_data(reader)
            return calibrator.compute_data()


def _layer_name(node):
    """Return the name of the node's weight, without its endings."""
    return node.input[1].removesuffix('_transposed').removesuffix('_weight')
