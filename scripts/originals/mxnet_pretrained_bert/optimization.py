"""BERT's optimizer and the schedules, by the names of ``optimization.py``.

The optimizers hold their parameters and have `step`, as torch's do. `model_zoo.optimizer`'s rules
do the arithmetic, one for each group of parameters.
"""

import logging

import mxnet as mx
import numpy as np

from model_zoo.errors import InputError
from model_zoo.optimizer import BERTAdam, get_schedule
from model_zoo.optimizer import OpenAIAdam as OpenAIRule
from model_zoo.optimizer.schedules import (  # noqa: F401  names of the original
    ConstantLR,
    Schedule,
    WarmupConstantSchedule,
    WarmupCosineSchedule,
    WarmupCosineWithHardRestartsSchedule,
    WarmupCosineWithWarmupRestartsSchedule,
    WarmupLinearSchedule,
)

_log = logging.getLogger(__name__)

_LRSchedule = Schedule
#: name of a schedule -> its class
SCHEDULES = {
    None: ConstantLR,
    'none': ConstantLR,
    'warmup_cosine': WarmupCosineSchedule,
    'warmup_constant': WarmupConstantSchedule,
    'warmup_linear': WarmupLinearSchedule,
}


class TorchLikeOptimizer:
    """An optimizer that holds its parameters, with the methods of torch's.

    The parameters' ``grad_req`` becomes 'add': gradients are summed up until `zero_grad`, as
    torch's are. Parameters that the loss doesn't depend on are passed over.

    Attributes
    ----------
    param_groups : list of dict
        The options of each group, and its parameters under ``'params'``. They may be changed
        between steps.
    """

    #: the step whose learning rate the first update has
    first_step = 0
    #: the optimizer of MXNet that does the arithmetic
    rule_class = None
    #: names of the two moments in `state_dict`
    moments = ()

    def __init__(self, params, schedule, warmup, t_total, **defaults):
        self.defaults = {**defaults, 'schedule': _schedule(schedule, warmup, t_total)}
        self.param_groups, self._updaters = [], []
        params = _listed(params)
        if not params:
            raise InputError('there are no parameters to optimize')
        for group in params if isinstance(params[0], dict) else [{'params': params}]:
            self.add_param_group(group)

    def add_param_group(self, param_group):
        """Add parameters with separate options."""
        group = {**self.defaults, **param_group}
        group['params'] = params = _listed(group['params'])
        group['schedule'] = _schedule(group['schedule'], -1, -1)
        if group['lr'] is None:
            raise InputError('lr is missing: set the learning rate, of the class or of each group')
        for parameter in params:
            if parameter.grad_req != 'null':
                parameter.grad_req = 'add'
        is_half = any(np.dtype(parameter.dtype) == np.float16 for parameter in params)
        rule = self.rule_class(multi_precision=is_half, param_dict=dict(enumerate(params)))
        self.param_groups.append(group)
        self._updaters.append(mx.optimizer.get_updater(rule))

    def _groups(self):
        """Yield each group with its updater and its rule, which has the group's options."""
        for group, updater in zip(self.param_groups, self._updaters):
            rule = updater.optimizer
            rule.beta1, rule.beta2, rule.epsilon = group['b1'], group['b2'], group['e']
            rule.wd, rule.max_grad_norm = group['weight_decay'], group['max_grad_norm']
            rule.vector_l2 = group.get('vector_l2')
            yield group, updater, rule

    def step(self, closure=None):
        """Update the parameters by their gradients."""
        loss = None if closure is None else closure()
        for group, updater, rule in self._groups():
            factor = group['schedule'].get_lr(rule.num_update + self.first_step)
            rule.lr = group['lr'] * factor
            trained = ((n, p) for n, p in enumerate(group['params']) if p.grad_req != 'null')
            fresh = {n: parameter for n, parameter in trained if parameter.data()._fresh_grad}
            weights = [parameter.data() for parameter in fresh.values()]
            if fresh:
                updater(list(fresh), [parameter.grad() for parameter in fresh.values()], weights)
            for weight in weights:
                weight._fresh_grad = False
        return loss

    def zero_grad(self):
        """Set the gradients to zero."""
        for group in self.param_groups:
            for parameter in group['params']:
                if parameter.grad_req != 'null':
                    parameter.zero_grad()

    def get_lr(self):
        """Return each parameter's learning rate at its next step, or ``[0]`` before the first."""
        rates = []
        for group, _, rule in self._groups():
            for number in range(len(group['params'])):
                if number not in rule._index_update_count:
                    return [0]
                count = rule._index_update_count[number]
                rates.append(group['lr'] * group['schedule'].get_lr(count, nowarn=True))
        return rates

    def state_dict(self):
        """Return the state for `load_state_dict`."""
        state, groups, start = {}, [], 0
        for group, updater, rule in self._groups():
            for number, arrays in updater.states.items():
                moments = zip(self.moments, _moments_of(arrays))
                own = state[start + number] = {'step': rule._index_update_count[number]}
                own.update((name, array.copy()) for name, array in moments)
            numbers = list(range(start, start + len(group['params'])))
            groups.append({**group, 'params': numbers})
            start += len(numbers)
        return {'state': state, 'param_groups': groups}

    def load_state_dict(self, state_dict):
        """Continue from the state of an optimizer with the same groups."""
        groups, states = state_dict['param_groups'], state_dict['state']
        sizes = [len(group['params']) for group in groups]
        ours = [len(group['params']) for group in self.param_groups]
        if sizes != ours:
            raise InputError(f'the state is of groups of {sizes} parameters, and there are {ours}')
        for (group, updater, rule), saved in zip(self._groups(), groups):
            group.update({name: value for name, value in saved.items() if name != 'params'})
            for number, theirs in enumerate(saved['params']):
                if theirs not in states:
                    continue
                weight, state = group['params'][number].data(), states[theirs]
                updater.states[number] = rule.create_state_multi_precision(number, weight)
                updater.states_synced[number] = True
                for name, array in zip(self.moments, _moments_of(updater.states[number])):
                    array[:] = state[name]
                rule._index_update_count[number] = state['step']
                rule.num_update = max(rule.num_update, state['step'])

    def __repr__(self):
        return f'{type(self).__name__}({len(self.param_groups)} groups of parameters)'


