"""--batch_tokens in all training scripts: unequal batches, resumed, shared by workers, weighted."""

import mxnet as mx
import numpy as np
import pytest
from contract import killed
from script_runs import SCRIPTS, assert_same_model, run, train_in_workers, without
from test_contract import assert_ended_equal
from training_loops import training_loop

from model_zoo.batches import BucketedLoader, Sample, make_batch
from model_zoo.training import Callback, mean_over_examples

SIZES = '--batch_size', '--batch-size', '--train_batch_size'


def by_tokens(argv, tokens, *more):
    """A command line with ``--batch_tokens`` instead of a batch size."""
    return [*without(argv, *SIZES), '--batch_tokens', str(tokens), *map(str, more)]


@pytest.mark.parametrize('name', ['finetune_squad', 'finetune_tagging'])
def test_killed_and_resumed_is_as_unbroken(toys, name, tmp_path):
    toy = toys(name)
    tokens, more = 400, ['--training_steps', 5, '--ckpt_interval', 2]
    whole, broken = (
        by_tokens(toy.case.again(toy.data, tmp_path / each), tokens, *more)
        for each in ('whole', 'broken')
    )
    assert run(toy.script, *whole) == 0
    with killed(toy.case.accumulate * 4):
        run(toy.script, *broken)
    assert run(toy.script, *broken, '--resume') == 0
    assert_ended_equal(tmp_path / 'broken', tmp_path / 'whole')


def test_two_workers_train_as_one(toys, tmp_path):
    toy = toys('finetune_swag')
    one, two = tmp_path / 'one', tmp_path / 'two'
    more = ['--training_steps', 4]
    argv = by_tokens(toy.case.again(toy.data, two), 200, *more, '--comm_backend', 'horovod')
    train_in_workers(2, SCRIPTS / 'finetune_swag.py', *argv)
    assert run(toy.script, *by_tokens(toy.case.again(toy.data, one), 400, *more)) == 0
    assert_same_model(one, two, 1e-5)


def test_each_example_of_an_update_weighs_the_same():
    """However many examples its batch has: the gradient is that of one batch of all of them."""
    lengths = np.random.RandomState(0).randint(1, 30, 60)
    samples = [
        Sample(np.full(length, number % 7 + 1, np.int32), None, float(number % 3))
        for number, length in enumerate(lengths)
    ]
    loader = BucketedLoader(samples, shuffle=True, pad_val=0, batch_tokens=64)
    chosen = loader.batch_indices(0)[:4]
    assert len({len(rows) for rows in chosen}) > 1

    def gradient(loader, accumulate):
        mx.random.seed(1)
        block = mx.gluon.nn.Embedding(8, 1)
        block.initialize(mx.init.Normal(1.0))

        def loss(batch):
            mask = mx.nd.SequenceMask(block(batch.words), batch.valid_length, True, axis=1).sum(
                axis=(1, 2)
            )
            return ((mask / batch.valid_length - batch.labels) ** 2).mean()

        found = []

        class Gradient(Callback):
            def on_step(self, loop):
                found.append(block.weight.grad().asnumpy().copy())

        trainer = mx.gluon.Trainer(
            block.collect_params(), 'sgd', {'learning_rate': 0}, update_on_kvstore=False
        )
        training_loop(
            block,
            trainer,
            mean_over_examples(loss),
            loader,
            1,
            max_grad_norm=None,
            accumulate=accumulate,
            callbacks=[Gradient()],
        ).run()
        return found[0]

    class Whole:
        def epoch(self, epoch, start=0):
            rows = np.concatenate(chosen)
            yield make_batch([samples[row] for row in rows], 0, indices=rows)

    np.testing.assert_allclose(gradient(loader, 4), gradient(Whole(), 1), rtol=1e-5, atol=1e-6)
