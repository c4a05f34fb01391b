"""Write tests/fixtures/gpt_heads.npz: what pytorch-pretrained-bert's GPT and GPT-2 give.

    python tests/oracle/make_gpt_fixtures.py

Needs pytorch-pretrained-bert 0.6.2 and torch. For each head with small random weights there are
its outputs, losses and gradients, and for GPT-2 the outputs of a second call with the past.
"""

import numpy as np
import pytorch_pretrained_bert as original
import torch
from torch.nn.functional import cross_entropy

from oracle_files import FIXTURES  # isort: skip
import model_zoo  # noqa: F401  isort: skip  before MXNet
from bert_compare import torch_gradients
from gpt_compare import CONFIGS, HEADS, make_inputs, rows_for, weighted

# the released one is the class of the module, and fails when it is called
original.modeling_openai.ACT_FNS['relu'] = torch.relu

#: the names of our inputs that the originals call otherwise
NAMES = {'words': 'input_ids', 'token_types': 'token_type_ids'}


def make_head(name, values, seed=0):
    """The original's block `name` with random weights, biases and norms among them."""
    torch.manual_seed(seed)
    values = dict(values)
    if name.startswith('GPT2'):
        values['vocab_size'] += values.pop('n_special', 0)
        config = original.GPT2Config(values.pop('vocab_size'), **values)
    else:
        config = original.OpenAIGPTConfig(values.pop('vocab_size'), **values)
    head = getattr(original, name)(config)
    with torch.no_grad():
        for key, value in head.named_parameters():
            if key.endswith('bias') or '.ln_' in key:
                value += 0.2 * torch.randn_like(value)
            elif '.c_' in key:  # always 0.02 in the original
                value.copy_(config.initializer_range * torch.randn_like(value))
    return head.eval()


def arguments(inputs, labels=False):
    """`make_inputs`' arrays as the original wants them."""
    return {
        NAMES.get(key, key): torch.tensor(value)
        for key, value in inputs.items()
        if labels or key not in ('lm_labels', 'mc_labels')
    }


def run(head, inputs, past=None):
    """The original's outputs."""
    more = {} if past is None else {'past': past}
    return head(**arguments(inputs), **more)


def run_head(head, inputs):
    """Outputs, losses and gradients of the original's `head`."""
    with torch.no_grad():
        outputs = run(head, inputs)
    head.zero_grad()
    losses = losses_of(head, inputs)
    weighted(losses).backward()
    return {
        'outputs': to_numpy(outputs),
        'losses': np.array([loss.item() for loss in losses], 'float32'),
        'gradients': {our_name(key): value for key, value in torch_gradients(head).items()},
    }


def losses_of(head, inputs):
    """The losses that the original gives, as a list."""
    if type(head).__name__ == 'GPT2DoubleHeadsModel':
        # the released code shifts the axis of the choices; its GPT does it right
        lm_scores, mc_scores, _ = run(head, inputs)
        labels = torch.tensor(inputs['lm_labels'])[..., 1:].reshape(-1)
        lm_scores = lm_scores[..., :-1, :].reshape(len(labels), -1)
        return [
            cross_entropy(lm_scores, labels, ignore_index=-1),
            cross_entropy(mc_scores, torch.tensor(inputs['mc_labels'])),
        ]
    losses = head(**arguments(inputs, labels=True))
    return losses if isinstance(losses, list) else [losses]


def our_name(key):
    """A name of pytorch-pretrained-bert as we write it, which is as transformers does."""
    return key.replace('multiple_choice_head.linear.', 'multiple_choice_head.summary.')


def to_numpy(outputs):
    """Lists (of lists) of tensors as a flat list of arrays."""
    if isinstance(outputs, (list, tuple)):
        return [array for output in outputs for array in to_numpy(output)]
    return [outputs.detach().numpy()]


def state_of(head):
    """The weights of the original's `head`, the tied one once."""
    return {
        key: value.numpy()
        for key, value in head.state_dict().items()
        if key != 'lm_head.decoder.weight'
    }


def main():
    arrays = {}
    for family, heads in HEADS.items():
        config = CONFIGS[family]['small']
        for seed, name in enumerate(heads):
            inputs = make_inputs(name, config, seed, rows_for(name, 3))
            head = make_head(name, config, seed)
            result = run_head(head, inputs)
            arrays[f'{name}/losses'] = result['losses']
            lists = {'outputs': result['outputs']}
            if family == 'gpt2':
                before = make_inputs(name, config, seed + 10, rows_for(name, 3), 4, optional=False)
                after = make_inputs(name, config, seed + 20, rows_for(name, 3), 5, optional=False)
                with torch.no_grad():
                    past = run(head, before)[-1]
                    lists['after past'] = to_numpy(run(head, after, past))
            for kind, values in lists.items():
                for i, output in enumerate(values):
                    arrays[f'{name}/{kind}/{i}'] = output
            for kind, values in (('state', state_of(head)), ('gradients', result['gradients'])):
                for key, value in values.items():
                    arrays[f'{name}/{kind}/{key}'] = value
    np.savez_compressed(FIXTURES / 'gpt_heads.npz', **arrays)


if __name__ == '__main__':
    main()
