"""Write tests/fixtures/transfo_xl.npz: what pytorch-pretrained-bert's Transformer-XL gives.

    python tests/oracle/make_transfo_xl_fixtures.py

Needs pytorch-pretrained-bert 0.6.2 and torch. For each variant of tests/transfo_xl_compare.py with
random weights: weights, scores, losses, memories and gradients of three segments.
"""

from unittest import mock

import numpy as np
import pytorch_pretrained_bert as original
import torch

from oracle_files import FIXTURES  # isort: skip
import model_zoo  # noqa: F401  isort: skip  before MXNet
from bert_compare import torch_gradients
from transfo_xl_compare import VARIANTS, make_config, make_inputs, pack


def boolean_masks():
    """Return a patch by which the original makes masks of the type that today's torch wants."""
    return mock.patch.object(torch.Tensor, 'byte', torch.Tensor.bool)


def make_model(values, seed=0):
    """The original's language model with random weights, biases and norms among them."""
    torch.manual_seed(seed)
    values = dict(values)
    config = original.TransfoXLConfig(values.pop('vocab_size'), **values)
    model = original.TransfoXLLMHeadModel(config)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if name.endswith(('r_w_bias', 'r_r_bias')):  # it leaves these as the memory was
                value.normal_(0, config.init_std)
            elif name.endswith('bias') or 'layer_norm' in name:
                value += 0.2 * torch.randn_like(value)
    model.crit.keep_order = True  # else the losses aren't at their places
    if not config.cutoffs:
        model.crit.forward = lambda *args: one_cluster(model.crit, *args)
    return model.eval()


def one_cluster(crit, hidden, target=None):
    """What the original's softmax computes without cutoffs, before it fails to return it."""
    layer = crit.out_layers[0]
    scores = crit._compute_logit(hidden, layer.weight, layer.bias, crit.out_projs[0])
    scores = torch.log_softmax(scores, dim=-1)
    return scores if target is None else -scores.gather(1, target.reshape(-1, 1)).squeeze(1)


def state_of(model):
    return {name: value.numpy() for name, value in model.state_dict().items()}


def run_model(model, segments):
    """What `transfo_xl_compare.run` gives, of the original."""
    result = {'scores': [], 'losses': [], 'mems': []}
    model.zero_grad()
    mems, total = None, 0
    with boolean_masks():
        for words, labels in segments:
            words, labels = torch.tensor(words), torch.tensor(labels)
            with torch.no_grad():
                scores, _ = model(words, mems=mems)
            losses, mems = model(words, labels, mems=mems)
            total = total + losses.sum()
            result['scores'].append(scores.numpy())
            result['losses'].append(losses.detach().numpy())
            result['mems'].append([memory.numpy() for memory in mems or []])
    total.backward()
    return {**result, 'gradients': torch_gradients(model)}


def main():
    stored = {}
    for seed, variant in enumerate(VARIANTS):
        config = make_config(variant)
        model = make_model(config, seed)
        result = run_model(model, make_inputs(config, seed))
        arrays = {f'state/{name}': value for name, value in state_of(model).items()}
        arrays.update((f'gradients/{name}', value) for name, value in result['gradients'].items())
        for kind in ('scores', 'losses'):
            arrays.update((f'{kind}/{i}', value) for i, value in enumerate(result[kind]))
        for i, mems in enumerate(result['mems']):
            arrays.update((f'mems/{i}/{layer}', value) for layer, value in enumerate(mems))
        stored.update(pack(variant, arrays))
    np.savez_compressed(FIXTURES / 'transfo_xl.npz', **stored)


if __name__ == '__main__':
    main()
