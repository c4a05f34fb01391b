"""Export a block to symbol.json and parameters, for `SymbolBlock.imports` and other MXNet APIs.

As a command::

    python export/export.py --task classification --model_parameters model.params \
        --output_dir exported --seq_length 128

The flags are those of GluonNLP's scripts/bert/export.py.
"""

import contextlib
import inspect
import logging
import math
import os
import sys
import tempfile
import warnings

if __name__ == '__main__':
    # run as a file: Python put this folder first on the path, where `export` names this file
    _here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [os.path.dirname(_here)] + [
        path for path in sys.path if os.path.abspath(path) != _here
    ]

import model_zoo  # noqa: E402, F401  isort: skip  before MXNet: threads, Ctrl-C
import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402

from model_zoo.app import cli  # noqa: E402
from model_zoo.blocks.block import ZooBlock  # noqa: E402
from model_zoo.blocks.torch_like import INPUT_NAMES  # noqa: E402
from model_zoo.checkpoint.params import write_params  # noqa: E402
from model_zoo.errors import CheckpointError, InputError, PretrainedNotFoundError, ZooError  # noqa: E402
from model_zoo.layers.precision import PRECISIONS  # noqa: E402
from model_zoo.layers.sequences import Mask  # noqa: E402
from model_zoo.opening import find_block_class, read_weights  # noqa: E402
from model_zoo.pretrained import files_in_folder, resolve  # noqa: E402
from model_zoo.tokenization.vocab_file import find_vocab_file  # noqa: E402
from model_zoo.util.files import make_writable_dir  # noqa: E402

__all__ = ['ExportError', 'export_block']

#: how much the files' outputs may differ from the block's, relative to the largest
TOLERANCES = {'float32': 1e-5, 'bfloat16': 1e-5, 'float16': 2e-3}
_log = logging.getLogger('export')


class ExportError(ZooError):
    """The written files don't compute what the block does; they have been removed."""


# -- the export of a block ----------------------------------------------------------------------


def export_block(block, directory, name, example_inputs=None):
    """Write ``<name>-symbol.json`` and ``<name>-0000.params``, both or neither.

    MXNet needs only these two files. The graph takes any batch size and length, like the block, and
    returns the block's outputs without labels. Lists among the outputs are flattened: the question
    answering head has two, the scores of starts and of ends, each (batch, length). Before the files
    get their names they are loaded back, and compared with the block on batches of two sizes. The
    block isn't changed, hybridized or not.

    The graph computes in the block's precision (`ZooBlock.cast`). That of a float16 block on the
    CPU has casts to float32 around its products, which a GPU doesn't need: for a GPU, export a
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
        The others are named data0, data1, ... in their order, with a name for each element of a
        list. The default are the block's `export_inputs`: words, token types and valid length for
        BERT, words and valid length for decoders. BERT's valid length may be an attention mask, and
        then the graph takes masks. The outputs for these arrays are compared, too.
        Labels can't be inputs.

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
    check_exportable(block)
    if not name or os.path.basename(name) != name:
        raise InputError(f'name must be the start of a file name, but is {name!r}')
    batches = _batches(block, example_inputs)
    directory = make_writable_dir(directory)
    symbol, names = _trace(block, batches[-1])
    files = [f'{name}-symbol.json', f'{name}-0000.params']
    with tempfile.TemporaryDirectory(dir=directory, prefix=f'.{name}-') as temporary:
        new = [os.path.join(temporary, file) for file in files]
        _write(symbol, block, *new)
        for batch in batches:
            _compare(block, names, batch, *new)
        final = [os.path.join(directory, file) for file in files]
        _put_in_place(new, final, temporary)
    return tuple(final)


def check_exportable(block):
    if not isinstance(block, ZooBlock):
        raise InputError(
            f'{type(block).__name__} is not a model of this zoo; use its own export() method'
        )
    for parameter in block.collect_params().values():
        try:
            parameter.list_ctx()
        except RuntimeError as error:
            raise InputError(
                f'{parameter.name} has no value: initialize the block, or load its parameters'
            ) from error
        wanted = 'float16' if block.precision == 'float16' else 'float32'
        if np.dtype(parameter.dtype) != wanted:
            raise InputError(
                f'{parameter.name} is {np.dtype(parameter.dtype)}, and the block computes in '
                f'{block.precision}: call block.cast() with one of {", ".join(PRECISIONS)} first'
            )


def _batches(block, example_inputs):
    """Batches of different size, each with arrays by the names of the block's inputs."""
    known = [INPUT_NAMES.get(name, name) for name in inspect.signature(block.__call__).parameters]
    if example_inputs is None:
        names, batches = block.export_inputs, []
    else:
        if len(example_inputs) > len(known) or not len(example_inputs):
            raise InputError(
                f'{type(block).__name__} has the inputs {", ".join(known)}; '
                f'example_inputs has {len(example_inputs)}'
            )
        examples = {
            name: array for name, array in zip(known, example_inputs) if array is not None
        }
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
    """Mark an attention mask in the place of a valid length as one; whether there is one."""
    valid = examples['valid_length']
    if getattr(valid, 'ndim', None) != examples['words'].ndim:
        return False
    examples['valid_length'] = Mask([valid])
    return True


