"""BERTAdam and OpenAIAdam train a network step for step as pytorch-pretrained-bert's do."""


import mxnet as mx
import numpy as np
import pytest
from mxnet import gluon

from model_zoo.optimizer import SCHEDULES, disable_weight_decay, get_schedule

torch = pytest.importorskip('torch')
originals = pytest.importorskip('pytorch_pretrained_bert.optimization')
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings('ignore::UserWarning')]
ORACLE = 'make_bert_fixtures'


def network(random):
    """A small network with layer normalization in PyTorch, and Gluon parameters of its shapes."""
    layers = [torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.Tanh()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(16, 3))
    parameters = gluon.ParameterDict()
    for name, parameter in net.named_parameters():
        value = random.normal(size=tuple(parameter.shape)).astype('float32')
        parameter.data = torch.tensor(value)
        parameters.get(name, shape=value.shape, init=mx.init.Constant(mx.nd.array(value)))
    parameters.initialize()
    return net, parameters


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize(
    'name,decay,norm,schedule',
    [
        ('bertadam', 0.0, -1, 'none'),
        ('bertadam', 0.01, 1.0, 'warmup_linear'),
        ('bertadam', 0.01, 0.1, 'warmup_cosine'),
        ('openaiadam', 0.0, -1, 'none'),
        ('openaiadam', 0.01, 1.0, 'warmup_linear'),
        ('openaiadam', 0.01, 0.1, 'warmup_constant'),
    ],
)
def test_50_training_steps(name, decay, norm, schedule, seed):
    from pytorch_pretrained_bert.optimization_openai import OpenAIAdam

    random = np.random.RandomState(seed)
    net, parameters = network(random)
    vectors = [name for name, parameter in net.named_parameters() if parameter.dim() == 1]
    assert disable_weight_decay(parameters, '|'.join(vectors)) == vectors
    rates = get_schedule(schedule, 1e-3, warmup=0.1, t_total=50)
    options = {'wd': decay, 'max_grad_norm': norm, 'lr_scheduler': rates}
    trainer = gluon.Trainer(parameters, name, options, update_on_kvstore=False)
    groups = [
        {'params': [p for p in net.parameters() if p.dim() > 1], 'weight_decay': decay},
        {'params': [p for p in net.parameters() if p.dim() == 1], 'weight_decay': 0.0},
    ]
    original = {'bertadam': originals.BertAdam, 'openaiadam': OpenAIAdam}[name]
    options = {'lr': 1e-3, 'max_grad_norm': norm, 'schedule': schedule}
    optimizer = original(groups, warmup=0.1, t_total=50, **options)
    for _ in range(50):
        inputs = torch.tensor(random.normal(size=(32, 8)).astype('float32'))
        targets = torch.tensor(random.normal(size=(32, 3)).astype('float32'))
        optimizer.zero_grad()
        ((net(inputs) - targets) ** 2).mean().backward()
        # The same gradients for both: where one is near 0, Adam would enlarge its rounding error.
        for key, parameter in net.named_parameters():
            parameters[key].grad()[:] = parameter.grad.numpy()
            parameters[key].data()._fresh_grad = True  # as a backward pass would mark it
        trainer.update(1)
        optimizer.step()
    for key, parameter in net.named_parameters():
        difference = np.abs(parameters[key].data().asnumpy() - parameter.detach().numpy()).max()
        assert difference <= 1e-6, (key, difference)


@pytest.mark.parametrize('name', sorted(SCHEDULES))
@pytest.mark.parametrize('warmup', [-1, 0.0, 0.05, 0.1, 0.3])
@pytest.mark.parametrize('t_total', [7, 100, 1013])
def test_schedules_at_every_step(name, warmup, t_total):
    original = getattr(originals, SCHEDULES[name].__name__)
    cycles = [1.0, 2.0, 2.5] if 'cosine' in name else [None]
    for number in cycles:
        options = {'warmup': warmup, 't_total': t_total}
        theirs = original(**options) if number is None else original(cycles=number, **options)
        ours = get_schedule(name, 2e-5, cycles=number, **options)
        for step in range(2 * t_total):
            expected = 2e-5 * theirs.get_lr(step, nowarn=True)
            assert ours(step + 1) == pytest.approx(expected, rel=1e-12, abs=1e-20), (number, step)


def grouped(model):
    """The groups of the original's programs: no decay of biases and normalizations."""
    named, plain = list(model.named_parameters()), ('bias', 'LayerNorm.bias', 'LayerNorm.weight')
    return [
        {'params': [p for n, p in named if any(each in n for each in plain) == has],
         'weight_decay': decay}
        for has, decay in ((False, 0.01), (True, 0.0))
    ]  # fmt: skip


@pytest.mark.parametrize('norm', [1.0, 0.05, -1])
@pytest.mark.parametrize('name', ['BertAdam', 'OpenAIAdam'])
def test_30_steps_of_bert_with_the_originals_methods(oracle, tmp_path, name, norm):
    """A head with small weights: rates and parameters are the same, each clipped by itself."""
    import bert_compare
    import pytorch_pretrained_bert

    import mxnet_pretrained_bert

    kind = 'BertForSequenceClassification'
    head = oracle.make_head(kind).train()  # without dropout
    made = bert_compare.make_block(kind, oracle.state_of(head), tmp_path)
    block = mxnet_pretrained_bert.BertForSequenceClassification(made.config, made.num_labels)
    block.load_state_dict(oracle.state_of(head))
    block.eval()
    options = {'lr': 1e-3, 'warmup': 0.1, 't_total': 40, 'max_grad_norm': norm}
    theirs = getattr(pytorch_pretrained_bert, name)(grouped(head), **options)
    ours = getattr(mxnet_pretrained_bert, name)(grouped(block), **options)
    assert [len(group['params']) for group in ours.param_groups][1] > 5
    for step in range(30):
        inputs = bert_compare.make_inputs(kind, True, step)
        loss = head(*oracle.arguments(inputs), torch.tensor(inputs['labels'][0]))
        loss.backward()
        with mx.autograd.record():
            our_loss = bert_compare.run(block, inputs, labels=True)
        our_loss.backward()
        assert abs(our_loss.asscalar() - loss.item()) < 1e-4
        if step % 3 == 1:  # gradients of two batches
            continue
        for each in (theirs, ours):
            each.step()
            each.zero_grad()
        assert sorted({*ours.get_lr()}) == pytest.approx(sorted({*theirs.get_lr()}))
    state = block.state_dict()
    for key, value in head.state_dict().items():
        if key.endswith('key.bias'):  # has no gradient but rounding errors, which Adam enlarges
            continue
        difference = np.abs(state[key].asnumpy() - value.numpy()).max()
        assert difference < 2e-4, (key, difference)
