"""Engines, exported models and INT8: the use of a model without training it."""

import itertools
import logging
import os

import mxnet as mx

from ..checkpoint import read_tensors
from ..checkpoint.readers import check_sums, sums_path
from ..errors import CheckpointError, InputError, reporting
from ..inference.quantization import quantize
from ..pretrained.labels import write_labels
from ..util.files import written_together
from .evaluator import Evaluator

logger = logging.getLogger(__name__)


def engine_forward(engine):
    """Return ``forward(batch)`` of an engine: the outputs of a model without labels."""

    def forward(batch):
        arrays = [array.asnumpy().astype('int32') for array in batch.inputs]
        shape = arrays[0].shape[:-1]
        if len(shape) == 2:  # each choice, or sentence, is one text
            arrays = [array.reshape(-1, *array.shape[2:]) for array in arrays]
        outputs = [mx.nd.array(output) for output in engine.run(*arrays)]
        if len(shape) == 2:  # a number for each choice, a vector for each sentence
            outputs = [
                output.reshape(shape if output.size == len(arrays[0]) else (*shape, -1))
                for output in outputs
            ]
        return outputs[0] if len(outputs) == 1 else outputs

    return forward


def load_exported(prefix, max_length, ctx):
    """Load ``PREFIX-symbol.json`` and its parameters with the inputs data0, data1, data2."""
    symbol, parameters = f'{prefix}-symbol.json', f'{prefix}-0000.params'
    for path in (symbol, parameters):
        if not os.path.isfile(path):
            raise InputError(f'{prefix!r}: there is no file {path!r}', field='model_prefix')
    tensors, _ = read_tensors(parameters)  # says clearly what MXNet wouldn't of a damaged file
    for name, array in tensors.items():
        if name.endswith('position_weight') and max_length > len(array):
            problem = f'{max_length}: the exported model takes {len(array)} tokens at most'
            raise InputError(problem, field='max_length')
    check_sums(sums_path(symbol))
    errors = mx.MXNetError, ValueError, AssertionError, RuntimeError
    with reporting(f'cannot load {symbol!r}', error_class=CheckpointError, errors=errors):
        known = mx.sym.load(symbol).list_arguments()
        names = ['data0', 'data1', *(['data2'] if 'data2' in known else [])]
        block = mx.gluon.SymbolBlock.imports(symbol, names, parameters, ctx)
    block.hybridize(static_alloc=True)
    return _with_types(block, len(names) == 3)


def _with_types(block, has_types):
    """Return a function of words, token types and valid length, which the block may do without."""
    if has_types:
        return block
    return lambda words, token_types, valid_length: block(words, valid_length)


def calibrate(trainer):
    """``only_calibration``: write a trainer's model in INT8, with its scores before and after."""
    task, settings, evaluator = trainer.task, trainer.settings, trainer.evaluator
    model, sets, mode = trainer.model, trainer.evaluator.sets, trainer.settings.calib_mode
    if not sets:
        raise InputError('needs a dev set to calibrate with', field='only_calibration')
    batches = itertools.islice(next(iter(sets.values())).loader, settings.num_calib_batches)
    block = quantize(model, [batch.inputs for batch in batches], mode, settings.quantized_dtype)
    best, report = evaluator.evaluate()
    forward = _with_types(block, 'token_types' not in model.unused_inputs)
    score, int8_report = Evaluator(task, lambda batch: forward(*batch.inputs), sets).evaluate()
    name = f'model_bert_{task.name}_quantized_{mode}'
    prefix = trainer.folder.file(name)
    with written_together(trainer.folder.path) as folder:
        block.export(os.path.join(folder, name))
    logger.info('%s-symbol.json: %s %.4f, of float32 %.4f', prefix, task.metric, score, best)
    facts = {'metric': task.metric, 'float32': report, 'int8': int8_report, 'lost': best - score}
    facts['files'] = [f'{name}-0000.params', f'{name}-symbol.json']
    trainer.folder.write('calibration.json', settings, **facts)
    write_labels(prefix, task.labels)
