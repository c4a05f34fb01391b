"""The training loop, its checkpoints and what it writes, on a toy block."""

import functools
import logging
import os
import pickle
import shutil
import signal

import mxnet as mx
import numpy as np
import pytest
import training_loops
from killed_jobs import KILLED, in_fork
from mxnet.gluon import nn
from refusals import refuses
from training_loops import Rows, values
from training_loops import assert_close as assert_equal

from model_zoo.errors import CheckpointError
from model_zoo.optimizer import finetune_schedule
from model_zoo.training.callbacks import Callback, ProgressLogger, TensorBoardWriter
from model_zoo.training.checkpoint import CheckpointStore, load_optimizer, optimizer_tensors
from model_zoo.training.loop import DivergedError, Interrupted

SCHEDULE = finetune_schedule(0.05, 18)
make_loop = functools.partial(training_loops.make_loop, schedule=SCHEDULE)
trained = functools.partial(training_loops.trained, schedule=SCHEDULE)


def resumed(folder, **kwargs):
    """As `make_loop`, at the newest checkpoint of the folder."""
    loop = make_loop(folder, **kwargs)
    loop.resume()
    return loop


class StopAt(Callback):
    """Sends this process a signal at a step."""

    def __init__(self, step, number=signal.SIGINT):
        self.step, self.number = step, number

    def on_step(self, loop):
        if loop.state.step == self.step:
            os.kill(os.getpid(), self.number)


def test_training_lowers_the_loss_and_two_runs_are_bit_equal():
    first = trained(dropout=0.2, num_steps=60, schedule=None)
    mx.random.uniform(shape=(5,)).wait_to_read()  # must not matter
    np.random.rand(5)
    assert_equal(first, trained(dropout=0.2, num_steps=60, schedule=None))
    log = first.state.log
    assert log[-1]['loss'] < 0.5 * log[0]['loss']
    assert log[-1]['step'] == first.state.step == 60
    other = trained(dropout=0.2, num_steps=60, schedule=None, seed=1)
    assert any((one != two).any() for one, two in zip(values(other), values(first)))


OPTIMIZERS = [('bertadam', 1, 6), ('openaiadam', 1, 5), ('adam', 2, 5), ('sgd', 1, 6)]


@pytest.mark.parametrize('optimizer, accumulate, step', OPTIMIZERS)
def test_resume_is_bit_equal(tmp_path, optimizer, accumulate, step):
    """After a signal, in an epoch and at its end (step 6); the scripts' are in test_contract.py."""
    number = signal.SIGTERM if step == 5 else signal.SIGINT
    make = {'dropout': 0.3, 'optimizer': optimizer, 'accumulate': accumulate}
    make.update(num_steps=9, log_interval=2)
    whole = trained(**make)
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted):
        trained(tmp_path, callbacks=[StopAt(step, number)], **make)
    assert handlers == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
    loop = resumed(tmp_path, **make)
    assert loop.state.step == step and loop.state.batch == (step if accumulate == 1 else 4)
    loop.run()
    assert_equal(whole, loop)
    assert (loop.state.step, loop.state.examples) == (9, whole.state.examples)
    ended = [each.state.epochs for each in (loop, whole)]
    assert [record['step'] for record in ended[0]] == [record['step'] for record in ended[1]]
    assert [record['epoch'] for record in ended[0]] == [1, 2] if accumulate == 1 else [1, 2, 3]
    losses = [epochs[0]['train_loss'] for epochs in ended]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    seconds = [record['train_seconds'] for record in ended[0]]  # of each epoch
    assert sum(seconds) == pytest.approx(loop.state.seconds)
    again = resumed(tmp_path, **make)  # has nothing to do
    again.run()
    assert_equal(again, loop)
    assert again.state == loop.state


def test_second_signal_stops_at_once_and_keeps_the_old_checkpoint(tmp_path):
    with pytest.raises(KeyboardInterrupt) as caught:
        trained(tmp_path, callbacks=[StopAt(8), StopAt(8)])
    assert not isinstance(caught.value, Interrupted)
    assert CheckpointStore(tmp_path).newest().state['step'] == 6


