"""Export a block to symbol.json and parameters, for `SymbolBlock.imports` and other MXNet APIs.

As a command::

    python export/export.py output_dir/best_model --output_dir exported --format onnx
    python export/export.py --task classification --model_parameters model.params \
        --output_dir exported --seq_length 128

The flags are the same as in GluonNLP's scripts/bert/export.py.
"""

from __future__ import annotations

import inspect
import logging
import math
import os
import shlex
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if not __package__:
    # run as a file: Python put this folder first on the path, where `export` names this file
    _here = os.path.dirname(os.path.abspath(__file__))
    _paths = [path for path in sys.path if os.path.abspath(path) != _here]
    sys.path[:] = [os.path.dirname(_here), *_paths, _here]

import model_zoo  # noqa: F401  isort: skip  before MXNet: threads, Ctrl-C
import mxnet as mx
import numpy as np

from export import command
from export.comparison import (
    ExportError,
    check_exportable,
    make_batch,
    map_arrays,
    parameters_of,
    plain_calls,
    write_symbol,
)
from export.onnx_file import export_onnx_folder
from model_zoo.app import cli
from model_zoo.blocks.block import INPUT_NAMES
from model_zoo.errors import InputError, MissingExtraError
from model_zoo.layers.precision import PRECISIONS
from model_zoo.layers.sequences import Mask
from model_zoo.pretrained.labels import write_labels
from model_zoo.util.arrays import flatten
from model_zoo.util.choices import ONNX_PRECISIONS
from model_zoo.util.files import make_writable_dir

if TYPE_CHECKING:
    from model_zoo.blocks.block import ZooBlock

logger = logging.getLogger('export')

#: how much the files' outputs may differ from the block's, relative to the largest
TOLERANCES = {'float32': 1e-5, 'bfloat16': 1e-5, 'float16': 2e-3}


# -- the export of a block ----------------------------------------------------------------------


def export_block(
    block: ZooBlock,
    directory: str | os.PathLike,
    name: str,
    example_inputs: Sequence[Any] | None = None,
    one_output: bool = False,
) -> tuple[str, str]:
    """Write ``<name>-symbol.json`` and ``<name>-0000.params``, both or neither.

    MXNet needs only these two files; ``<name>-SHA256SUMS`` has their checksums, and
    ``<name>-labels.json`` the names of a classifier's outputs, if it has some. The graph takes any
    batch size and length, like the block, and returns the block's outputs without labels. Lists
    among the outputs are flattened: the question answering head has two, the scores of starts and
    of ends, each (batch, length). Before the files get their names, they are loaded back and
    compared with the block on batches of two sizes. The block isn't changed, hybridized or not.

    The graph computes in the block's precision (`ZooBlock.cast`). The graph of a float16 block on
    the CPU has casts to float32 around its products, which a GPU doesn't need: for a GPU, export a
    block that is on one.

    Parameters
    ----------
    block : ZooBlock
        Any model of the zoo.
    directory : str
        Made where it is missing.
    name : str
        The files' prefix.
    example_inputs : sequence of (NDArray, list of NDArray or None), optional
        The block's inputs; those that are None, or left out at the end, aren't inputs of the graph.
        The others are named data0, data1, ... in order, with a name for each element of a list. The
        default is the block's `export_inputs`: words, token types and valid length for BERT, words
        and valid length for decoders. BERT's valid length may be an attention mask, and then the
        graph takes masks. The outputs for these arrays are compared, too. Labels can't be inputs.
    one_output : bool
        Whether to join the outputs, of equal shapes, along a new last axis: (batch, length, 2) for
        the question answering head, as in GluonNLP's ``BertForQA``.

    Returns
    -------
    (str, str)
        Paths of the symbol and of the parameters.

    Raises
    ------
    InputError
        If the inputs can't be used, the parameters aren't initialized or aren't of the block's
        precision, or the directory can't be written to.
    ExportError
        If the loaded graph's outputs differ from the block's by more than 1e-5, or 2e-3 in float16
        (relative to the largest output if that is above 1). Earlier files in the directory stay.

    Examples
    --------
    >>> from bert import BertForSequenceClassification
    >>> model = BertForSequenceClassification.from_pretrained('all-MiniLM-L6-v2')
    >>> symbol, params = export_block(model, 'exported', 'classifier')
    >>> net = mx.gluon.SymbolBlock.imports(symbol, ['data0', 'data1', 'data2'], params)
    >>> net(mx.nd.array([[101, 7592, 102]]), mx.nd.zeros((1, 3)), mx.nd.array([3])).shape
    (1, 2)
    """
    check_exportable(block, name)
    batches = _batches(block, example_inputs)
    symbol, names = _trace(block, batches[-1], one_output)

    def check(*paths):
        for batch in batches:
            _compare(block, names, batch, *paths, one_output)
        if block.config.extras.get('id2label'):
            write_labels(os.path.join(os.path.dirname(paths[0]), name), block.label_names)

    return write_symbol(directory, name, symbol, parameters_of(block), check)


def _input_names(block):
    """Our names of a block's inputs, in its order."""
    return [INPUT_NAMES.get(name, name) for name in inspect.signature(block.__call__).parameters]


