"""Steps of every kind of export before and after it has written a block's file."""

import contextlib
import os

import mxnet as mx
import numpy as np

from model_zoo.blocks.block import ZooBlock
from model_zoo.blocks.graphs import without_graphs
from model_zoo.errors import InputError, ZooError, reporting
from model_zoo.util.choices import PRECISIONS


class ExportError(ZooError):
    """The written files don't compute the block's outputs; they have been removed."""


def check_exportable(block, name, precisions=PRECISIONS):
    """Raise InputError unless the block is one of the zoo, its values and its precision can be
    exported, and its files can have the name.
    """
    if not isinstance(block, ZooBlock):
        raise InputError(f'{type(block).__name__} is not a model of this zoo: use its export()')
    wanted = 'float16' if block.precision == 'float16' else 'float32'
    for parameter in block.collect_params().values():
        with reporting('initialize the block, or load its parameters', errors=RuntimeError):
            parameter.list_ctx()
        if block.precision not in precisions or np.dtype(parameter.dtype) != wanted:
            types = f'{block.precision}, {parameter.name} {np.dtype(parameter.dtype)}'
            raise InputError(f'the block is {types}: cast it to {" or ".join(precisions)} first')
    if not name or os.path.basename(name) != name:
        raise InputError(f'name must be the beginning of a file name, but is {name!r}')


def make_batch(block, names, batch_size, length, id_type, random, masked=False):
    """Return arrays for the inputs `names` of a block, with a mask for the length if `masked`."""
    makers = block.example_makers(batch_size, length, random)
    if masked:
        makers['valid_length'] = makers.get('attention_mask')
    batch = {}

    def array_of(value):
        return mx.nd.array(value, dtype=id_type if value.dtype.kind == 'i' else None)

    for name in names:
        if makers.get(name) is None:
            raise InputError(f'{name} of {type(block).__name__} cannot be an input of a graph')
        batch[name] = map_arrays(array_of, makers[name]())
    return batch


def map_arrays(function, value):
    """Apply `function` to an array, or to each array of a list."""
    if isinstance(value, (list, tuple)):
        return type(value)([map_arrays(function, item) for item in value])
    return function(value)


@contextlib.contextmanager
def plain_calls(block):
    """Run `block` operator by operator, without its cached graphs, as in an evaluation."""
    with without_graphs(block), mx.autograd.pause(train_mode=False):
        yield


def parameters_of(block):
    """Return a block's parameters as NumPy arrays, by their names."""
    parameters = block.collect_params().values()
    return {each.name: each.data(each.list_ctx()[0]).asnumpy() for each in parameters}
