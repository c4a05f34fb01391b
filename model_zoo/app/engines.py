"""``--engine``: what runs a model that isn't trained."""

import mxnet as mx

from ..errors import InputError
from ..inference.engines import ENGINES, make_engine

__all__ = [
    'add_engine_arguments',
    'add_use_arguments',
    'check_engine_arguments',
    'engine_forward',
    'forward_of',
]


def add_engine_arguments(parser):
    """Add ``--engine`` and ``--precision`` to a command that trains, too."""
    add = parser.add_argument_group('engine').add_argument
    add('--engine', default='mxnet', choices=ENGINES, help='what runs a model without training it')
    add('--precision', choices=['float32', 'bfloat16', 'int8'],
        help="of the engine; default: that of --dtype")  # fmt: skip


def add_use_arguments(parser):
    """Add ``--engine`` and ``--precision`` to a command that only uses a model."""
    add = parser.add_argument_group('engine').add_argument
    text = 'what runs the model; auto: MXNet, and what is faster here once there is enough to do'
    add('--engine', default='auto', choices=ENGINES, help=text)
    add('--precision', default='float32', choices=['float32', 'bfloat16', 'int8'])


def check_engine_arguments(args, only_inference):
    """Raise InputError if the flags of `add_engine_arguments` contradict others."""
    if args.engine != 'mxnet' and not only_inference:
        raise InputError(f'--engine {args.engine} runs a model without training it: MXNet trains')
    if args.engine != 'mxnet' and getattr(args, 'deploy', False):
        raise InputError('--deploy runs an exported model with MXNet: leave --engine out')
    if args.precision is not None and args.engine == 'mxnet':
        other = ', or see --only_calibration' if hasattr(args, 'only_calibration') else ''
        if args.precision == 'int8':
            raise InputError(f'--precision int8 needs --engine onnxruntime or openvino{other}')
        if args.precision == 'bfloat16':
            raise InputError('--precision bfloat16 needs --engine openvino; MXNet has --dtype')


def forward_of(args, model):
    """``forward(batch)``: the outputs of a model without labels.

    Parameters
    ----------
    args : argparse.Namespace
        With the flags of `add_engine_arguments`.
    model : ZooBlock, or callable
        The latter with ``--deploy``.

    Returns
    -------
    callable
    """
    if args.engine == 'mxnet':
        return lambda batch: model(*batch.inputs)
    return engine_forward(make_engine(model, args.engine, args.precision or args.dtype))


def engine_forward(engine):
    """``forward(batch)`` of an engine; see `forward_of`."""

    def forward(batch):
        arrays = [array.asnumpy().astype('int32') for array in batch.inputs]
        shape = arrays[0].shape[:-1]
        if len(shape) == 2:  # each choice is a text of its own
            arrays = [array.reshape(-1, *array.shape[2:]) for array in arrays]
        outputs = [mx.nd.array(each) for each in engine.run(*arrays)]
        if len(shape) == 2:
            outputs = [each.reshape(shape) for each in outputs]
        return outputs[0] if len(outputs) == 1 else outputs

    return forward
