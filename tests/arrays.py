"""Arrays of blocks: made, taken out of nested outputs, and compared."""

import mxnet as mx
import numpy as np
from mxnet import gluon

from model_zoo.util.arrays import flatten


def array(values, dtype='int32'):
    return mx.nd.array(values, dtype=dtype)


def text_inputs(batch=3, length=9, dtype='int32'):
    """Words below 40, token types, valid lengths and masked positions."""
    random = np.random.RandomState(0)
    words = random.randint(0, 40, (batch, length))
    types = random.randint(0, 2, (batch, length))
    valid = random.randint(1, length + 1, batch)
    positions = random.randint(0, length, (batch, 4))
    return [array(each, dtype) for each in (words, types, valid, positions)]


def masked_inputs():
    """Two rows of words below 41, token types, and a mask with holes in one of them."""
    words, types = np.random.randint(0, 41, (2, 7)), np.random.randint(0, 2, (2, 7))
    return array(words), array(types), mx.nd.array([[0, 1, 1, 1, 1, 0, 1], [1] * 7])


def imported(path, count=3):
    """An exported graph of so many inputs as plain MXNet reads it; its files begin with `path`."""
    names = [f'data{number}' for number in range(count)]
    return mx.gluon.SymbolBlock.imports(f'{path}-symbol.json', names, f'{path}-0000.params')


def stored(path):
    """Return the arrays of an .npz file, by their names."""
    with np.load(path) as file:
        return dict(file)


def part(arrays, *names):
    """Return the arrays whose names begin with these names and slashes, without that prefix."""
    prefix = ''.join(f'{name}/' for name in names)
    return {key[len(prefix) :]: value for key, value in arrays.items() if key.startswith(prefix)}


def assert_same(ours, theirs, tolerance=1e-5):
    """Assert that arrays, or lists (of lists) of them, differ by no more than the tolerance."""
    ours, theirs = flatten(ours), flatten(theirs)
    assert len(ours) == len(theirs)
    for result, wanted in zip(ours, theirs):
        result, wanted = (x.asnumpy() if hasattr(x, 'asnumpy') else x for x in (result, wanted))
        assert result.shape == wanted.shape
        np.testing.assert_allclose(result, wanted, atol=tolerance, rtol=0)


def assert_equal(one, two, tolerance=None):
    """Assert that two dicts of arrays by name are equal, or differ by at most the tolerance."""
    assert sorted(one) == sorted(two)
    for name, value in one.items():
        assert (value.dtype, value.shape) == (two[name].dtype, two[name].shape), name
        if tolerance:
            np.testing.assert_allclose(value, two[name], rtol=0, atol=tolerance, err_msg=name)
        else:
            np.testing.assert_array_equal(value, two[name], err_msg=name)


def tensors_of(block):
    """The block's parameters as arrays, by their canonical names."""
    return {name: each.data().asnumpy() for name, each in block.parameters_by_name().items()}


def make_parameters(arrays, dtype='float32'):
    """Return a dict of Gluon's parameters with the values of arrays, by their names."""
    parameters = {
        name: gluon.Parameter(name, shape=each.shape, dtype=dtype) for name, each in arrays.items()
    }
    for name, parameter in parameters.items():
        parameter.initialize()
        parameter.set_data(mx.nd.array(arrays[name], dtype=dtype))
    return parameters


def set_gradient(parameter, value):
    """Set a parameter's gradient as a backward pass does, on each of its devices."""
    for data, grad in zip(parameter.list_data(), parameter.list_grad()):
        grad[:] = value
        data._fresh_grad = True


def assert_loads(block, form, arrays):
    """Assert that a format's arrays are the block's parameters, and no name is unknown."""
    found, unknown = block.mappings()[form].load(arrays, block.config)
    assert unknown == []
    assert_equal(found, tensors_of(block))


def assert_close(found, wanted, tolerance=1e-5):
    """Assert that nested lists and dicts are the same but for rounding."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        found, wanted = ([each[name] for name in wanted] for each in (found, wanted))
    if isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted):
            assert_close(one, other, tolerance)
    elif isinstance(wanted, (float, np.ndarray, np.floating)):
        np.testing.assert_allclose(found, wanted, atol=tolerance)
    else:
        assert found == wanted
