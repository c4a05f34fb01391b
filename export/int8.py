"""INT8 in ONNX with measures: calibration, the score before and after, and what stays float32."""

import logging
import os
import tempfile
from typing import Callable, NamedTuple, Optional, Sequence

import numpy as np

from model_zoo.app import engine_forward
from model_zoo.errors import InputError
from model_zoo.inference.onnx_engine import OnnxRuntimeEngine
from model_zoo.inference.quantization import leave_out
from model_zoo.onnx import Quantizer, save

__all__ = ['Measures', 'quantize_measured']

#: least cosine with the outputs in float32 where there is no labelled data
LEAST_COSINE = 0.99
_log = logging.getLogger('export')


class Measures(NamedTuple):
    """What INT8 is calibrated and measured with.

    Attributes
    ----------
    batches : sequence of Batch
        Some text of the kind that the model will see.
    static : bool
        Whether the ranges of activations are found once, with `batches`, instead of each batch's.
    method : str
        How they are; one of `model_zoo.onnx.CALIBRATION_METHODS`.
    evaluate : callable, optional
        ``evaluate(forward) -> (score, report)`` with labelled data, ``forward`` being a function of
        a batch. Default: outputs are compared with those in float32.
    metric : str
        What the score is.
    most_lost : float
        How much of the score INT8 may cost, in its unit.
    """

    batches: Sequence
    static: bool = True
    method: str = 'minmax'
    evaluate: Optional[Callable] = None
    metric: str = 'cosine'
    most_lost: float = 0.005


def quantize_measured(plain, model, measures):
    """A model in INT8, but for the layers that cost too much."""
    if not measures.batches:
        raise InputError('there is no text to calibrate the model with')
    arrays = [
        [array.asnumpy().astype('int32') for array in batch.inputs] for batch in measures.batches
    ]
    engine = _engine(plain)
    wanted = [_flat(engine.run(*each)) for each in arrays]
    feeds = [engine.feed(*each) for each in arrays] if measures.static else None
    quantizer = Quantizer(model, feeds, measures.method)
    evaluate = measures.evaluate or _cosine(measures.batches, wanted)
    before, report = evaluate(engine_forward(engine))
    _log.info('float32: %s %.4f', measures.metric, before)

    def attempt(exclude):
        made = quantizer.quantize(exclude)
        score, report = evaluate(engine_forward(_engine(made)))
        _log.info('INT8, %d layers in float32: %s %.4f', len(exclude), measures.metric, score)
        return score, report, made

    def harm(layer):
        engine = _engine(quantizer.quantize([each for each in quantizer.layers if each != layer]))
        return float(((_flat(engine.run(*arrays[0])) - wanted[0]) ** 2).mean())

    most_lost = measures.most_lost if measures.evaluate else 1 - LEAST_COSINE
    (after, int8_report, made), exclude = leave_out(
        quantizer.layers, harm, attempt, lambda tried: before - tried[0] <= most_lost
    )
    _log.info(
        'INT8: %s %.4f, of float32 %.4f; %d of %d layers stay in float32',
        measures.metric, after, before, len(exclude), len(quantizer.layers),
    )  # fmt: skip
    return made, {
        'quantization': 'static' if measures.static else 'dynamic',
        'calib_mode': measures.method if measures.static else None,
        'metric': measures.metric,
        'float32': report,
        'int8': int8_report,
        'lost': before - after,
        'float32_layers': exclude,
        'layers': len(quantizer.layers),
    }


def _engine(model):
    """An engine of a model that needs no file when it runs."""
    copy = type(model)()
    copy.CopyFrom(model)  # large weights are taken out of what is saved
    with tempfile.TemporaryDirectory() as folder:
        return OnnxRuntimeEngine(save(copy, os.path.join(folder, 'model.onnx'))[0])


def _flat(outputs):
    return np.concatenate([each.ravel() for each in outputs])


def _cosine(batches, wanted):
    """``evaluate(forward)``: how much the outputs for the calibration data are like `wanted`."""
    theirs = np.concatenate(wanted)

    def evaluate(forward):
        outputs = [forward(batch) for batch in batches]
        outputs = [each if isinstance(each, list) else [each] for each in outputs]
        ours = np.concatenate([_flat([one.asnumpy() for one in each]) for each in outputs])
        cosine = float(ours @ theirs / (np.linalg.norm(ours) * np.linalg.norm(theirs)))
        return cosine, {'cosine': cosine}

    return evaluate