def test_signal_during_evaluation_repeats_only_the_evaluation(tmp_path):
    def interrupted(guard):
        os.kill(os.getpid(), signal.SIGINT)
        guard.check()
        raise AssertionError('not reached')

    with pytest.raises(Interrupted):
        trained(tmp_path, evaluate=interrupted)
    calls = []
    state = resumed(tmp_path, evaluate=lambda guard: (calls.append(1) or 0.5, {})).run()
    assert len(calls) == 3 and state.step == 18


def test_gradient_is_clipped_by_its_global_norm():
    for max_norm, clipped in ((0.01, True), (None, False)):
        loop = make_loop(
            num_steps=1, optimizer='sgd', max_grad_norm=max_norm, schedule=lambda step: 1.0
        )
        before = values(loop)
        loop.run()
        after = values(loop)
        change = np.sqrt(sum(((one - two) ** 2).sum() for one, two in zip(after, before)))
        norm = loop.state.log[0]['grad_norm']
        assert norm > 0.01
        assert change == pytest.approx(0.01 if clipped else norm, rel=1e-4)


def test_diverged_training_names_the_step_and_keeps_its_last_good_checkpoint(tmp_path):
    rows = Rows(factor=lambda *place: np.nan if place == (1, 2) else 1)
    loop = make_loop(tmp_path, rows, log_interval=4)
    with pytest.raises(DivergedError):
        loop.run()
    assert CheckpointStore(tmp_path).newest().state['step'] == 6


def test_best_epoch_and_early_stop():
    scores, losses = iter([0.5, 0.7, 0.7, 0.7, 0.9]), iter([0.9, 0.6, 0.2, 0.4, 0.1])

    def evaluate(guard):
        return next(scores), {'dev': {'loss': next(losses)}}

    state = make_loop(num_steps=60, evaluate=evaluate, early_stop=1).run()
    assert (state.step, state.best['epoch']) == (24, 3)  # of equal scores, the lower loss
    scores, losses = iter([0.5] * 9), iter([0.9 - 1e-7 * number for number in range(9)])
    state = make_loop(num_steps=60, evaluate=evaluate, early_stop=2).run()
    assert (len(state.epochs), state.best['epoch']) == (3, 1)  # it isn't lower in four digits
    with pytest.raises(DivergedError):
        trained(evaluate=lambda guard: (float('nan'), {}))


def test_damaged_checkpoints_are_skipped(tmp_path, caplog):
    trained(tmp_path)
    store = CheckpointStore(tmp_path)
    newest, older = store.paths()
    for name in os.listdir(newest):
        path = os.path.join(newest, name)
        with open(path, 'rb') as file:
            content = file.read()
        for damaged in (content[:-3], content[:40] + bytes([content[40] ^ 1]) + content[41:], None):
            os.remove(path)
            if damaged is not None:
                with open(path, 'wb') as file:
                    file.write(damaged)
            caplog.clear()
            assert store.newest().path == older, (name, damaged and len(damaged))
            assert len(caplog.records) == 1 and newest in caplog.text
            with open(path, 'wb') as file:
                file.write(content)
    assert store.newest().path == newest
    for path in (newest, older):
        os.remove(os.path.join(path, 'state.json'))
    with pytest.raises(CheckpointError):
        store.newest()
    with pytest.raises(CheckpointError):
        CheckpointStore(str(tmp_path / 'empty')).newest()


def test_checkpoint_holds_no_pickle_and_keeps_names_between_processes(tmp_path):
    make_loop(tmp_path).run()
    path = CheckpointStore(str(tmp_path)).newest().path
    for name in os.listdir(path):
        with open(os.path.join(path, name), 'rb') as file, pytest.raises(Exception):  # noqa: B017
            pickle.load(file)
    from model_zoo.checkpoint.tensor_files import read_params

    tensors, _ = read_params(os.path.join(path, 'optimizer.params'))
    parameters = '0.weight', '0.bias', '2.weight', '2.bias'
    assert {*tensors} == {f'{name}/{moment}' for name in parameters for moment in (0, 1)}


