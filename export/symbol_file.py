"""Export a block to symbol.json and parameters, for `SymbolBlock.imports` and other MXNet APIs."""

import inspect
import math
import os
from collections.abc import Sequence
from typing import Any

import mxnet as mx
import numpy as np

from model_zoo.blocks.block import INPUT_NAMES, ZooBlock
from model_zoo.checkpoint.readers import sums_path, write_sums
from model_zoo.checkpoint.tensor_files import write_params
from model_zoo.errors import InputError, reporting
from model_zoo.layers.sequences import Mask
from model_zoo.pretrained.labels import write_labels
from model_zoo.util.arrays import flatten
from model_zoo.util.files import make_writable_dir, written_together

from .comparison import (
    ExportError,
    check_exportable,
    make_batch,
    map_arrays,
    parameters_of,
    plain_calls,
)

#: how much the files' outputs may differ from the block's, relative to the largest
TOLERANCES = {'float32': 1e-5, 'bfloat16': 1e-5, 'float16': 2e-3}


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

    directory = make_writable_dir(directory)
    files = f'{name}-symbol.json', f'{name}-0000.params'
    with written_together(directory, f'{name}-', files) as temporary:
        paths = symbol_path, params_path = [os.path.join(temporary, file) for file in files]
        with reporting(f'cannot write {symbol_path!r}', errors=mx.MXNetError):
            symbol.save(symbol_path, remove_amp_cast=False)  # bfloat16 needs these casts
        used = set(symbol.list_arguments())  # a pooler that no output depends on isn't among them
        arrays = parameters_of(block).items()
        write_params(params_path, {f'arg:{key}': array for key, array in arrays if key in used})
        for batch in batches:
            _compare(block, names, batch, *paths, one_output)
        if block.config.extras.get('id2label'):
            write_labels(os.path.join(temporary, name), block.label_names)
        write_sums(sums_path(symbol_path), paths)
    return tuple(os.path.join(directory, file) for file in files)


def _input_names(block):
    """Return our names of a block's inputs, in its order."""
    return [INPUT_NAMES.get(name, name) for name in inspect.signature(block.__call__).parameters]


def make_examples(block, length):
    """Return one text of this length, for each input of a block that an export has by default."""
    batch = make_batch(block, block.export_inputs, 1, length, 'float32', np.random.RandomState(0))
    return [batch.get(name) for name in _input_names(block)]


def _batches(block, example_inputs):
    """Return batches of different size, by the names of the block's inputs."""
    limit, random = block.context_length or math.inf, np.random.RandomState(0)
    if example_inputs is None:
        example_inputs = make_examples(block, min(16, limit))
    known = _input_names(block)
    examples = {name: array for name, array in zip(known, example_inputs) if array is not None}
    if len(example_inputs) > len(known) or 'words' not in examples:
        raise InputError(f'must begin with words, of {", ".join(known)}', field='example_inputs')
    valid = examples.get('valid_length')
    masked = isinstance(valid, mx.nd.NDArray) and valid.ndim == examples['words'].ndim
    if masked:  # an attention mask instead
        examples['valid_length'] = Mask([valid])
    length = examples['words'].shape[-1]
    length += 7 if length + 7 < limit else -min(7, length - 1)  # which leaves room for a past
    return [examples, make_batch(block, list(examples), 3, length, 'int32', random, masked)]


def _trace(block, batch, one_output):
    """Return the graph of `block` for such inputs, and their names; the block isn't touched."""
    names = [f'data{i}' for i in range(len(flatten(list(batch.values()))))]
    left = map(mx.sym.var, names)
    variables = {name: map_arrays(lambda _: next(left), value) for name, value in batch.items()}
    with mx.autograd.pause():
        return mx.sym.Group(_outputs(mx.sym, block, variables, one_output)), names


def _outputs(F, block, inputs, one_output):
    outputs = flatten(block(**inputs))
    return [F.stack(*outputs, axis=-1)] if one_output else outputs


def _compare(block, names, batch, symbol_path, params_path, one_output):
    """Raise ExportError unless the files compute what `block` does."""
    ctx = next(iter(block.collect_params().values())).list_ctx()[0]
    batch = {n: map_arrays(lambda x: x.as_in_context(ctx), each) for n, each in batch.items()}
    failed = reporting(
        'the export could not be loaded and run',
        error_class=ExportError,
        errors=(mx.MXNetError, UnicodeDecodeError),  # MXNet quotes bytes of the file
    )
    with plain_calls(block), failed:
        # not as a `Mask`: the block would skip the check of its values
        arrays = {name: item[0] if isinstance(item, Mask) else item for name, item in batch.items()}
        expected = _outputs(mx.nd, block, arrays, one_output)
        if 'head_mask' in batch:
            batch['head_mask'] = block.base.full_head_mask(batch['head_mask'])
        loaded = mx.gluon.SymbolBlock.imports(symbol_path, names, params_path, ctx=ctx)
        results = flatten(loaded(*flatten(list(batch.values()))))
        pairs = [(one.asnumpy(), other.asnumpy()) for one, other in zip(results, expected)]
    for i, (result, wanted) in enumerate(pairs):
        difference = np.abs(result - wanted).max()
        if not difference <= TOLERANCES[block.precision] * max(1, np.abs(wanted).max()):  # or NaN
            raise ExportError(f'output {i} differs by {difference:.2g}; nothing was written')
