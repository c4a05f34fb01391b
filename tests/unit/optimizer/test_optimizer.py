"""BERTAdam, OpenAIAdam and what goes with them."""

import json

import mxnet as mx
import numpy as np
import pytest
from arrays import make_parameters, set_gradient, stored
from mxnet import gluon

from model_zoo import operators
from model_zoo import optimizer as zoo
from model_zoo.errors import InputError

RUNS = [
    *(f'bertadam_{kind}' for kind in ('plain', 'decay', 'clip', 'linear', 'cosine')),
    *(f'openaiadam_{kind}' for kind in ('plain', 'decay', 'vector', 'linear', 'restarts')),
]
# the originals' names of the arguments, and ours
NAMES = {'lr': 'learning_rate', 'b1': 'beta1', 'b2': 'beta2', 'e': 'epsilon', 'weight_decay': 'wd'}


@pytest.fixture(scope='module')
def expected(request):
    fixtures = request.getfixturevalue('fixtures')
    content = json.loads((fixtures / 'optimizer_expected.json').read_text())
    content['arrays'] = stored(fixtures / 'optimizer_runs.npz')
    return content


def ours(original, arguments, schedule):
    """Our optimizer for a run of the original's."""
    options = {NAMES.get(name, name): value for name, value in arguments.items()}
    if schedule is not None:
        name, schedule_options = schedule
        base_lr = options.pop('learning_rate')
        options['lr_scheduler'] = zoo.get_schedule(name, base_lr, **schedule_options)
    return mx.optimizer.create(original.lower(), **options)


def train(trainer, parameters, arrays, steps, start=0):
    """Follow the fixtures' random problem; yields the number of steps done."""
    for step in range(start, start + steps):
        for i, parameter in enumerate(parameters):
            weight = parameter.data().asnumpy()
            grad = weight - arrays[f'target{i}'] + arrays[f'noise{i}'][step]
            set_gradient(parameter, arrays[f'scale{i}'] * grad)
        trainer.step(1)
        yield step + 1


def start_of(arrays, dtype='float32'):
    """Parameters with the first values of the problem."""
    names = sorted(name for name in arrays if name.startswith('start'))
    weights = {f'{name}_weight': arrays[name] for name in names}
    return list(make_parameters(weights, dtype).values())


@pytest.mark.parametrize('name', RUNS)
def test_50_steps_equal_the_originals(expected, name):
    assert set(RUNS) == set(expected['runs'])
    arrays = expected['arrays']
    parameters = start_of(arrays)
    trainer = gluon.Trainer(parameters, ours(*expected['runs'][name]), kvstore=None)
    compared, tolerance = 0, 2e-6 if operators.library() else 1e-6
    for done in train(trainer, parameters, arrays, expected['steps']):
        if done in expected['kept']:
            for i, parameter in enumerate(parameters):
                difference = np.abs(parameter.data().asnumpy() - arrays[f'{name}_step{done}_{i}'])
                assert difference.max() <= tolerance, (done, i, difference.max())
                compared += 1
    assert compared == len(expected['kept']) * len(parameters)


def test_takes_gluonnlps_place():
    """Same arguments, same result, apart from the operator's rounding."""
    from gluonnlp.optimizer import BERTAdam as Theirs

    options = {'learning_rate': 1e-3, 'beta1': 0.8, 'beta2': 0.99, 'epsilon': 1e-5, 'wd': 0.1}
    options.update(rescale_grad=0.5, clip_gradient=1.0)
    weights = []
    for make in (zoo.BERTAdam, Theirs):
        random = np.random.RandomState(0)
        updater = mx.optimizer.get_updater(make(**options))
        arrays = [mx.nd.array(random.normal(size=(3, 4))), mx.nd.array(random.normal(size=(5,)))]
        for _ in range(10):
            grads = [mx.nd.array(random.normal(size=array.shape) * 3) for array in arrays]
            updater([0, 1], grads, arrays)
        weights.append(np.concatenate([array.asnumpy().ravel() for array in arrays]))
    np.testing.assert_allclose(*weights, atol=1e-6)


def test_multipliers_and_schedule():
    parameters = start_of({f'start{i}': np.ones((2, 2), 'float32') for i in range(3)})
    parameters[1].lr_mult = 0.5
    parameters[2].wd_mult = 0.0
    schedule = zoo.get_schedule('warmup_linear', 0.1, 0.5, 4)
    options = {'lr_scheduler': schedule, 'wd': 0.5}
    trainer = gluon.Trainer(parameters, 'bertadam', options, kvstore=None)
    assert schedule.base_lr == 0.1  # no default learning rate pushes it aside

    def step():
        for parameter in parameters:
            set_gradient(parameter, 0)  # so that only the decay moves the weights
        trainer.step(1)
        return [parameter.data().asnumpy()[0, 0] for parameter in parameters]

    assert step() == [1, 1, 1]  # learning rate 0
    assert step() == pytest.approx([1 - 0.05 * 0.5, 1 - 0.025 * 0.5, 1], abs=1e-6)