def test_checkpoint_of_another_optimizer_or_block_is_refused(tmp_path):
    loop = make_loop(tmp_path)
    loop.run()
    with pytest.raises(CheckpointError):
        make_loop(tmp_path, optimizer='sgd').resume()
    state = CheckpointStore(str(tmp_path)).newest()
    other = nn.Dense(3, in_units=2)
    other.initialize()
    trainer = mx.gluon.Trainer(other.collect_params(), 'sgd', update_on_kvstore=False)
    with pytest.raises(CheckpointError):
        state.restore(other, trainer)
    tensors, updates = optimizer_tensors(loop.block, loop.updater.trainer)
    moment = tensors['0.weight/0']
    for wrong in (None, moment[:1], moment.astype('float16')):
        changed = {**tensors, '0.weight/0': wrong}
        with pytest.raises(CheckpointError):
            load_optimizer(loop.block, loop.updater.trainer, changed, updates, 'file')


def test_killed_anywhere_while_the_only_checkpoint_is_replaced(tmp_path):
    """Before each change of a file there is a whole one: the old one and, in the end, the new."""
    loop, folder = trained(tmp_path / 'saved', num_steps=6), tmp_path / 'again'
    found, status = [], KILLED
    state = {**CheckpointStore(tmp_path / 'saved').newest().state, 'seconds': 1000.0}

    def save():
        CheckpointStore(folder, keep=1).save(loop.block, loop.updater.trainer, state, {})
        return 0

    while status:
        shutil.copytree(tmp_path / 'saved', folder)
        status, _ = in_fork(save, folder, len(found) + 1)
        store = CheckpointStore(folder)
        found.append(store.newest().state['seconds'] == 1000)
        assert status in (0, KILLED)
        assert sorted(map(os.path.basename, store.paths())) == sorted(os.listdir(folder))
        shutil.rmtree(folder)
    assert found == sorted(found) and len(found) > 9 and not found[0] and found[-1]


@pytest.mark.parametrize('method', ['replace', 'fsync'])
def test_a_full_disk_leaves_the_old_checkpoints(tmp_path, monkeypatch, method):
    trained(tmp_path, num_steps=6)
    before, function = sorted(os.listdir(tmp_path)), getattr(os, method)

    def full(*args):
        if method == 'fsync' or '.unfinished-' in os.path.basename(args[0]):
            raise OSError(28, 'No space left on device')
        return function(*args)

    loop = resumed(tmp_path, num_steps=7)
    monkeypatch.setattr(os, method, full)
    with refuses(says=str(tmp_path)):
        loop.run()
    assert sorted(os.listdir(tmp_path)) == before
    monkeypatch.undo()
    (tmp_path / '.unfinished-step-1').mkdir()  # of a killed process
    resumed(tmp_path, num_steps=7).run()
    assert CheckpointStore(tmp_path).newest().state['step'] == 7
    assert not (tmp_path / '.unfinished-step-1').exists()
    trained(tmp_path, num_steps=6)  # a new training's checkpoints take the old ones' place
    (path,) = CheckpointStore(tmp_path).paths()
    assert os.path.basename(path).startswith('step-00000006')


@pytest.mark.parametrize('terminal', [False, True])
def test_progress_lines(terminal, caplog, capsys):
    with caplog.at_level(logging.INFO):
        run_evaluated(ProgressLogger(terminal))
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0].startswith('[Epoch 1 Step 4/12] loss=')
    assert lines[-1].endswith('ETA 0:00:00')
    shown = capsys.readouterr().err
    assert all((part in shown) == terminal for part in ('12/12', 'epoch=', 'loss=', 'score=0.2500'))


def run_evaluated(*callbacks):
    """The state of a training with a dev set."""
    evaluate = {'evaluate': lambda guard: (0.25, {'dev': {'accuracy': 0.25}})}
    return make_loop(num_steps=12, log_interval=4, callbacks=callbacks, **evaluate).run()


def test_tensorboard_events(tmp_path, without):
    pytest.importorskip('tensorboard')
    without('tensorflow')  # with which it would take 600 MB to read the events
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    state = run_evaluated(TensorBoardWriter(str(tmp_path)))
    events = EventAccumulator(str(tmp_path)).Reload()
    names = 'train/loss train/lr train/grad_norm train/samples_per_second dev/score dev/accuracy'
    assert set(events.Tags()['scalars']) >= {*names.split()}
    written = [(event.step, event.value) for event in events.Scalars('train/loss')]
    assert [step for step, _ in written] == [record['step'] for record in state.log]
    np.testing.assert_allclose(
        [value for _, value in written], [record['loss'] for record in state.log], rtol=1e-6
    )
    assert [event.step for event in events.Scalars('dev/accuracy')] == [6, 12]