def make_batch(block, names, batch_size, length, id_type, random, masked=False):
    """Arrays for the inputs `names` of `block`, with an attention mask for a length if `masked`.
    """
    makers = block.example_makers(batch_size, length, random)
    if masked:
        makers['valid_length'] = makers.get('attention_mask')
    batch = {}
    for name in names:
        if makers.get(name) is None:
            raise InputError(
                f'{name} of {type(block).__name__} cannot be an input of an exported graph'
            )
        batch[name] = _map(
            lambda value: mx.nd.array(value, dtype=id_type if value.dtype.kind == 'i' else None),
            makers[name](),
        )
    return batch


def _map(function, value):
    """`function` of an array, or of each array of a list."""
    if isinstance(value, (list, tuple)):
        return type(value)([_map(function, each) for each in value])
    return function(value)


def _trace(block, batch):
    """The graph of `block` for such inputs, and their names; the block isn't touched."""
    names = [f'data{i}' for i in range(len(flatten(list(batch.values()))))]
    left = iter(names)
    variables = {
        name: _map(lambda _: mx.sym.var(next(left)), value) for name, value in batch.items()
    }
    return mx.sym.Group(flatten(block(**variables))), names


def flatten(outputs):
    if not isinstance(outputs, (list, tuple)):
        return [outputs]
    return [array for output in outputs for array in flatten(output)]


def _write(symbol, block, symbol_path, params_path):
    try:
        symbol.save(symbol_path, remove_amp_cast=False)  # they are what bfloat16 is made of
    except mx.MXNetError as error:
        raise InputError(
            f'cannot write {symbol_path!r}: {str(error).strip().splitlines()[-1]}'
        ) from error
    used = set(symbol.list_arguments())  # a pooler that no output depends on isn't among them
    tensors = {
        f'arg:{parameter.name}': parameter.data(parameter.list_ctx()[0]).asnumpy()
        for parameter in block.collect_params().values()
        if parameter.name in used
    }
    write_params(params_path, tensors)


@contextlib.contextmanager
def plain_calls(block):
    """Run `block` operator by operator, without its cached graphs and without keeping anything."""
    blocks, saved = [], []
    block.apply(blocks.append)
    for each in blocks:
        names = [name for name in ('_active', 'keep_multihead_output') if hasattr(each, name)]
        saved.append((each, {name: getattr(each, name) for name in names}))
    try:
        for each, values in saved:
            for name in values:
                setattr(each, name, False)
        with mx.autograd.pause(train_mode=False):
            yield
    finally:
        for each, values in saved:
            for name, value in values.items():
                setattr(each, name, value)


def _compare(block, names, batch, symbol_path, params_path):
    """Raise ExportError unless the files compute what `block` does."""
    ctx = next(iter(block.collect_params().values())).list_ctx()[0]
    batch = {
        name: _map(lambda array: array.as_in_context(ctx), value) for name, value in batch.items()
    }
    with plain_calls(block), warnings.catch_warnings():
        # not as a `Mask`, whose values the block would take for checked
        arrays = {name: each[0] if isinstance(each, Mask) else each for name, each in batch.items()}
        expected = flatten(block(**arrays))
        if 'head_mask' in batch:
            batch['head_mask'] = block.base.full_head_mask(batch['head_mask'])
        try:
            warnings.simplefilter('ignore')  # on the inputs' types, which the graph leaves open
            loaded = mx.gluon.SymbolBlock.imports(symbol_path, names, params_path, ctx=ctx)
            results = flatten(loaded(*flatten(list(batch.values()))))
            results = [result.asnumpy() for result in results]
        except mx.MXNetError as error:
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


def _put_in_place(new, final, temporary):
    """Rename the files `new` to `final`, all or none."""
    renames = []
    try:
        for i, (source, target) in enumerate(zip(new, final)):
            pairs = [(source, target)]
            if os.path.exists(target):
                pairs.insert(0, (target, os.path.join(temporary, f'old{i}')))
            for pair in pairs:
                renames.append(pair)  # before it is done: an interrupt may come in between
                os.replace(*pair)
    except BaseException as error:
        for source, target in reversed(renames):
            with contextlib.suppress(OSError):  # the last one may not have happened
                os.replace(target, source)
        if isinstance(error, OSError):
            raise InputError(f'cannot write {target!r}: {error.strerror}') from error
        raise


# -- the command --------------------------------------------------------------------------------

#: task -> its name in the family, and that of the head's dense layer
TASKS = {
    'classification': ('classification', 'classifier'),
    'regression': ('classification', 'classifier'),
    'question_answering': ('question_answering', 'span_classifier'),
}


