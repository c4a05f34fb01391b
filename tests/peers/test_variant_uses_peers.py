"""The models like BERT in use, beside transformers and ONNX Runtime: pipelines, exports."""

import mxnet as mx
import pytest
from variant_models import MAKERS

from export import export_onnx
from model_zoo.registry import get_family

transformers = pytest.importorskip('transformers')
pytestmark = pytest.mark.peers

#: the other heads have the operators of these
CASES = [
    (family, block)
    for family in MAKERS
    for block in get_family(family).blocks
    if block.__name__.endswith(('Model', 'ForPreTraining', 'ForMaskedLM', 'Classification'))
]


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """A function of a family's name that gives its configuration and its tokenizer."""
    found = {}

    def make(family):
        if family not in found:
            block, tokenizer = MAKERS[family](tmp_path_factory.mktemp(family))
            found[family] = block.config, tokenizer
        return found[family]

    return make


def new(block_class, config):
    mx.random.seed(3)
    block = block_class(config)
    block.initialize(mx.init.Normal(0.3))
    return block


@pytest.mark.parametrize('family, block_class', CASES)
def test_onnx(tmp_path, made, family, block_class):
    """Which ONNX Runtime compares with the block, for masks with holes."""
    pytest.importorskip('onnxruntime')
    onnx = pytest.importorskip('onnx')
    path = export_onnx(new(block_class, made(family)[0]), str(tmp_path), 'model')
    names = {each.name for each in onnx.load(path).graph.input}
    types = set() if 'token_types' in block_class.unused_inputs else {'token_type_ids'}
    assert names == {'input_ids', 'attention_mask', *types}