def _batches(block, example_inputs):
    """Batches of different size, each with arrays by the names of the block's inputs."""
    known = _input_names(block)
    if example_inputs is None:
        names, batches = block.export_inputs, []
    else:
        if len(example_inputs) > len(known) or not len(example_inputs):
            raise InputError(
                f'{type(block).__name__} has the inputs {", ".join(known)}; '
                f'example_inputs has {len(example_inputs)}'
            )
        examples = {name: array for name, array in zip(known, example_inputs) if array is not None}
        names, batches = list(examples), [examples]
    if 'words' not in names:
        raise InputError('example_inputs must begin with the words')
    masked = 'valid_length' in names and bool(batches) and _mask_for_length(batches[0])
    random = np.random.RandomState(0)  # not the global one: the user's random numbers stay
    limit = block.context_length or math.inf
    if not batches:
        batches = [make_batch(block, names, 1, min(16, limit), 'float32', random)]
    length = batches[0]['words'].shape[-1]
    length += 7 if length + 7 < limit else -min(7, length - 1)  # which leaves room for a past
    return [*batches, make_batch(block, names, 3, length, 'int32', random, masked)]


def _mask_for_length(examples):
    """Whether there is an attention mask instead of a valid length; marks it as one."""
    valid = examples['valid_length']
    if getattr(valid, 'ndim', None) != examples['words'].ndim:
        return False
    examples['valid_length'] = Mask([valid])
    return True


def _trace(block, batch, one_output=False):
    """The graph of `block` for such inputs, and their names; the block isn't touched."""
    names = [f'data{i}' for i in range(len(flatten(list(batch.values()))))]
    left = iter(names)
    variables = {
        name: map_arrays(lambda _: mx.sym.var(next(left)), value) for name, value in batch.items()
    }
    with mx.autograd.pause():
        return mx.sym.Group(_outputs(mx.sym, block, variables, one_output)), names


def _outputs(F, block, inputs, one_output):
    outputs = flatten(block(**inputs))
    return [F.stack(*outputs, axis=-1)] if one_output else outputs


def _compare(block, names, batch, symbol_path, params_path, one_output):
    """Raise ExportError unless the files compute what `block` does."""
    ctx = next(iter(block.collect_params().values())).list_ctx()[0]
    batch = {
        name: map_arrays(lambda array: array.as_in_context(ctx), value)
        for name, value in batch.items()
    }
    with plain_calls(block), warnings.catch_warnings():
        # not as a `Mask`: the block would skip the check of its values
        arrays = {name: item[0] if isinstance(item, Mask) else item for name, item in batch.items()}
        expected = _outputs(mx.nd, block, arrays, one_output)
        if 'head_mask' in batch:
            batch['head_mask'] = block.base.full_head_mask(batch['head_mask'])
        try:
            warnings.simplefilter('ignore')  # on the inputs' types, which the graph leaves open
            loaded = mx.gluon.SymbolBlock.imports(symbol_path, names, params_path, ctx=ctx)
            results = flatten(loaded(*flatten(list(batch.values()))))
            results = [result.asnumpy() for result in results]
        except (mx.MXNetError, UnicodeDecodeError) as error:  # MXNet quotes bytes of the file
            reason = str(error).strip().splitlines()[-1]
            raise ExportError(f'the export could not be loaded and run: {reason}') from error
    for i, (result, wanted) in enumerate(zip(results, expected)):
        wanted = wanted.asnumpy()
        same_shape = result.shape == wanted.shape
        difference = np.abs(result - wanted).max() if same_shape else np.inf
        tolerance = TOLERANCES[block.precision]
        if not difference <= tolerance * max(1, np.abs(wanted).max()):  # NaN is not
            raise ExportError(
                f'output {i} of the export differs from the block by {difference:.2g} on a batch '
                f'of shape {batch["words"].shape}; nothing was written'
            )


# -- the command --------------------------------------------------------------------------------


