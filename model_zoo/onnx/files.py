"""ONNX models as files: weights beside the graph, fused operators."""

import logging
import os
import sys
import tempfile

from ..errors import InputError

__all__ = ['EXTERNAL_FROM', 'fuse', 'save', 'weight_bytes']

#: bytes of weights from which they are written to a file of their own: one file ends at 2 GB
EXTERNAL_FROM = 2**31 - 2**24
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
    _silence(os.path.dirname(optimizer.__file__))
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


def _silence(folder):
    """Let the optimizer's modules log errors alone: what they fuse, and whose export they would
    rather have, tells a user nothing.
    """
    for name, module in list(sys.modules.items()):
        file = getattr(module, '__dict__', {}).get('__file__')  # `module.__file__` may import
        if file and os.path.dirname(file) == folder:
            logging.getLogger(name).setLevel(logging.ERROR)
