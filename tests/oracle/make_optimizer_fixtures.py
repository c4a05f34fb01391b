"""Write tests/fixtures/optimizer_*: what pytorch-pretrained-bert's optimizers and schedules give.

Needs pytorch-pretrained-bert 0.6.2 and torch.
"""

import json
import pathlib
import warnings

import numpy as np
import torch
from pytorch_pretrained_bert import optimization
from pytorch_pretrained_bert.optimization_openai import OpenAIAdam

FIXTURES = pathlib.Path(__file__).parent.parent / 'fixtures'
STEPS = 50
KEPT = (1, 2, 10, 25, 50)
SHAPES = ((7, 5), (5,), (3, 4, 2), (1,))
SCALES = (3.0, 0.1, 0.5, 1.0)  # of the gradients, so that clipping bites for some of them

# arguments of the original's optimizer, its schedule given as [name, arguments]
RUNS = {
    'bertadam_plain': ('BertAdam', {'lr': 1e-2, 'weight_decay': 0.0, 'max_grad_norm': -1}, None),
    'bertadam_decay': ('BertAdam', {'lr': 1e-2, 'weight_decay': 0.1, 'max_grad_norm': -1}, None),
    'bertadam_clip': ('BertAdam', {'lr': 1e-2, 'weight_decay': 0.01, 'max_grad_norm': 1.0}, None),
    'bertadam_linear': (
        'BertAdam',
        {'lr': 5e-3, 'weight_decay': 0.01, 'max_grad_norm': 1.0},
        ['warmup_linear', {'warmup': 0.1, 't_total': STEPS}],
    ),
    'bertadam_cosine': (
        'BertAdam',
        {'lr': 5e-3, 'weight_decay': 0.01, 'max_grad_norm': 0.5, 'b1': 0.8, 'b2': 0.98, 'e': 1e-4},
        ['warmup_cosine', {'warmup': 0.2, 't_total': 40}],
    ),
    'openaiadam_plain': ('OpenAIAdam', {'lr': 1e-2}, None),
    'openaiadam_decay': ('OpenAIAdam', {'lr': 1e-2, 'weight_decay': 0.1}, None),
    'openaiadam_vector': (
        'OpenAIAdam',
        {'lr': 1e-2, 'weight_decay': 0.1, 'vector_l2': True, 'max_grad_norm': 1.0},
        None,
    ),
    'openaiadam_linear': (
        'OpenAIAdam',
        {'lr': 5e-3, 'weight_decay': 0.01, 'max_grad_norm': 1.0},
        ['warmup_linear', {'warmup': 0.1, 't_total': STEPS}],
    ),
    'openaiadam_restarts': (
        'OpenAIAdam',
        {'lr': 5e-3, 'weight_decay': 0.01, 'b1': 0.8, 'b2': 0.98, 'e': 1e-4},
        ['warmup_cosine_warmup_restarts', {'warmup': 0.1, 't_total': STEPS, 'cycles': 3.0}],
    ),
}

SCHEDULES = {
    'none': optimization.ConstantLR,
    'warmup_constant': optimization.WarmupConstantSchedule,
    'warmup_linear': optimization.WarmupLinearSchedule,
    'warmup_cosine': optimization.WarmupCosineSchedule,
    'warmup_cosine_hard_restarts': optimization.WarmupCosineWithHardRestartsSchedule,
    'warmup_cosine_warmup_restarts': optimization.WarmupCosineWithWarmupRestartsSchedule,
}
SCHEDULE_ARGUMENTS = [
    {},
    {'warmup': 0.1, 't_total': 40},
    {'warmup': -1, 't_total': 40},
    {'warmup': 0.0, 't_total': 7},
    {'warmup': 0.25, 't_total': 30},
    {'warmup': 0.137, 't_total': 37},
    {'warmup': 0.1},
]
COSINES = [
    {'warmup': 0.1, 't_total': 40, 'cycles': 1.0},
    {'warmup': 0.05, 't_total': 40, 'cycles': 2.0},
    {'warmup': 0.1, 't_total': 33, 'cycles': 3.5},
    {'warmup': -1, 't_total': 33, 'cycles': 2.0},
]


def problem():
    """Start, target and noise of a random problem with gradient scale * (w - target + noise)."""
    random = np.random.RandomState(1)
    arrays = {}
    for i, (shape, scale) in enumerate(zip(SHAPES, SCALES)):
        arrays[f'start{i}'] = random.normal(size=shape).astype('float32')
        arrays[f'target{i}'] = random.normal(size=shape).astype('float32')
        arrays[f'noise{i}'] = random.normal(size=(STEPS, *shape)).astype('float32')
        arrays[f'scale{i}'] = np.float32(scale)
    return arrays


def run(arrays, optimizer, arguments, schedule):
    """The weights after each of the KEPT numbers of steps."""
    parameters = [torch.nn.Parameter(torch.tensor(arrays[f'start{i}'])) for i in range(len(SHAPES))]
    if schedule is not None:
        name, options = schedule
        arguments = dict(arguments, schedule=SCHEDULES[name](**options))
    classes = {'BertAdam': optimization.BertAdam, 'OpenAIAdam': OpenAIAdam}
    updater = classes[optimizer](parameters, **arguments)
    kept = {}
    for step in range(STEPS):
        for i, parameter in enumerate(parameters):
            weight = parameter.detach().numpy()
            grad = weight - arrays[f'target{i}'] + arrays[f'noise{i}'][step]
            parameter.grad = torch.tensor(arrays[f'scale{i}'] * grad)
        updater.step()
        if step + 1 in KEPT:
            for i, parameter in enumerate(parameters):
                kept[f'step{step + 1}_{i}'] = parameter.detach().numpy().copy()
    return kept


def main():
    warnings.simplefilter('ignore')  # torch's on the original's old calls
    arrays = problem()
    for name, (optimizer, arguments, schedule) in RUNS.items():
        for key, value in run(arrays, optimizer, arguments, schedule).items():
            arrays[f'{name}_{key}'] = value
    np.savez_compressed(FIXTURES / 'optimizer_runs.npz', **arrays)

    values = []
    for name, schedule in SCHEDULES.items():
        for options in SCHEDULE_ARGUMENTS + (COSINES if 'cosine' in name else []):
            original = schedule(**options)
            steps = int(1.5 * options.get('t_total', 10))
            factors = [original.get_lr(step, nowarn=True) for step in range(steps + 1)]
            values.append({'name': name, 'arguments': options, 'factors': factors})
    content = {'steps': STEPS, 'kept': KEPT, 'runs': RUNS, 'schedules': values}
    with open(FIXTURES / 'optimizer_expected.json', 'w') as file:
        json.dump(content, file)


if __name__ == '__main__':
    main()
