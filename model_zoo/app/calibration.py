"""``--only_calibration``: a trained model in INT8, as GluonNLP's scripts make it."""

import itertools
import logging
import os

from ..inference.quantization import Quantizer, leave_out
from ..util.files import written_together

__all__ = ['calibrate']

logger = logging.getLogger(__name__)


def calibrate(run, args, model, loader, evaluate, name, metric, most_lost=0.005):
    """Write the model in INT8, and what it scores before and after.

    As few layers as possible stay in float32, so that the score isn't more than `most_lost` below
    that of float32; see `leave_out`.

    Parameters
    ----------
    run : Run
    args : argparse.Namespace
    model : ZooBlock
    loader : iterable of Batch
        The dev set.
    evaluate : callable
        ``evaluate(forward) -> (score, report)``.
    name : str
        Of the task, for the files.
    metric : str
        What the score is, for the log.
    most_lost : float
        What INT8 may cost, in the metric's unit: half a point.

    Returns
    -------
    str
        Start of the files' names.
    """
    batches = [
        batch.inputs for batch in itertools.islice(iter(loader), args.num_calib_batches)
    ]
    before, report = evaluate(lambda batch: model(*batch.inputs))
    logger.info('float32: %s %.4f', metric, before)
    quantizer = Quantizer(model, batches, args.calib_mode, args.quantized_dtype)

    def attempt(exclude):
        block = quantizer.block(exclude)
        score, report = evaluate(lambda batch: block(*batch.inputs))
        logger.info('INT8%s: %s %.4f', _without(exclude), metric, score)
        return score, report, block

    (score, quantized_report, block), exclude = leave_out(
        quantizer.layers, quantizer.harm, attempt, lambda tried: before - tried[0] <= most_lost
    )
    prefix = os.path.join(
        args.output_dir, f'model_bert_{name}_quantized_{args.calib_mode}'
    )
    files = [f'{os.path.basename(prefix)}{end}' for end in ('-0000.params', '-symbol.json')]
    with written_together(args.output_dir) as folder:
        block.export(os.path.join(folder, os.path.basename(prefix)))
    run.folder.write(
        'calibration.json',
        metric=metric,
        float32=report,
        int8=quantized_report,
        lost=before - score,
        float32_layers=exclude,
        files=files,
    )
    logger.info(
        'INT8%s: %s %.4f, of float32 %.4f; written to %s-symbol.json',
        _without(exclude), metric, score, before, prefix,
    )  # fmt: skip
    return prefix


def _without(exclude):
    return f' without {", ".join(exclude)}' if exclude else ''