@pytest.mark.parametrize('name, kvstore', [('bertadam', None), ('openaiadam', 'device')])
def test_saved_states_resume_exactly(expected, tmp_path, name, kvstore):
    arrays = expected['arrays']

    def make(parameters):
        schedule = zoo.get_schedule('warmup_cosine', 1e-2, 0.2, 30)
        options = {'lr_scheduler': schedule, 'wd': 0.1, 'max_grad_norm': 1.0}
        return gluon.Trainer(parameters, name, options, kvstore=kvstore)

    straight = start_of(arrays)
    list(train(make(straight), straight, arrays, 20))

    first = start_of(arrays)
    trainer = make(first)
    list(train(trainer, first, arrays, 9))
    trainer.save_states(str(tmp_path / 'states'))
    second = start_of({f'start{i}': p.data().asnumpy() for i, p in enumerate(first)})
    trainer = make(second)
    trainer.load_states(str(tmp_path / 'states'))
    list(train(trainer, second, arrays, 11, start=9))
    for one, other in zip(straight, second):
        assert np.array_equal(one.data().asnumpy(), other.data().asnumpy())


@pytest.mark.parametrize('name, norm', [('bertadam', 1.0), ('openaiadam', None), ('lamb', 1.0)])
def test_float16_weights_follow_float32_copies(expected, name, norm):
    """Without the copies, updates of 1e-5 would be lost beside weights of 1."""
    arrays = {key: value for key, value in expected['arrays'].items() if key.startswith('start')}
    options = {'learning_rate': 1e-5, 'max_grad_norm': norm, 'wd': 0.01}
    trained = []
    for dtype in ('float32', 'float16'):
        # start from what float16 can represent
        parameters = start_of(
            {key: value.astype('float16') for key, value in arrays.items()}, dtype
        )
        options['multi_precision'] = dtype == 'float16'
        trainer = gluon.Trainer(parameters, name, options, kvstore=None)
        for step in range(100):
            for parameter in parameters:
                set_gradient(parameter, 0.5 if step % 3 else 0.25)
            trainer.step(1)
        trained.append([parameter.data() for parameter in parameters])
    for full, half in zip(*trained):
        assert half.dtype == np.float16
        assert np.array_equal(full.astype('float16').asnumpy(), half.asnumpy())
    moved = [np.abs(w.asnumpy() - arrays[f'start{i}']).max() for i, w in enumerate(trained[0])]
    assert min(moved) > 5e-4


def test_disable_weight_decay():
    net = gluon.nn.HybridSequential(prefix='beta_bias_')  # words that only count at the end
    with net.name_scope():
        net.add(gluon.nn.Dense(2, in_units=2), gluon.nn.LayerNorm(in_channels=2))
    names = zoo.disable_weight_decay(net)
    ends = sorted(name.rsplit('_', 1)[1] for name in names)
    assert ends == ['beta', 'bias', 'gamma']
    for name, parameter in net.collect_params().items():
        assert parameter.wd_mult == (0.0 if name in names else 1.0)
    assert zoo.disable_weight_decay(net.collect_params(), '.*weight$') == [net[0].weight.name]


def gradients(*arrays):
    """Parameters with these gradients."""
    zeros = {f'p{number}': np.zeros_like(each) for number, each in enumerate(arrays)}
    parameters = list(make_parameters(zeros).values())
    for parameter, array in zip(parameters, arrays):
        parameter.grad()[:] = array
    return parameters


def test_clip_grad_global_norm():
    frozen = gluon.Parameter('frozen', shape=(1,), grad_req='null')
    frozen.initialize()
    parameters = [*gradients(np.array([3.0]), np.array([[0.0, 4.0]])), frozen]
    for most in (10.0, 5.0):
        assert zoo.clip_grad_global_norm(parameters, most).asscalar() == 5
        assert [p.grad().asnumpy().tolist() for p in parameters[:2]] == [[3], [[0, 4]]]
    norm = zoo.clip_grad_global_norm(parameters, 1.0)
    assert norm.asscalar() == 5
    np.testing.assert_allclose(parameters[1].grad().asnumpy(), [[0, 0.8]], rtol=1e-6)
    with pytest.raises(InputError):
        zoo.grad_global_norm([frozen])


def test_global_norm_of_a_large_gradient_is_exact():
    """One float32 sum over so many elements would be off by far more."""
    array = np.random.RandomState(0).normal(size=3_000_001).astype('float32')
    expected = np.sqrt((array.astype('float64') ** 2).sum())
    assert zoo.grad_global_norm(gradients(array)).asscalar() == pytest.approx(expected, rel=1e-6)
