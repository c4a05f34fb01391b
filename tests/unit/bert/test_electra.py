"""ELECTRA: the discriminator's head, the sizes of embeddings, and where its names lead."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from arrays import assert_same
from refusals import refuses

import bert
import model_zoo
from model_zoo.opening import open_model


@pytest.mark.parametrize('hybridized', [False, True])
def test_discriminator(tmp_path, hybridized):
    block = tiny.make(bert.ElectraForPreTraining)
    block.hybridize(hybridized)
    random = np.random.RandomState(0)
    words, types = mx.nd.array(random.randint(0, 40, (3, 9))), mx.nd.zeros((3, 9))
    lengths, labels = np.array([9, 4, 1]), random.randint(0, 2, (3, 9))
    scores = block(words, types, mx.nd.array(lengths))
    assert scores.shape == (3, 9)
    with mx.autograd.record():
        loss = block(words, types, mx.nd.array(lengths), mx.nd.array(labels))
    loss.backward()
    there = np.arange(9) < lengths[:, None]
    signs = np.where(labels, -1, 1) * scores.asnumpy()
    expected = np.log1p(np.exp(signs))[there].mean()
    # dropout only follows autograd, so the loss is computed without it
    loss = block(words, types, mx.nd.array(lengths), mx.nd.array(labels))
    np.testing.assert_allclose(loss.asscalar(), expected, rtol=1e-5)
    for part in (block.electra.encoder.project, block.discriminator_dense, block.discriminator):
        assert part.weight.grad().asnumpy().any()
    with refuses(says='labels'):
        block(words, types, None, mx.nd.array(labels + 1))
    block.save_pretrained(str(tmp_path))
    again = bert.ElectraForPreTraining.from_pretrained(str(tmp_path))
    assert_same(again(words, types, mx.nd.array(lengths)), scores, 1e-6)


@pytest.mark.parametrize('task', ['replaced_words', 'classification', 'multiple_choice', 'tagging'])
def test_heads_are_known_by_their_files(tmp_path, task):
    tokenizer = bert.BertTokenizer(tiny.write_words(tmp_path, map(str, range(35))))
    block_class = model_zoo.registry.get_family('electra').tasks[task]
    block = tiny.make(block_class)
    block.save_pretrained(str(tmp_path), tokenizer, format='huggingface')
    assert type(open_model(str(tmp_path)).block) is block_class


@pytest.mark.parametrize('task', ['classification', 'multiple_choice', 'tagging'])
def test_a_task_begins_with_the_discriminator(tmp_path, task):
    """Whose own head is no part of it."""
    block = tiny.make(bert.ElectraForPreTraining)
    block.save_pretrained(str(tmp_path), format='huggingface')
    head = model_zoo.registry.get_family('electra').tasks[task]
    begun = head.from_pretrained(str(tmp_path), num_labels=3)
    words = mx.nd.array([[3, 4, 5]])
    assert_same(begun.electra(words), block.electra(words), 1e-6)