def _parse(argv):
    parser = cli.parser(__doc__.splitlines()[0])
    add = parser.add_argument
    add('model', nargs='?', help='the same as --model_name')
    add(
        '--task',
        choices=command.tasks(),
        help="task of the model; 'model' is the model without a "
        "head; default: what the model's folder says",
    )
    add(
        '--model_parameters',
        help='file of trained parameters; without it, a name has random '
        'parameters for classification, regression and question_answering, and pretrained ones for '
        'other tasks',
    )
    add(
        '--model_name',
        default='bert_12_768_12',
        help='model of the zoo, or a folder that save_pretrained wrote',
    )
    add(
        '--dataset_name',
        help="data set that the model was pretrained on; default: the model's usual one",
    )
    add(
        '--output_dir',
        default='./output_dir',
        help='folder for TASK-symbol.json and '
        'TASK-0000.params, or model.onnx with its tokenizer; with MODEL, the default is '
        'MODEL_exported',
    )
    add(
        '--format',
        default='symbol',
        choices=('symbol', 'onnx', 'both'),
        help="'symbol' is for MXNet, onnx for other runtimes",
    )
    add(
        '--seq_length',
        type=int,
        help='length to check the export with, in addition '
        'to a longer one; the exported model takes any length',
    )
    add(
        '--dropout',
        type=float,
        default=0.1,
        help='dropout before the classification or '
        'regression head, in case you train the exported model further',
    )
    add(
        '--num_classes',
        type=int,
        help='number of outputs of the classification or tagging head; '
        "default: the parameters' own, or 2",
    )
    add(
        '--vocab_size',
        type=int,
        help='size of the vocabulary; default: that of the parameters, '
        "or of the model's vocabulary",
    )
    add('--dtype', default='float32', choices=PRECISIONS, help='precision of the exported symbol')
    add(
        '--precision',
        default='float32',
        choices=ONNX_PRECISIONS,
        help='precision of model.onnx; int8 applies to its matrix products',
    )
    add(
        '--optimize',
        action='store_true',
        help='fuse the operators of model.onnx with ONNX '
        "Runtime's optimizer; the file then needs ONNX Runtime",
    )
    add(
        '--one_output',
        action='store_true',
        help='with --task question_answering: one output '
        "(batch, length, 2), like GluonNLP's, instead of separate starts and ends",
    )
    add(
        '--all_layers',
        action='store_true',
        help='with --task model: the hidden states of all layers',
    )
    add(
        '--pooling',
        default='mean',
        choices=('mean', 'cls', 'max'),
        help='with --task '
        "sentence_embedding: how to combine the tokens' vectors; default: as the model does, else "
        'mean',
    )
    add(
        '--normalize',
        action='store_true',
        help='with --task sentence_embedding: scale the vectors to length 1',
    )
    command.add_int8_arguments(parser)
    args = parser.parse_args(argv)
    if args.model and not args.is_given('output_dir'):
        name = os.path.basename(os.path.normpath(args.model))
        args.output_dir = f'{name}_exported'
    args.model_name = args.model or args.model_name
    located = command.locate_model(args)
    args.task = args.task or command.task_of(located)
    if args.task is None:
        parser.error(f'--task is required: {args.model_name!r} does not say its task')
    return args, located


def _check(args):
    """Raise InputError for flags that don't go together."""
    if args.format == 'symbol' and (args.optimize or args.precision != 'float32'):
        flag = '--optimize' if args.optimize else f'--precision {args.precision}'
        raise InputError(f'{flag} is for ONNX: add --format onnx or --format both')
    if args.one_output and args.format != 'symbol':
        raise InputError('--one_output is for --format symbol')
    if args.format != 'symbol' and args.dtype != 'float32':
        raise InputError(
            f'--dtype {args.dtype} is for --format symbol: ONNX has --precision '
            f'({", ".join(ONNX_PRECISIONS)})'
        )
    for task, flag, value in (
        ('model', '--all_layers', args.all_layers),
        ('question_answering', '--one_output', args.one_output),
        ('sentence_embedding', '--normalize', args.normalize),
        ('sentence_embedding', f'--pooling {args.pooling}', args.pooling != 'mean'),
    ):
        if value and args.task != task:
            raise InputError(f'{flag} is for --task {task}')
    command.check_int8_arguments(args)


def main(argv=None):
    """Run the command; returns its exit status."""
    args, located = _parse(argv)
    cli.setup_logging()
    _check(args)
    if args.format != 'symbol':
        MissingExtraError.check('onnx', 'onnx', 'onnxruntime')
    make_writable_dir(args.output_dir)  # before the work, not after
    block = command.build_block(args, located)
    limit = block.context_length or math.inf
    length = min(64, limit) if args.seq_length is None else args.seq_length
    if not 1 <= length <= limit:
        raise InputError(f'--seq_length {length}: the model takes 1 to {limit}')
    paths = []
    if args.format != 'onnx':
        random = np.random.RandomState(0)
        batch = make_batch(block, block.export_inputs, 1, length, 'float32', random)
        examples = [batch.get(name) for name in _input_names(block)]
        paths += export_block(block, args.output_dir, args.task, examples, args.one_output)
    if args.format != 'symbol':
        tokenizer = command.find_tokenizer(args, block)
        paths += export_onnx_folder(
            block,
            args.output_dir,
            tokenizer,
            optimize=args.optimize,
            precision=args.precision,
            measures=command.read_measures(args, tokenizer, located),
        )
        paths += command.copy_modules(args, located)
    print('\n'.join(paths))
    logger.info('written to %s; next: %s', args.output_dir, _next(args, paths))


def _next(args, paths):
    """A command that uses the files."""
    if args.format != 'symbol':
        return f'zoo serve {shlex.quote(args.output_dir)}'
    symbol, parameters = paths[:2]
    known = {name.partition(':')[2] for name in mx.nd.load(parameters)}
    names = [name for name in mx.sym.load(symbol).list_inputs() if name not in known]
    line = f'mx.gluon.SymbolBlock.imports({symbol!r}, {names!r}, {parameters!r})'
    return f'python -c {shlex.quote(f"import model_zoo, mxnet as mx; print({line})")}'


if __name__ == '__main__':
    cli.run_script(main)
