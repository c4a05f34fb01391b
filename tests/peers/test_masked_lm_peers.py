"""The pre-training of masked words alone, against transformers: same weights, same batch."""

import numpy as np
import pytest
from test_variants_peers import CONFIGS, their_model

import bert
from model_zoo.batches import Batch
from model_zoo.tasks.masked_lm import pretraining_objective
from model_zoo.tasks.pretraining.files import Samples
from model_zoo.tasks.pretraining.loaders import make_batch

torch = pytest.importorskip('torch')
transformers = pytest.importorskip('transformers')
pytestmark = pytest.mark.peers

VOCAB, PAD, LENGTH, MASKS = 40, 1, 12, 3
NO_DROPOUT = (
    ('hidden_dropout_prob', 'attention_probs_dropout_prob'),
    ('dropout', 'attention_dropout'),
)


def make_samples():
    random = np.random.RandomState(0)
    lengths = random.randint(7, LENGTH + 1, 5).astype(np.int32)
    ids = random.randint(PAD + 1, VOCAB, (5, LENGTH)).astype(np.int32)
    places = np.sort([random.permutation(6)[:MASKS] + 1 for _ in lengths]).astype(np.int32)
    weights = (np.arange(MASKS) < random.randint(1, MASKS + 1, (5, 1))).astype(np.float32)
    words = random.randint(PAD + 1, VOCAB, places.shape).astype(np.int32)
    zeros = np.zeros_like(lengths)
    return Samples(ids, np.zeros_like(ids), places, words * (weights > 0), weights, zeros, lengths)


@pytest.mark.parametrize('family', CONFIGS)
def test_loss_and_gradient(family, tmp_path):
    """The mean over the masked words of the batch, whatever their number in each sample."""
    names = NO_DROPOUT[family == 'DistilBert']
    theirs = their_model(family, 'ForMaskedLM', **dict.fromkeys(names, 0.0))
    theirs.save_pretrained(str(tmp_path))
    ours = getattr(bert, f'{family}ForMaskedLM').from_pretrained(str(tmp_path))
    samples = make_samples()
    batch = make_batch(samples, np.arange(5), PAD, 1, None)
    assert isinstance(batch, Batch)
    objective = pretraining_objective(ours)
    counts = objective.count([batch])
    loss, right = objective.backward([batch], counts, counts[0]).asnumpy() / counts[0, 0]

    words = batch.words.asnumpy().astype(int)
    labels = np.full_like(words, -100)
    rows, columns = np.nonzero(samples.masked_lm_weights)
    places = samples.masked_lm_positions[rows, columns]
    labels[rows, places] = samples.masked_lm_ids[rows, columns]
    mask = np.arange(words.shape[1]) < samples.valid_lengths[:, None]
    outputs = theirs(
        torch.tensor(words), attention_mask=torch.tensor(mask).long(), labels=torch.tensor(labels)
    )
    np.testing.assert_allclose(loss, outputs.loss.item(), rtol=1e-5)
    guesses = outputs.logits.argmax(-1).numpy()
    right_of_theirs = np.mean(guesses[labels >= 0] == labels[labels >= 0])
    assert right == pytest.approx(right_of_theirs)
    outputs.loss.backward()
    gradient = theirs.get_input_embeddings().weight.grad.numpy()
    found = ours.base.word_embed.weight.grad().asnumpy()[:VOCAB]
    np.testing.assert_allclose(found, gradient, atol=1e-5)
