"""The loss of distillation against torch's."""

import mxnet as mx
import numpy as np
import pytest

from model_zoo.layers.losses import distillation_loss, states_error

torch = pytest.importorskip('torch')
pytestmark = pytest.mark.peers


@pytest.mark.parametrize('classes, temperature', [(2, 1.0), (5, 7.5)])
def test_loss_and_gradient(classes, temperature):
    random = np.random.RandomState(classes)
    scores, wanted = (random.normal(0, 3, (6, classes)).astype('float32') for _ in range(2))
    theirs = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    expected = temperature**2 * torch.nn.functional.kl_div(
        torch.log_softmax(theirs / temperature, -1),
        torch.softmax(torch.tensor(wanted, dtype=torch.float64) / temperature, -1),
        reduction='batchmean',
    )
    expected.backward()
    own = mx.nd.array(scores)
    own.attach_grad()
    with mx.autograd.record():
        loss = distillation_loss(mx.nd, own, mx.nd.array(wanted), temperature)
    loss.backward()
    factor = temperature**2  # of the divergence, and of its rounding
    assert loss.asscalar() / factor == pytest.approx(expected.item() / factor, abs=1e-5)
    np.testing.assert_allclose(own.grad.asnumpy(), theirs.grad.numpy(), rtol=1e-5, atol=1e-5)


def test_states():
    random = np.random.RandomState(1)
    lengths = np.array([3, 5])
    states, wanted = (random.normal(size=(2, 5, 4)).astype('float32') for _ in range(2))
    for array in (states, wanted):
        array[0, 3:] = 0
    mask = torch.arange(5) < torch.tensor(lengths)[:, None]
    theirs = torch.nn.functional.mse_loss(torch.tensor(states)[mask], torch.tensor(wanted)[mask])
    ours = states_error(mx.nd, *map(mx.nd.array, (states, wanted, lengths)))
    assert ours.asscalar() == pytest.approx(theirs.item(), rel=1e-5)
