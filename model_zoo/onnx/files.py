"""ONNX models as files: weights beside the graph, other precisions, fused operators."""

import contextlib
import logging
import os
import tempfile

from ..errors import InputError

__all__ = ['EXTERNAL_FROM', 'PRECISIONS', 'convert', 'fuse', 'save']

#: bytes of weights from which they are written to a file of their own: one file ends at 2 GB
EXTERNAL_FROM = 2**31 - 2**24
#: what `convert` makes
PRECISIONS = ('float32', 'float16', 'int8')
_FUSED = 'com.microsoft'  # the domain of ONNX Runtime's own operators
_SMALL = 1024  # bytes of a weight that stays in the graph's file


def save(model, path):
    """Write a model, large weights to ``<path>_data``.

    Parameters
    ----------
    model : onnx.ModelProto
        The weights are taken out of it where they get a file of their own.
    path : str
        In a directory that only the caller writes to: this isn't atomic.

    Returns
    -------
    list of str
        The file, or the two files.

    Raises
    ------
    InputError
        If they can't be written.
    """
    import onnx

    external = weight_bytes(model) >= EXTERNAL_FROM
    location = f'{os.path.basename(path)}_data'
    try:
        onnx.save_model(
            model, path, save_as_external_data=external, location=location, size_threshold=_SMALL
        )
    except OSError as error:
        raise InputError(f'cannot write {path!r}: {error.strerror or error}') from error
    if not external:
        return [path]
    onnx.checker.check_model(path)  # `to_onnx` couldn't
    return [path, f'{path}_data']


def weight_bytes(model):
    """Size of a model's weights."""
    return sum(len(each.raw_data) for each in model.graph.initializer)


def convert(model, precision):
    """A model that computes in another precision; its inputs and outputs keep their types.

    Parameters
    ----------
    model : onnx.ModelProto
        In float32.
    precision : {'float32', 'float16', 'int8'}
        ``'int8'``: the matrix products with weights, in 8 bits by channel; their other inputs are
        quantized while they are computed, each batch by its own range. Embeddings stay float32.

    Returns
    -------
    onnx.ModelProto
    """
    if precision == 'float16':
        from onnxruntime.transformers.float16 import convert_float_to_float16

        return convert_float_to_float16(model, keep_io_types=True)
    if precision == 'int8':
        return _quantized(model)
    return model


def _quantized(model):
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, name) for name in ('model.onnx', 'int8.onnx')]
        save(model, paths[0])
        with _quiet():
            quantize_dynamic(
                *paths,
                op_types_to_quantize=['MatMul', 'Attention'],
                per_channel=True,
                weight_type=QuantType.QInt8,
                # of what fused operators give, which it doesn't know
                extra_options={'DefaultTensorType': onnx.TensorProto.FLOAT},
                use_external_data_format=os.path.exists(f'{paths[0]}_data'),
            )
        return onnx.load(paths[1])


@contextlib.contextmanager
def _quiet():
    """Without what the quantizer tells the root logger of each operator."""
    before = logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))
    try:
        yield
    finally:
        logging.disable(before)


def fuse(model, num_heads, hidden_size):
    """A BERT whose layers' operators ONNX Runtime's optimizer has joined.

    The attention mask stays as it is, so that padding may be anywhere.

    Parameters
    ----------
    model : onnx.ModelProto
    num_heads, hidden_size : int

    Returns
    -------
    onnx.ModelProto
    """
    from onnx import helper
    from onnxruntime.transformers import optimizer
    from onnxruntime.transformers.fusion_options import FusionOptions

    options = FusionOptions('bert')
    options.use_raw_attention_mask(True)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'model.onnx')
        save(model, path)
        optimized = optimizer.optimize_model(
            path,
            'bert',
            num_heads=num_heads,
            hidden_size=hidden_size,
            optimization_options=options,
            opt_level=0,
        )
    model = optimized.model
    if all(each.domain != _FUSED for each in model.opset_import):
        model.opset_import.append(helper.make_opsetid(_FUSED, 1))
    return model
