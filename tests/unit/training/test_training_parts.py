"""What the training loop does with several terms, workers, devices, intervals and in float16."""

import functools

import numpy as np
import pytest
import training_loops
from arrays import assert_same
from refusals import refuses
from training_loops import Rows, assert_close, values

from model_zoo.errors import CheckpointError, MissingExtraError
from model_zoo.training.callbacks import Callback
from model_zoo.training.checkpoint import CheckpointStore
from model_zoo.training.loop import DivergedError, Interrupted
from model_zoo.training.updater import LossScale
from model_zoo.training.workers import Workers, make_workers

make_loop = functools.partial(training_loops.make_loop, num_steps=10)
trained = functools.partial(training_loops.trained, num_steps=10)


@pytest.fixture(scope='module')
def whole():
    return trained(loader=Rows(12), log_interval=1)


def test_accumulation_is_exact_for_each_term(whole):
    parts = trained(loader=Rows(3), accumulate=4, log_interval=1)
    assert_close(whole, parts, 1e-6)
    assert all(parameter.grad_req == 'write' for parameter in parts.updater.parameters)
    for left, right in zip(whole.state.log, parts.state.log):
        for name in ('loss', 'one_loss', 'two_loss', 'one_acc', 'two_acc', 'grad_norm'):
            assert left[name] == pytest.approx(right[name], rel=2e-5), name
        assert left['loss'] == pytest.approx(left['one_loss'] + left['two_loss'])
    assert whole.state.tokens == parts.state.tokens == 10 * 12 * 10
    assert 0 <= whole.state.log[0]['one_acc'] <= 1
    # it wouldn't be, were each part's mean taken for what it is
    counts = {int(batch[3].sum()) for batch in Rows(3).epoch(0)}
    assert len(counts) > 1


class Alone(Workers):
    """Worker `rank` of two whose fellow does nothing but have a part of each batch."""

    size = 2

    def __init__(self, rank, others):
        self.rank, self._others, self.summed = rank, others, 0

    def sum(self, values):
        values = np.asarray(values, np.float64)
        return values + self._others if values.ndim == 1 else values

    def sum_gradients(self, parameters):
        self.summed += 1


def test_a_worker_weights_its_part_with_what_all_have_and_may_have_none(tmp_path):
    class Log(Callback):
        def on_log(self, loop, record):
            raise AssertionError('worker 1 has no callbacks')

    workers = Alone(1, np.array([100.0, 200.0, 0.0]))
    options = {'max_grad_norm': None, 'workers': workers, 'num_steps': 3, 'optimizer': 'sgd'}
    loop = make_loop(tmp_path, Rows(2, rank=1, parts=2), callbacks=[Log()], **options)
    before = values(loop)
    loop.run()
    small = max(abs(one - two).max() for one, two in zip(values(loop), before))
    assert 0 < small < 0.01  # one example of some 200
    assert workers.summed == 3 and CheckpointStore(tmp_path).paths() == []

    empty = make_loop(loader=Rows(1, rank=1, parts=2), **options)
    before = values(empty)
    empty.run()
    assert_same(values(empty), before, 0)


def test_workers_stop_together():
    fellow_was_interrupted = Alone(1, np.array([5.0, 5.0, 1.0]))
    with pytest.raises(Interrupted):
        make_loop(loader=Rows(4), workers=fellow_was_interrupted).run()


def test_intervals_of_evaluations_and_checkpoints(tmp_path):
    calls = []

    def evaluate(guard):
        calls.append(loop.state.step)
        return float(len(calls)), {}

    store = CheckpointStore(str(tmp_path), keep=20)
    options = {'loader': Rows(12), 'num_steps': 11, 'evaluate_interval': 4, 'store': store}
    loop = make_loop(evaluate=evaluate, checkpoint_interval=3, **options)
    state = loop.run()
    assert calls == [4, 8, 11] == [record['step'] for record in state.epochs]
    steps = [3, 4, 6, 8, 9, 11]
    assert [store.at(step).state['step'] for step in steps] == steps and len(store.paths()) == 6
    with pytest.raises(CheckpointError):
        store.at(5)
    resumed = make_loop(**options)
    for step in (11, 8, 6, 3):
        resumed.resume(step)
        resumed.run()
        assert_close(loop, resumed)
        assert [record['step'] for record in resumed.state.epochs][-1] == 11
    assert resumed.state.step == 11


def overflowing():
    """Rows of which the third update overflows."""
    return Rows(12, factor=lambda epoch, number: 1e30 if (epoch, number) == (1, 0) else 1)


def test_a_loss_scale_changes_nothing_but_skips_what_overflows(whole):
    scaled = trained(loader=Rows(12), loss_scale=LossScale(), log_interval=1)
    assert_close(whole, scaled)  # a power of 2
    assert scaled.state.log[-1]['loss_scale'] == 2**16 and scaled.state.log[-1]['skipped'] == 0

    state = make_loop(loader=overflowing(), loss_scale=LossScale(window=3), log_interval=1).run()
    assert state.loss_scale.skipped == 1
    # 2 good ones, an overflow, whose loss isn't finite and has no record, and 7 good ones
    scales = [record['loss_scale'] / 2**16 for record in state.log]
    assert scales == [1, 1, 0.5, 0.5, 1, 1, 1, 2, 2]
    with pytest.raises(DivergedError):
        make_loop(loader=overflowing()).run()


def test_a_fixed_loss_scale_stays_and_skips_what_overflows():
    scale = LossScale(128.0, dynamic=False, window=3)
    state = make_loop(loader=overflowing(), loss_scale=scale, log_interval=1).run()
    assert (state.loss_scale.value, state.loss_scale.skipped) == (128, 1)
    assert {record['loss_scale'] for record in state.log} == {128}
    with pytest.raises(DivergedError):
        fixed = LossScale(128.0, dynamic=False)
        make_loop(loader=Rows(12, factor=lambda *_: np.nan), num_steps=150, loss_scale=fixed).run()


def test_the_loss_scale_is_resumed(tmp_path):
    options = {'loader': Rows(12), 'keep': 20, 'checkpoint_interval': 5}
    unbroken = trained(tmp_path, loss_scale=LossScale(window=3), **options)
    second = make_loop(tmp_path, loss_scale=LossScale(window=3), **options)
    second.resume(5)
    assert (second.state.loss_scale.value, second.state.loss_scale.good) == (2**17, 2)
    second.run()
    assert_close(unbroken, second)
    assert second.state.loss_scale == unbroken.state.loss_scale


def test_workers_by_name(without):
    alone = make_workers('device')
    assert (alone.rank, alone.size, alone.local_rank) == (0, 1, 0)
    assert alone.sum([1, 2]).tolist() == [1, 2]
    with refuses('allreduce_dtype'):
        make_workers('device', 'float16')
    without('horovod.mxnet')
    with pytest.raises(MissingExtraError):
        make_workers('horovod')
