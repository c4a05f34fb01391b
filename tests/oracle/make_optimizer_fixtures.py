"""Write tests/fixtures/optimizer_*: what pytorch-pretrained-bert's optimizers and schedules give.

    python tests/oracle/make_optimizer_fixtures.py

Their arguments are those in optimizer_expected.json. optimizer_runs.npz has the problem: start,
target, noise and scale of four arrays with the gradient scale * (w - target + noise). Needs
pytorch-pretrained-bert 0.6.2 and torch.
"""

import warnings

import numpy as np
import torch
from oracle_files import FIXTURES, read_json, write_json
from pytorch_pretrained_bert import optimization
from pytorch_pretrained_bert.optimization_openai import OpenAIAdam

OPTIMIZERS = {'BertAdam': optimization.BertAdam, 'OpenAIAdam': OpenAIAdam}
SCHEDULES = {
    'none': optimization.ConstantLR,
    'warmup_constant': optimization.WarmupConstantSchedule,
    'warmup_linear': optimization.WarmupLinearSchedule,
    'warmup_cosine': optimization.WarmupCosineSchedule,
    'warmup_cosine_hard_restarts': optimization.WarmupCosineWithHardRestartsSchedule,
    'warmup_cosine_warmup_restarts': optimization.WarmupCosineWithWarmupRestartsSchedule,
}


def run(problem, expected, optimizer, arguments, schedule):
    """Return the weights after each of the numbers of steps that are kept."""
    count = sum(name.startswith('start') for name in problem)
    parameters = [torch.nn.Parameter(torch.tensor(problem[f'start{i}'])) for i in range(count)]
    if schedule is not None:
        name, options = schedule
        arguments = {**arguments, 'schedule': SCHEDULES[name](**options)}
    updater, kept = OPTIMIZERS[optimizer](parameters, **arguments), {}
    for step in range(expected['steps']):
        for i, parameter in enumerate(parameters):
            weight = parameter.detach().numpy()
            grad = weight - problem[f'target{i}'] + problem[f'noise{i}'][step]
            parameter.grad = torch.tensor(problem[f'scale{i}'] * grad)
        updater.step()
        if step + 1 in expected['kept']:
            for i, parameter in enumerate(parameters):
                kept[f'step{step + 1}_{i}'] = parameter.detach().numpy().copy()
    return kept


def main():
    warnings.simplefilter('ignore')  # torch's on the original's old calls
    expected = read_json('optimizer_expected.json')
    with np.load(FIXTURES / 'optimizer_runs.npz') as file:
        problem = {name: file[name] for name in file if '_' not in name}
    arrays = dict(problem)
    for name, settings in expected['runs'].items():
        for key, value in run(problem, expected, *settings).items():
            arrays[f'{name}_{key}'] = value
    np.savez_compressed(FIXTURES / 'optimizer_runs.npz', **arrays)
    for case in expected['schedules']:
        original = SCHEDULES[case['name']](**case['arguments'])
        steps = range(len(case['factors']))
        case['factors'] = [original.get_lr(step, nowarn=True) for step in steps]
    write_json('optimizer_expected.json', expected, separators=None)


if __name__ == '__main__':
    main()