def build_block(args):
    """The block that the command's arguments describe, with parameters.

    Parameters
    ----------
    args : argparse.Namespace

    Returns
    -------
    ZooBlock

    Raises
    ------
    ZooError
        If the model isn't known, the size of its vocabulary is unknown, or the parameters don't
        match.
    """
    task, head = TASKS[args.task]
    block_class = find_block_class('bert', task, args.model_name, args.dataset_name)
    config_class = block_class.config_class
    weights, fields = _find_model(args, block_class)
    outputs, options = None, {}
    if weights:
        any_size = config_class.from_dict({'vocab_size': 1, **fields})
        tensors = read_weights(block_class, weights, any_size).tensors
        if f'^{head}.weight' not in tensors:
            raise CheckpointError(
                f'{weights!r} has no {head} for {args.task}: it holds the parameters of another '
                'task, or of BERT alone'
            )
        outputs = tensors[f'^{head}.weight'].shape[0]
        if 'word_embed.weight' in tensors:
            fields.setdefault('vocab_size', tensors['word_embed.weight'].shape[0])
        for part in block_class.optional_parts:  # what the outputs don't need is left out
            if any(name.startswith(part) for name in tensors):
                options[f'use_{part}'] = True
    if 'vocab_size' not in fields:
        fields['vocab_size'] = _vocab_size(args)
    if task == 'classification':
        options['num_labels'] = _num_labels(args, outputs, weights)
        options['dropout'] = args.dropout
    elif args.num_classes is not None:
        raise InputError(f'--num_classes is not for {args.task}')
    block = block_class(config_class.from_dict(fields), **options)
    if weights:
        block.load_parameters(weights, ctx=mx.cpu(), cast_dtype=True)
    else:
        _log.warning(
            '--model_parameters is not given: the parameters of the export are random ones'
        )
        block.initialize(ctx=mx.cpu())
    block.cast(args.dtype)
    return block


def _find_model(args, block_class):
    """Path of the weights or None, and the fields of the configuration as far as known."""
    given = {} if args.vocab_size is None else {'vocab_size': args.vocab_size}
    if os.path.isdir(args.model_name):
        files = files_in_folder(args.model_name)
        if files.config is None:
            raise InputError(f'the directory {args.model_name!r} has no config.json')
        fields = block_class.config_class.from_json_file(files.config).to_dict()
        return args.model_parameters or files.weights, {**fields, **given}
    args.model_name, args.dataset_name = resolve(args.model_name, args.dataset_name)
    return args.model_parameters, {**block_class.architectures[args.model_name], **given}


def _vocab_size(args):
    try:
        vocab = find_vocab_file(args.model_name, args.dataset_name).load()
    except PretrainedNotFoundError as error:
        raise PretrainedNotFoundError(
            f'{error}\n  - or pass --vocab_size, the number of its tokens'
        ) from error
    return len(vocab)


def _num_labels(args, outputs, weights):
    """Number of outputs: of the file, of the flag, or the task's usual one."""
    usual = 1 if args.task == 'regression' else 2
    wanted = args.num_classes or outputs or usual
    if outputs not in (None, wanted):
        raise InputError(f'--num_classes {wanted}: {weights!r} has {outputs}')
    if (wanted == 1) != (args.task == 'regression'):
        raise InputError(
            f'--task {args.task} with {wanted} output(s): regression has 1, classification more'
        )
    return wanted


def _parse(argv):
    parser = cli.parser(__doc__.splitlines()[0])
    add = parser.add_argument
    add('--task', required=True, choices=sorted(TASKS), help='task of the model')
    add('--model_parameters', help='file of parameters saved after training; without it, random')
    add(
        '--model_name',
        default='bert_12_768_12',
        help='model of the zoo, or a directory with config.json and model.params as '
        'save_pretrained writes them',
    )
    add('--dataset_name', help="what the model was pretrained on; by default the model's usual one")
    add('--output_dir', default='./output_dir', help='where to write TASK-symbol.json and '
        'TASK-0000.params')  # fmt: skip
    add('--seq_length', type=int, default=64, help='length of the batch that the export is checked '
        'with, beside a longer one; the exported model takes any length')  # fmt: skip
    add('--dropout', type=float, default=0.1, help='dropout rate before the classification or '
        'regression head, in case the exported model is trained on')  # fmt: skip
    add('--num_classes', type=int, help='outputs of the classification head; by default those of '
        'the parameters, or 2')  # fmt: skip
    add('--vocab_size', type=int, help="size of the vocabulary; by default that of the parameters, "
        "or of the model's vocabulary")  # fmt: skip
    add('--dtype', default='float32', choices=PRECISIONS, help='type that the exported model '
        'computes in')  # fmt: skip
    return parser.parse_args(argv)


def main(argv=None):
    """Run the command; returns its exit status."""
    args = _parse(argv)
    cli.setup_logging()
    make_writable_dir(args.output_dir)  # before the work, not after
    block = build_block(args)
    limit = block.context_length
    if not 1 <= args.seq_length <= limit:
        raise InputError(f'--seq_length {args.seq_length}: the model takes 1 to {limit}')
    words = mx.nd.zeros((1, args.seq_length))
    types = mx.nd.zeros_like(words) if block.takes_token_types else None
    examples = words, types, mx.nd.array([args.seq_length])
    paths = export_block(block, args.output_dir, args.task, examples)
    print('\n'.join(paths))


if __name__ == '__main__':
    sys.exit(cli.run(main))