class BertAdam(TorchLikeOptimizer):
    """BERT's Adam, with the arguments and the methods of pytorch-pretrained-bert's ``BertAdam``.

    It trains number by number as the original does. With ``gluon.Trainer``, use `BERTAdam`.

    Parameters
    ----------
    params : iterable of mxnet.gluon.Parameter, or of dict
        Such as ``model.parameters()``; or groups: see :meth:`add_param_group`.
    lr : float
        Learning rate.
    warmup : float
        The fraction of `t_total` in which the rate grows; -1 means none.
    t_total : int
        Number of updates; -1 means a constant rate.
    schedule : str, Schedule or None
        ``'warmup_linear'``, ``'warmup_constant'``, ``'warmup_cosine'``, ``'none'``, or a
        :class:`~model_zoo.optimizer.Schedule`, whose own `warmup` and `t_total` count.
    b1, b2 : float
        Decay rates of the moments.
    e : float
        Added to the denominator.
    weight_decay : float
    max_grad_norm : float
        Each of the original's parameters is clipped separately to this norm; -1 means no clipping.
    **kwargs
        Ignored, as in the original.

    Examples
    --------
    >>> from mxnet_pretrained_bert import BertConfig, BertForSequenceClassification
    >>> config = BertConfig(100, hidden_size=8, num_attention_heads=2, num_hidden_layers=1)
    >>> model = BertForSequenceClassification(config)
    >>> optimizer = BertAdam(model.parameters(), lr=5e-5, warmup=0.1, t_total=100)
    >>> with mx.autograd.record():
    ...     loss = model(mx.nd.array([[5, 6]]), labels=mx.nd.array([1]))
    >>> loss.backward()
    >>> _ = optimizer.step()
    >>> optimizer.zero_grad()
    """

    rule_class = BERTAdam
    moments = ('next_m', 'next_v')

    def __init__(
        self,
        params,
        lr=None,
        warmup=-1,
        t_total=-1,
        schedule='warmup_linear',
        b1=0.9,
        b2=0.999,
        e=1e-6,
        weight_decay=0.01,
        max_grad_norm=1.0,
        **kwargs,
    ):
        options = {'lr': lr, 'b1': b1, 'b2': b2, 'e': e, 'weight_decay': weight_decay}
        super().__init__(params, schedule, warmup, t_total, **options, max_grad_norm=max_grad_norm)


class OpenAIAdam(TorchLikeOptimizer):
    """GPT's Adam, with the arguments and the methods of pytorch-pretrained-bert's ``OpenAIAdam``.

    It trains number by number as the original does. With ``gluon.Trainer``, use
    `model_zoo.optimizer.OpenAIAdam`.

    Parameters
    ----------
    params, lr, schedule, warmup, t_total, b1, b2, e, weight_decay, max_grad_norm, **kwargs
        See `BertAdam`.
    vector_l2 : bool
        Whether parameters of one dimension are decayed too.
    """

    first_step = 1
    rule_class = OpenAIRule
    moments = ('exp_avg', 'exp_avg_sq')

    def __init__(
        self,
        params,
        lr=None,
        schedule='warmup_linear',
        warmup=-1,
        t_total=-1,
        b1=0.9,
        b2=0.999,
        e=1e-8,
        weight_decay=0,
        vector_l2=False,
        max_grad_norm=-1,
        **kwargs,
    ):
        options = {'lr': lr, 'b1': b1, 'b2': b2, 'e': e, 'weight_decay': weight_decay}
        options.update(vector_l2=vector_l2, max_grad_norm=max_grad_norm)
        super().__init__(params, schedule, warmup, t_total, **options)


def _listed(params):
    """Return parameters, or groups of them, as a list."""
    return list(params.values() if hasattr(params, 'values') else params)


def _schedule(schedule, warmup, t_total):
    if isinstance(schedule, Schedule):
        if warmup != -1 or t_total != -1:
            _log.warning('warmup and t_total are ignored: the schedule object has its own')
        return schedule
    return get_schedule(schedule, 1.0, warmup, t_total)


def _moments_of(state):
    """Return the two moments in the state of one parameter."""
    return state[1] if isinstance(state[1], tuple) else state
