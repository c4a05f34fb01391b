"""bfloat16 inference: weights are cast once, and the results are those of the block."""

import json

import mxnet as mx
import numpy as np
import pytest
import tiny
from halves import needs_bfloat16

from bert import BertForPreTraining, BertForSequenceClassification
from model_zoo.inference import make_engine
from model_zoo.inference.mxnet_engine import CastBlock
from model_zoo.layers import precision


@pytest.mark.parametrize('block_class', [BertForSequenceClassification, BertForPreTraining])
def test_weights_are_cast_once(block_class, monkeypatch):
    block = tiny.make(block_class, 60)
    # a CPU without AVX-512 can make the graph, but not run it
    monkeypatch.setattr(precision, '_check_bfloat16', lambda block: None)
    block.cast('bfloat16')
    made = CastBlock(block)
    nodes = json.loads(made.symbol.tojson(remove_amp_cast=False))['nodes']
    products = [node for node in nodes if node['op'] == 'FullyConnected']
    assert len(products) >= 2 * 4 + 2
    weights = set()
    for node in products:
        data, *others = (nodes[i] for i, *_ in node['inputs'])
        assert data['op'] == 'amp_cast'  # activations are, at each call
        assert all(each['op'] == 'null' for each in others)
        weights.update(each['name'] for each in others)
    for name, array in made.parameters.items():
        assert (array.dtype == precision.BFLOAT16) == (name in weights), name
    casts = [node for node in nodes if node['op'] == 'amp_cast']
    names = {nodes[node['inputs'][0][0]]['name'] for node in casts}
    assert not names & {*made.parameters, *block.collect_params()}
    originals = {name: each.data().asnumpy() for name, each in block.collect_params().items()}
    for name in weights:
        value = mx.nd.amp_cast(made.parameters[name], dtype='float32').asnumpy()
        wanted = originals[name[: -len('_bfloat16')]]
        np.testing.assert_allclose(value, wanted, rtol=2**-8, atol=1e-30)


@needs_bfloat16
@pytest.mark.parametrize('block_class', [BertForSequenceClassification, BertForPreTraining])
def test_results_are_those_of_the_block(block_class):
    block = tiny.make(block_class, 60)
    block.cast('bfloat16')
    random = np.random.RandomState(0)
    arrays = [random.randint(0, high, (3, 11)).astype('int32') for high in (60, 2)]
    lengths = np.array([11, 4, 7], 'int32')
    found = make_engine(block, 'mxnet', 'bfloat16').run(*arrays, lengths)
    wanted = block(*map(mx.nd.array, (*arrays, lengths)))
    wanted = wanted if isinstance(wanted, (list, tuple)) else [wanted]
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other.asnumpy(), rtol=0, atol=1e-5)
