"""ALBERT: shared layers, their groups, removed heads, and the tokenizer."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import assert_same
from refusals import refuses
from variant_models import MAKERS

import bert
from export import export_block, export_onnx
from model_zoo.analysis import heads_to_prune
from model_zoo.registry import get_family

WORDS = mx.nd.array([[3, 9, 4, 7, 5]])


def make(block_class=bert.AlbertModel, **sizes):
    return tiny.make(block_class, num_attention_heads=4, **sizes)


def test_layers_of_a_group_share_their_parameters(tmp_path):
    one, six = (make(num_hidden_layers=count) for count in (1, 6))
    names = list(six.parameters_by_name())
    assert names == list(one.parameters_by_name())
    export_block(six, str(tmp_path), 'six')  # compared with the block
    stored = mx.nd.load(str(tmp_path / 'six-0000.params'))
    assert len(stored) == len(names)
    onnx = pytest.importorskip('onnx')
    for optimize in (False, True):  # compared with the block
        graph = onnx.load(export_onnx(six, str(tmp_path), 'six', optimize)).graph
        shapes = [tuple(each.dims) for each in graph.initializer if 'ffn_1_weight' in each.name]
        assert shapes == [(six.config.intermediate_size, six.config.units)]  # not its transpose


def test_groups_compute_as_a_model_of_as_many_layers_with_equal_parameters():
    """Two groups of two layers with parameters of their own each; each group computes twice."""
    sizes = {'num_hidden_layers': 4, 'inner_group_num': 2}
    shared = make(num_hidden_groups=2, **sizes)
    apart = make(num_hidden_groups=4, **sizes)
    own = shared.parameters_by_name()
    for name, parameter in apart.parameters_by_name().items():
        start, _, rest = name.partition('.layers.')
        group, _, rest = rest.partition('.')
        source = f'{start}.layers.{int(group) // 2}.{rest}' if rest else name
        parameter.set_data(own[source].data())
    assert len(shared.attentions()) == 8 and len({*shared.attentions()}) == 4
    for one, other in zip(shared(WORDS), apart(WORDS)):
        assert_same(one, other, 1e-6)
    with refuses('num_hidden_groups'):
        make(num_hidden_groups=5, **sizes)


def test_layers_that_share_parameters_lose_the_same_heads(tmp_path):
    block = make(num_hidden_layers=4, num_hidden_groups=2)
    mask = mx.nd.array([[1, 0, 1, 0]] * 2 + [[1, 1, 1, 0]] * 2)
    expected = block(WORDS, head_mask=mask)[0]
    block.hybridize(static_alloc=True)
    needed = mask.asnumpy()
    needed[0, 3] = 1  # by the first layer, so that the second one keeps it, too
    assert heads_to_prune(needed, block.config) == {0: [1], 1: [1], 2: [3], 3: [3]}
    block.prune_heads({0: [1], 1: [3], 3: [3]})
    assert block.config.pruned_heads == {0: [1, 3], 1: [1, 3], 2: [3], 3: [3]}
    assert_same(block(WORDS)[0], expected)
    block.save_pretrained(str(tmp_path), format='huggingface')
    assert_same(bert.AlbertModel.from_pretrained(str(tmp_path))(WORDS)[0], expected)
    with refuses(says='layer 2'):
        block.prune_heads({2: [0, 1], 3: [2]})


def test_order_of_sentences():
    assert not get_family('albert').predicts_next  # pre-training makes no swapped sentences
    block = make(bert.AlbertForPreTraining)
    labels = {'masked_lm_labels': mx.nd.array([[-1, 8, -1, -1, -1]])}
    losses = [block(WORDS, **labels, next_sentence_label=mx.nd.array([n])) for n in (0, 1)]
    words, order = (scores.asnumpy() for scores in block(WORDS))
    assert words.shape == (1, 5, 40) and order.shape == (1, 2)
    difference = (losses[1] - losses[0]).asscalar()
    np.testing.assert_allclose(difference, order[0, 0] - order[0, 1], rtol=1e-4)


def test_tokenizer(tmp_path):
    _, tokenizer = MAKERS['albert'](tmp_path)
    encoding = tokenizer.encode('The C\u00c1T [MASK]', 'a \u4e2d')
    assert tokenizer.decode(encoding, skip_special_tokens=True).startswith('the cat a')
    assert encoding.tokens[0] == '[CLS]' and encoding.tokens.count('[SEP]') == 2
    assert tokenizer.mask_token_id in encoding and tokenizer.unk_token_id in encoding
    assert encoding.token_types[0] == 0 and encoding.token_types[-1] == 1
    path = str(tmp_path / 'spiece.model')
    kept = bert.AlbertTokenizer.from_pretrained(path, do_lower_case=False, keep_accents=True)
    assert kept.unk_token_id in kept.encode('C\u00c1T') and not kept.do_lower_case
    with refuses(says='<pad>'):
        bert.AlbertTokenizer(tiny.learn_pieces(tmp_path / 'x.model', ['a b c'] * 9, 8))
