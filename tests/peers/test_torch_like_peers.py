"""mxnet_pretrained_bert beside pytorch-pretrained-bert 0.6.2: gradients, names, vocabularies."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from json_files import cases

import mxnet_pretrained_bert as ours

torch = pytest.importorskip('torch')
original = pytest.importorskip('pytorch_pretrained_bert')
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings('ignore')]

SIZES = {**tiny.BERT, 'hidden_dropout_prob': 0.0, 'attention_probs_dropout_prob': 0.0}
SIZES['initializer_range'] = 0.3
WORDS = [[2, 5, 6, 7, 3, 0, 0], [2, 9, 8, 3, 0, 0, 0]]
#: class -> labels, some of them at [PAD]
LABELS = cases('peers')['TORCH_LIKE']


@pytest.mark.parametrize('name', LABELS)
def test_parameters_losses_and_gradients(name):
    """The table's row of [PAD] gets gradients only where the decoder uses it."""
    labels, arguments = LABELS[name], (3,) if 'Classification' in name else ()
    torch.manual_seed(0)
    theirs = getattr(original, name)(original.BertConfig(30, **SIZES), *arguments)
    block = getattr(ours, name)(ours.BertConfig(30, **SIZES), *arguments)
    assert block.load_state_dict(theirs.state_dict()) == ([], [])
    assert block.state_dict().keys() == theirs.state_dict().keys()
    mask = [[int(word > 0) for word in row] for row in WORDS]
    their_loss = theirs(torch.tensor(WORDS), None, torch.tensor(mask), *map(torch.tensor, labels))
    their_loss.backward()
    block.hybridize()
    arrays = [mx.nd.array(array, dtype='int32') for array in (WORDS, mask, *labels)]
    with mx.autograd.record():
        loss = block(arrays[0], None, *arrays[1:])
    loss.backward()
    np.testing.assert_allclose(loss.asscalar(), their_loss.item(), rtol=1e-5)
    gradients = {key: each.grad for key, each in theirs.named_parameters()}
    tables = {key: each for key, each in block.named_parameters() if 'embeddings.' in key}
    assert len(tables) == 5
    for key, parameter in tables.items():
        np.testing.assert_allclose(parameter.grad().asnumpy(), gradients[key], atol=1e-5)
