"""BERT against pytorch-pretrained-bert and transformers themselves."""

import mxnet as mx
import numpy as np
import pytest
from arrays import assert_same
from bert_compare import (
    CONFIG,
    HEAD_MASKS,
    HEADS,
    NUM_LABELS,
    assert_gradients,
    assert_outputs,
    gradients,
    loss_and_gradients,
    make_block,
    make_inputs,
    mask_heads,
    run,
    torch_gradients,
)

torch = pytest.importorskip('torch')
pytest.importorskip('pytorch_pretrained_bert')
pytestmark = pytest.mark.peers
ORACLE = 'make_bert_fixtures'

LARGER = {
    **CONFIG,
    'hidden_size': 24,
    'num_attention_heads': 4,
    'num_hidden_layers': 3,
    'intermediate_size': 512,  # so that our feed-forward layers are padded
    'initializer_range': 0.1,
}


@pytest.mark.parametrize('name', HEADS)
def test_heads(oracle, tmp_path, name):
    """Outputs and losses within 1e-5, gradients of each parameter within 1e-4.

    The small model is compared with what the oracle recorded, in tests/unit.
    """
    padded = name != 'BertForQuestionAnswering'  # where padding takes part in theirs' softmax
    head = oracle.make_head(name, LARGER, seed=11)
    block = make_block(name, oracle.state_of(head), tmp_path, LARGER)
    for seed, (batch, length) in enumerate([(4, 9), (1, 4), (5, 12)]):
        block.hybridize(seed > 0, static_alloc=True, static_shape=True)
        inputs = make_inputs(name, padded, 11 + seed, batch, length)
        expected = oracle.run_head(head, inputs)
        assert_outputs(name, run(block, inputs), expected['outputs'], inputs['valid'])
        loss, ours = loss_and_gradients(block, inputs)
        assert abs(loss - expected['loss']) < 1e-5
        assert_gradients(ours, expected['gradients'])
        # each parameter of ours was compared, and the original's further ones have no gradient
        weights = {key for key in ours if not key.endswith('predictions.decoder.weight')}
        assert weights == set(expected['gradients'])


# -- transformers: what pytorch-pretrained-bert 0.6.2 doesn't have -------------------------------


@pytest.fixture
def their_classifier():
    """Makes transformers' BertForSequenceClassification with random weights."""
    transformers = pytest.importorskip('transformers')

    def make(**options):
        torch.manual_seed(3)
        config = transformers.BertConfig(
            **LARGER, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **options
        )
        config._attn_implementation = 'eager'  # the others give no attentions
        return transformers.BertForSequenceClassification(config).eval()

    return make


def projections(theirs):
    return [layer.attention.output.dense for layer in theirs.bert.encoder.layer]


def our_classifier(theirs, folder, **options):
    state = {key: value.numpy() for key, value in theirs.state_dict().items()}
    return make_block('BertForSequenceClassification', state, folder, LARGER, **options)


def arrays(inputs):
    return [mx.nd.array(inputs[key], dtype='int32') for key in ('words', 'types', 'valid')]


@pytest.mark.parametrize('kind', HEAD_MASKS)
def test_head_mask(oracle, tmp_path, their_classifier, kind):
    theirs = their_classifier(num_labels=NUM_LABELS)
    block = our_classifier(theirs, tmp_path)
    block.hybridize(static_alloc=True)
    inputs = make_inputs('BertForSequenceClassification', padded=True)
    words, types, mask = oracle.arguments(inputs)
    labels = inputs['labels'][0]
    head_mask = torch.tensor(HEAD_MASKS[kind], requires_grad=True)
    mask_heads(projections(theirs), head_mask)
    expected = theirs(words, mask, types, labels=torch.tensor(labels))
    expected.loss.backward()

    our_mask = mx.nd.array(HEAD_MASKS[kind])
    our_mask.attach_grad()
    scores = block(*arrays(inputs), None, our_mask)
    np.testing.assert_allclose(scores.asnumpy(), expected.logits.detach().numpy(), atol=1e-5)
    with mx.autograd.record(train_mode=False):
        loss = block(*arrays(inputs), mx.nd.array(labels), our_mask)
    loss.backward()
    assert abs(loss.asscalar() - expected.loss.item()) < 1e-5
    wanted = head_mask.grad.numpy()
    np.testing.assert_allclose(our_mask.grad.asnumpy(), wanted, atol=1e-4 * np.abs(wanted).max())
    assert_gradients(gradients(block), torch_gradients(theirs))


def test_attentions_and_hidden_states(oracle, tmp_path, their_classifier):
    theirs = their_classifier(num_labels=NUM_LABELS)
    block = our_classifier(theirs, tmp_path, output_attentions=True, output_all_encodings=True)
    inputs = make_inputs('BertForSequenceClassification', padded=True)
    words, types, mask = oracle.arguments(inputs)
    with torch.no_grad():
        expected = theirs.bert(
            words, mask, types, output_attentions=True, output_hidden_states=True
        )
    layers, attentions, pooled = block.bert(*arrays(inputs))
    assert len(layers) == len(attentions) == 3
    assert_same(pooled, expected.pooler_output.numpy())
    rows = mask.numpy() > 0
    for mine, wanted in zip(layers, expected.hidden_states[1:]):
        assert_same(mine.asnumpy()[rows], wanted.numpy()[rows])
    for mine, wanted in zip(attentions, expected.attentions):
        mine, wanted = mine.asnumpy().transpose(0, 2, 1, 3), wanted.numpy().transpose(0, 2, 1, 3)
        assert_same(mine[rows], wanted[rows])
