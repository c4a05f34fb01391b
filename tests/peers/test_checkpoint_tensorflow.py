"""TensorFlow's checkpoints: read as their own programs compute, and written for these."""

import json
import os

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import stored

import bert
import gpt2
import transfo_xl
from model_zoo.checkpoint import read_tensors
from model_zoo.errors import InputError

tensorflow = pytest.importorskip('tensorflow')
pytestmark = pytest.mark.peers

#: checkpoint -> its name, our block, and what we leave out of it
CHECKPOINTS = {
    'bert_tensorflow': ('bert_model.ckpt', bert.BertForPreTraining, ('adam_', 'global_step')),
    'bert_squad_tensorflow': ('model.ckpt-10', bert.BertForQuestionAnswering, ('bert/pooler',)),
    'gpt2_tensorflow': ('model.ckpt', gpt2.GPT2LMHeadModel, ()),
    'transfo_xl_tensorflow': ('model.ckpt', transfo_xl.TransfoXLLMHeadModel, ()),
    'transfo_xl_tied_tensorflow': ('model.ckpt', transfo_xl.TransfoXLLMHeadModel, ()),
}


@pytest.fixture
def folder(fixtures):
    return lambda name: str(fixtures / 'checkpoints' / name)


def load(block_class, folder, **options):
    expected = stored(os.path.join(folder, 'outputs.npz'))
    block = block_class.from_pretrained(folder, from_tf=True, **options)
    inputs = [
        mx.nd.array(expected[name], dtype='int32')
        for name in ('words', 'types', 'valid')
        if name in expected
    ]
    return block, inputs, expected


def assert_close(ours, theirs, where=...):
    np.testing.assert_allclose(ours.asnumpy()[where], theirs[where], rtol=0, atol=1e-5)


def test_bert_squad(folder):
    name = folder('bert_squad_tensorflow')
    block, inputs, expected = load(bert.BertForQuestionAnswering, name)
    kept = np.arange(inputs[0].shape[1]) < expected['valid'][:, None]
    for ours, theirs in zip(block(*inputs), ('start', 'end')):
        assert_close(ours, expected[theirs], kept)
    # the newer one of two in its folder; the older by its name
    old = bert.BertForQuestionAnswering.from_pretrained(os.path.join(name, 'model.ckpt-5'))
    one, other = (each.bert.word_embed.weight.data().asnumpy() for each in (old, block))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize('name', ['transfo_xl_tensorflow', 'transfo_xl_tied_tensorflow'])
def test_transfo_xl(folder, name):
    """kimiyoung/transformer-xl: the loss and the memories after two segments."""
    block_class = transfo_xl.TransfoXLLMHeadModel
    block, _, expected = load(block_class, folder(name))
    mems = None
    for number, segment in enumerate(expected['words']):
        words, labels = (mx.nd.array(x, dtype='int32') for x in (segment[:, :-1], segment[:, 1:]))
        losses, mems = block(words, mems, None, labels)
        assert abs(losses.mean().asscalar() - expected['losses'][number]) < 1e-5
        for ours, theirs in zip(mems, expected['mems'][number]):
            assert_close(ours, theirs)


@pytest.mark.parametrize('name', CHECKPOINTS)
def test_round_trip(folder, name, tmp_path):
    """What we write has the very variables of the original program."""
    prefix, block_class, left_out = CHECKPOINTS[name]
    block = block_class.from_pretrained(folder(name))
    block.save_pretrained(str(tmp_path), format='tensorflow')
    theirs, _ = read_tensors(os.path.join(folder(name), prefix))
    ours, _ = read_tensors(tmp_path / 'model.ckpt')
    wanted = {key for key in theirs if not any(part in key for part in left_out)}
    assert set(ours) == wanted
    for key in wanted:
        np.testing.assert_array_equal(ours[key], theirs[key])
    assert tensorflow.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / 'model.ckpt')
    for file in ('bert_config.json', 'hparams.json'):
        if os.path.exists(os.path.join(folder(name), file)):
            with open(os.path.join(folder(name), file)) as original:
                theirs = json.load(original)
            ours = json.loads((tmp_path / file).read_text())
            assert {**ours, **theirs} == ours
    block_class.from_pretrained(str(tmp_path))


def test_task_heads(tmp_path):
    """The classifier is where run_classifier.py has it; its pooled text is untouched."""
    sizes = {'hidden_size': 8, 'intermediate_size': 512, 'num_labels': 3}
    block = tiny.make(bert.BertForSequenceClassification, **sizes)
    block.save_pretrained(str(tmp_path), format='tensorflow')
    variables = dict(tensorflow.train.list_variables(str(tmp_path / 'model.ckpt')))
    assert variables['output_weights'] == [3, 8] and variables['output_bias'] == [3]
    assert variables['bert/encoder/layer_0/intermediate/dense/kernel'] == [8, 512]  # no padding
    back = bert.BertForSequenceClassification.from_pretrained(str(tmp_path))
    words = mx.nd.array([[1, 2, 3]], dtype='int32')
    assert_close(back(words), block(words).asnumpy())
    block.bert.prune_heads({0: [1]})
    with pytest.raises(InputError):
        block.save_pretrained(str(tmp_path / 'pruned'), format='tensorflow')
