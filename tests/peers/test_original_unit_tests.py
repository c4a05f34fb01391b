"""pytorch-pretrained-bert's own unit tests, run on mxnet_pretrained_bert.

``ZOO_ORIGINAL_TESTS`` names the folder of the tests of version 0.6.2, which are no part of this
project. All run but those of `LEFT_OUT`, which says why.
"""

import contextlib
import sys
import types
import unittest
from unittest import mock

import mxnet as mx
import numpy as np
import pytest
from json_files import cases
from script_runs import load_script

import mxnet_pretrained_bert
from mxnet_pretrained_bert.torch_like import TorchLike


def unwrap(value):
    """NDArrays, and parameters, for the tensors in a value."""
    if isinstance(value, Tensor):
        return value.array
    if isinstance(value, (list, tuple)):
        return [unwrap(part) for part in value]
    return value


def wrap(value):
    """Tensors for the NDArrays in a value."""
    if isinstance(value, mx.nd.NDArray):
        return Tensor(value)
    if isinstance(value, (list, tuple)):
        return [wrap(part) for part in value]
    return value


class Tensor:
    """An NDArray, or a parameter, with torch's methods. One number has no axes."""

    device = 'cpu'

    def __init__(self, array):
        self.array = array

    @property
    def data(self):
        is_parameter = isinstance(self.array, mx.gluon.Parameter)
        return self.array.data() if is_parameter else self.array

    def size(self):
        return [] if self.data.shape == (1,) else list(self.data.shape)

    @property
    def grad(self):
        is_parameter = isinstance(self.array, mx.gluon.Parameter)
        return Tensor(self.array.grad() if is_parameter else self.array.grad)

    def view(self, *shape):
        return Tensor(self.data.reshape(shape[0] if isinstance(shape[0], (list, tuple)) else shape))

    def unsqueeze(self, axis):
        return Tensor(self.data.expand_dims(axis))

    def expand(self, *shape):
        sizes = [size if size > 0 else old for size, old in zip(shape, self.data.shape)]
        return Tensor(self.data.broadcast_to(sizes))

    def __getitem__(self, key):
        if isinstance(key, np.ndarray):
            return Tensor(mx.nd.array(self.data.asnumpy()[key]))
        return Tensor(self.data[key])

    def __setitem__(self, key, value):
        self.data[key] = value

    def __add__(self, other):
        return Tensor(self.data + unwrap(other))

    __radd__ = __add__

    def __eq__(self, other):
        return np.array_equal(self.data.asnumpy(), other.data.asnumpy())

    def sum(self):
        return Tensor(self.data.sum())

    def nonzero(self):
        return np.argwhere(self.data.asnumpy())

    def numel(self):
        return self.data.size

    def backward(self):
        self.data.backward()

    def tolist(self):
        return self.data.asnumpy().tolist()

    def contiguous(self):
        return self

    def to(self, device):
        return self

    def requires_grad_(self, requires_grad=True):
        return self

    def detach_(self):
        return self

    def zero_(self):
        with mx.autograd.pause():
            self.data[:] = 0
        return self


def _tensor(data, dtype='float32', requires_grad=False):
    if not requires_grad:
        return Tensor(mx.nd.array(data, dtype=dtype))
    parameter = mx.gluon.Parameter('tensor', shape=np.shape(data))
    parameter.initialize(mx.init.Constant(mx.nd.array(data)))
    return Tensor(parameter)


def _mean_squared(found, target):
    return Tensor(((found.data - target.data) ** 2).mean())


class _Linear(mx.gluon.nn.Dense):
    def __init__(self, inputs, outputs):
        super().__init__(outputs, in_units=inputs)
        self.initialize()

    def parameters(self):
        return list(self.collect_params().values())


def _torch():
    """The module."""
    module = types.ModuleType('torch')
    module.long, module.tensor = 'int32', _tensor
    module.ones = lambda *shape: Tensor(mx.nd.ones(shape))
    module.zeros = lambda *shape: Tensor(mx.nd.zeros(shape))
    module.isnan = lambda tensor: np.isnan(tensor.data.asnumpy())
    module.manual_seed = mx.random.seed
    module.nn = types.SimpleNamespace(MSELoss=lambda: _mean_squared, Linear=_Linear)
    return module


def _wrapped(block_class):
    """A class of blocks whose calls take and return tensors."""

    class Wrapped(block_class):
        def __call__(self, *inputs, **named):
            if inputs and not isinstance(inputs[0], Tensor) and not named:
                return super().__call__(*inputs)  # where MXNet calls
            named = {name: unwrap(value) for name, value in named.items()}
            return wrap(super().__call__(*unwrap(list(inputs)), **named))

    Wrapped.__name__ = block_class.__name__
    return Wrapped


def _optimizer(optimizer_class):
    """A class of optimizers of tensors, whose steps aren't recorded."""

    class Wrapped(optimizer_class):
        def __init__(self, params, **options):
            super().__init__([unwrap(parameter) for parameter in params], **options)

        def step(self):
            with mx.autograd.pause():
                super().step()

    return Wrapped


def _theirs():
    return [
        name
        for name in sys.modules
        if name.partition('.')[0] in ('torch', 'pytorch_pretrained_bert')
    ]


@contextlib.contextmanager
def original_package():
    """``torch`` and ``pytorch_pretrained_bert`` are these here; autograd records, as torch's."""
    names = {name: sys.modules.pop(name) for name in _theirs()}
    made = {}

    def shown(name, value):
        if isinstance(value, type) and issubclass(value, mx.gluon.Block):
            value = made.setdefault(value, _wrapped(value))
        elif name in ('BertAdam', 'OpenAIAdam'):
            value = _optimizer(value)
        return value

    prefix = mxnet_pretrained_bert.__name__
    own = [name for name in sys.modules if name.partition('.')[0] == prefix]
    for name in own:
        copy = types.ModuleType(name.replace(prefix, 'pytorch_pretrained_bert', 1))
        for key, value in vars(sys.modules[name]).items():
            if not key.startswith('__'):
                setattr(copy, key, shown(key, value))
        sys.modules[copy.__name__] = copy
    sys.modules['torch'] = _torch()
    outputs = TorchLike.get_multihead_outputs
    wrapped = mock.patch.object(
        TorchLike, 'get_multihead_outputs', lambda block: wrap(outputs(block))
    )
    try:
        with mx.autograd.record(train_mode=False), wrapped:
            yield
    finally:
        for name in _theirs():
            del sys.modules[name]
        sys.modules.update(names)


FILES = (
    'modeling_gpt2_test modeling_openai_test modeling_test modeling_transfo_xl_test '
    'optimization_test tokenization_gpt2_test tokenization_openai_test tokenization_test '
    'tokenization_transfo_xl_test'
).split()
#: those that don't apply, and why
LEFT_OUT = cases('peers')['LEFT_OUT']
pytestmark = pytest.mark.peers
CHECKOUT = 'ZOO_ORIGINAL_TESTS'


@pytest.mark.parametrize('name', FILES)
def test_their_tests_pass_here(name, checkout, capfd):
    with original_package():
        module = load_script(name, checkout)
        suites = unittest.defaultTestLoader.loadTestsFromModule(module)
        tests = [test for suite in suites for test in suite]
        tests = [test for test in tests if not test.id().endswith(tuple(LEFT_OUT))]
        result = unittest.TestResult()
        for test in tests:
            test.run(result)
    failed = [f'{test.id()}: {text}' for test, text in [*result.errors, *result.failures]]
    assert not failed, '\n'.join(failed)
