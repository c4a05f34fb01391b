"""The objective of pre-training: its terms, exact accumulation, evaluation, log and curves."""

import mxnet as mx
import numpy as np
import pytest
import tiny
from toy_data import LENGTH, make_samples
from training_loops import training_loop

from bert import BertForPreTraining
from model_zoo.optimizer import disable_weight_decay, finetune_schedule
from model_zoo.tasks.masked_lm import evaluate_pretraining, pretraining_objective
from model_zoo.tasks.pretraining.loaders import make_batch
from model_zoo.training.checkpoint import seed_all
from model_zoo.training.updater import HostTrainer


def make_model(seed=1, ctx=None):
    """A small one without dropout, hybridized."""
    config = tiny.bert_config(
        50,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
    )
    model = BertForPreTraining(config)
    seed_all(seed)
    model.initialize(ctx=ctx)
    model.hybridize(static_alloc=True)
    return model


def batch_of(samples, rows, ctx=None):
    return make_batch(samples.take(rows), np.array(rows), 0, 8, ctx)


class Loader:
    """The same samples in each epoch, in batches of the sizes given."""

    def __init__(self, samples, sizes, ctx=None):
        ends = np.cumsum(sizes)
        self.batches = [
            batch_of(samples, list(range(end - size, end)), ctx) for size, end in zip(sizes, ends)
        ]

    def epoch(self, epoch, start=0):
        yield from self.batches[start:]


def make_loop(model, loader, num_steps=10, kind=mx.gluon.Trainer, accuracies=True, **options):
    disable_weight_decay(model)
    trainer = kind(model.collect_params(), 'bertadam', {'wd': 0.01}, update_on_kvstore=False)
    options.setdefault('schedule', finetune_schedule(1e-3, num_steps, 0.2, first_step=1))
    objective = pretraining_objective(model, accuracies)
    return training_loop(model, trainer, objective, loader, num_steps, **options)


def parameters_of(model):
    return [
        parameter.data(parameter.list_ctx()[0]).asnumpy()
        for parameter in model.collect_params().values()
    ]


def largest_difference(model, other):
    return max(np.abs(a - b).max() for a, b in zip(parameters_of(model), parameters_of(other)))


def test_terms_are_those_of_the_scores():
    """Against a computation in float64 of the means of the negative log probabilities."""
    model, batch = make_model(), batch_of(make_samples(5, 0), range(5))
    objective = pretraining_objective(model)
    results = [array.asscalar() for array in objective.terms(batch)]
    masked_lm, next_sentence = (
        scores.asnumpy().astype('float64')
        for scores in model(*batch.inputs, batch.masked_positions)
    )
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


@pytest.mark.parametrize('devices', [1, 2])
def test_optimizer_on_the_host(devices, tmp_path):
    """The same parameters as with the states on the device, also after a resume."""
    from model_zoo.training.checkpoint import CheckpointStore

    contexts = [mx.cpu(1), mx.cpu(2)][:devices]
    samples = make_samples(16, 0)
    usual, ours = make_model(), make_model(ctx=contexts)
    make_loop(usual, Loader(samples, [8, 8]), num_steps=6, accumulate=devices).run()

    def loader():
        result = Loader(samples, [8, 8])
        result.batches = [
            batch_of(samples, batch.indices, contexts[number % devices])
            for number, batch in enumerate(result.batches)
        ]
        return result

    options = {'num_steps': 6, 'accumulate': devices, 'kind': HostTrainer}
    loop = make_loop(
        ours, loader(), store=CheckpointStore(str(tmp_path), 9), checkpoint_interval=2, **options
    )
    loop.run()
    assert largest_difference(usual, ours) < 1e-6
    states = loop.updater.trainer._updaters[0].states
    assert {array.context for state in states.values() for array in state} == {mx.cpu()}

    again = make_model(seed=2, ctx=contexts)
    resumed = make_loop(again, loader(), store=CheckpointStore(str(tmp_path), 9), **options)
    resumed.resume(step=4)
    resumed.run()
    assert largest_difference(ours, again) == 0


def test_evaluation_is_over_all_words_and_samples():
    """In whatever batches, and without any part of some of them."""
    model, samples = make_model(), make_samples(20, 0)
    objective = pretraining_objective(model)
    loader = Loader(samples, [3, 10, 7])
    loader.batches.insert(1, None)
    score, report = evaluate_pretraining(objective, loader)
    values = [array.asscalar() for array in objective.terms(batch_of(samples, range(20)))]
    words = samples.masked_lm_weights.sum()
    expected = {
        'mlm_loss': values[0],
        'nsp_loss': values[1],
        'mlm_acc': values[2] / words,
        'nsp_acc': values[3] / 20,
    }
    assert report['eval'] == pytest.approx(expected, rel=1e-5)
    assert score == pytest.approx(-values[0] - values[1], rel=1e-5)
