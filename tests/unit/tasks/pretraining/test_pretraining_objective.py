"""The objective of pre-training: its terms, exact accumulation, evaluation, log and curves."""

import logging

import mxnet as mx
import numpy as np
import pytest
import tiny
from script_runs import load_script
from toy_data import LENGTH, make_samples
from training_loops import training_loop

from bert import BertForPreTraining
from model_zoo.optimizer import disable_weight_decay, finetune_schedule
from model_zoo.tasks.masked_lm import evaluate_pretraining, pretraining_objective
from model_zoo.tasks.pretraining import make_batch
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


def test_right_predictions_are_counted_where_the_weight_is_1():
    model = make_model()
    batch = batch_of(make_samples(8, 0), range(8))
    scores, pairs = model(*batch.inputs, batch.masked_positions)
    batch.masked_ids = scores.argmax(axis=-1)
    batch.next_sentence_labels = pairs.argmax(axis=-1)
    _, _, words, sentences = pretraining_objective(model).terms(batch)
    assert words.asscalar() == batch.num_masked < batch.masked_ids.size
    assert sentences.asscalar() == 8


def test_without_accuracies():
    model, batch = make_model(), batch_of(make_samples(3, 0), range(3))
    with_them, without = (pretraining_objective(model, wanted) for wanted in (True, False))
    assert (with_them.num_sums, without.num_sums) == (4, 2)
    both = with_them.terms(batch), without.terms(batch)
    assert [array.asscalar() for array in both[0][:2]] == [array.asscalar() for array in both[1]]


@pytest.mark.parametrize('sizes', [[8] * 4, [1, 15, 10, 6]], ids=str)
def test_accumulation_is_exact(sizes):
    """A batch of 32 gives the parameters of 4 parts, whose token counts differ, after 10 steps."""
    samples = make_samples(32, 0)
    whole, parts = make_model(), make_model()
    start = parameters_of(whole)
    whole_state = make_loop(whole, Loader(samples, [32]), log_interval=1).run()
    loader = Loader(samples, sizes)
    assert len({batch.num_masked for batch in loader.batches}) > 1
    state = make_loop(parts, loader, accumulate=4, log_interval=1).run()
    assert state.step == whole_state.step == 10
    assert max(np.abs(a - b).max() for a, b in zip(start, parameters_of(whole))) > 1e-3
    assert largest_difference(whole, parts) < 1e-6
    for ours, theirs in zip(state.log, whole_state.log):
        for name in ('loss', 'mlm_loss', 'mlm_acc', 'nsp_loss', 'nsp_acc', 'grad_norm'):
            assert ours[name] == pytest.approx(theirs[name], rel=1e-4), name


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


def test_log_lines_are_gluonnlps(caplog):
    loop = make_loop(
        make_model(),
        Loader(make_samples(8, 0), [4, 4]),
        num_steps=4,
        log_interval=2,
        callbacks=[load_script('run_pretraining').PretrainingLogger(terminal=False)],
    )
    with caplog.at_level(logging.INFO):
        loop.run()
    lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith('[step ')]
    assert len(lines) == 2
    fields = lines[1].split('\t')
    assert fields[0] == '[step 4]'
    assert [field.split('=')[0] for field in fields[1:]] == [
        'mlm_loss',
        'mlm_acc',
        'nsp_loss',
        'nsp_acc',
        'throughput',
        'lr',
    ]
    record = loop.state.log[-1]
    assert float(fields[2].split('=')[1]) == pytest.approx(100 * record['mlm_acc'], abs=0.01)
    seconds, latency = (part.split('=')[1] for part in fields[6].split(' ', 1)[1].split(', '))
    assert float(latency.split()[0]) == pytest.approx(500 * float(seconds), rel=0.6, abs=10)
    assert latency.endswith(' ms/step')
