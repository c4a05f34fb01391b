"""The objective of pre-training: its terms, exact accumulation, evaluation, log and curves."""

import numpy as np
import pytest
import tiny
from toy_data import LENGTH, make_samples

from bert import BertForPreTraining
from model_zoo.tasks.masked_lm import evaluate_pretraining, pretraining_objective
from model_zoo.tasks.pretraining.loaders import make_batch
from model_zoo.training.checkpoint import seed_all


def make_model(seed=1, ctx=None):
    """A small one without dropout, hybridized."""
    dropout = {'hidden_dropout_prob': 0.0, 'attention_probs_dropout_prob': 0.0}
    sizes = {'max_position_embeddings': LENGTH, 'initializer_range': 0.1, **dropout}
    config = tiny.bert_config(50, **sizes)
    model = BertForPreTraining(config)
    seed_all(seed)
    model.initialize(ctx=ctx)
    model.hybridize(static_alloc=True)
    return model


def batch_of(samples, rows, ctx=None):
    return make_batch(samples.take(rows), np.array(rows), 0, 8, ctx)


class Loader(list):
    """The same batches in each epoch."""

    def epoch(self, epoch, start=0):
        yield from self[start:]


def test_terms_are_those_of_the_scores():
    """Against a computation in float64 of the means of the negative log probabilities."""
    model, batch = make_model(), batch_of(make_samples(5, 0), range(5))
    objective = pretraining_objective(model)
    results = [array.asscalar() for array in objective.terms(batch)]
    scores = model(*batch.inputs, batch.masked_positions)
    masked_lm, next_sentence = (each.asnumpy().astype('float64') for each in scores)
    expected = []
    weights = batch.masked_weights.asnumpy().astype(bool)
    for scores, labels in (
        (masked_lm[weights], batch.masked_ids.asnumpy()[weights]),
        (next_sentence, batch.next_sentence_labels.asnumpy()),
    ):
        logs = scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))
        expected.append((-logs[np.arange(len(labels)), labels], scores.argmax(-1) == labels))
    (losses, words), (nsp_losses, pairs) = expected
    assert objective.counts(batch) == (len(words), len(pairs)) == (batch.num_masked, 5)
    np.testing.assert_allclose(
        results, [losses.mean(), nsp_losses.mean(), words.sum(), pairs.sum()], rtol=1e-5
    )


def test_evaluation_is_over_all_words_and_samples():
    """In whatever batches, and without any part of some of them."""
    model, samples = make_model(), make_samples(20, 0)
    objective = pretraining_objective(model)
    parts = [batch_of(samples, range(*part)) for part in ((0, 3), (3, 13), (13, 20))]
    score, report = evaluate_pretraining(objective, Loader([parts[0], None, *parts[1:]]))
    values = [array.asscalar() for array in objective.terms(batch_of(samples, range(20)))]
    words = samples.masked_lm_weights.sum()
    expected = {'mlm_loss': values[0], 'mlm_acc': values[2] / words}
    expected.update(nsp_loss=values[1], nsp_acc=values[3] / 20)
    assert report['eval'] == pytest.approx(expected, rel=1e-5)
    assert score == pytest.approx(-values[0] - values[1], rel=1e-5)
