"""What the comparisons of our GPT and GPT-2 with the originals share; needs no original itself."""

import mxnet as mx
import numpy as np
from bert_compare import gradients, load_state

import gpt
import gpt2

#: small models; the weights are large, so that nothing hides in linear ranges
SMALL = {'vocab_size': 30, 'n_positions': 12, 'n_ctx': 12, 'n_embd': 8, 'n_layer': 2, 'n_head': 2}
SMALL['initializer_range'] = 0.3
# with units for which our feed-forward layers are padded
LARGER = {**SMALL, 'vocab_size': 50, 'n_embd': 128, 'n_layer': 3, 'n_head': 4}
LARGER.update(layer_norm_epsilon=1e-3, initializer_range=0.1)
#: the fields that transformers' configurations have of it
OF_TRANSFORMERS = {key: value for key, value in LARGER.items() if key != 'n_ctx'}
#: family -> configurations, of which each is a dict of fields
CONFIGS = {
    'gpt': {
        'small': {**SMALL, 'n_special': 3},
        'larger': LARGER,
        'relu': {**SMALL, 'n_special': 1, 'afn': 'relu'},
        'swish': {**SMALL, 'n_head': 4, 'afn': 'swish'},
    },
    # the original has no special tokens: they count as a part of the vocabulary there
    'gpt2': {
        'small': {**SMALL, 'n_special': 3},
        'larger': LARGER,
        'one head, one layer': {**SMALL, 'n_head': 1, 'n_layer': 1},
    },
}
HEADS = {
    'gpt': ('OpenAIGPTLMHeadModel', 'OpenAIGPTDoubleHeadsModel'),
    'gpt2': ('GPT2LMHeadModel', 'GPT2DoubleHeadsModel'),
}
PACKAGES = {'gpt': gpt, 'gpt2': gpt2}
LM_COEF = 0.5  # of the sum of two losses


def family_of(name):
    return 'gpt2' if name.startswith('GPT2') else 'gpt'


def config_class(name):
    return gpt2.GPT2Config if family_of(name) == 'gpt2' else gpt.OpenAIGPTConfig


def make_inputs(name, config, seed=0, rows=(3,), length=9, optional=True):
    """A batch for the block `name`, by the names of our inputs; labels among them.

    Parameters
    ----------
    name : str
    config : dict
    rows : tuple of int
        The leading axes; (batch, choices) for the double heads.
    optional : bool
        Whether token types and position ids are there.
    """
    random = np.random.RandomState(seed)
    tokens = config['vocab_size'] + config.get('n_special', 0)
    words = random.randint(0, tokens, (*rows, length))
    inputs = {'words': words}
    if optional:
        inputs['token_types'] = random.randint(0, tokens, words.shape)
        inputs['position_ids'] = random.randint(0, config['n_positions'], words.shape)
    if 'Head' in name:
        inputs['lm_labels'] = np.where(random.rand(*words.shape) < 0.7, words, -1)
    if 'DoubleHeads' in name:
        inputs['mc_token_ids'] = random.randint(0, length, rows)
        inputs['mc_labels'] = random.randint(0, rows[1], rows[0])
    return inputs


def rows_for(name, batch):
    """Leading axes of a batch: the double heads have choices."""
    return (batch, 2) if 'DoubleHeads' in name else (batch,)


def make_block(name, state, folder, config, **options):
    """Our block `name` with the weights `state` of the original, by way of a file."""
    block = getattr(PACKAGES[family_of(name)], name)(config_class(name)(**config), **options)
    return load_state(block, state, folder)


def make_both(oracle, folder, name, config):
    """The original's head, which the oracle script makes, and ours with its weights."""
    head = oracle.make_head(name, config, seed=3)
    return head, make_block(name, oracle.state_of(head), folder, config)


def run(block, inputs, labels=False, dtype='int32', **more):
    """Call `block` on what `make_inputs` made."""
    arrays = {
        key: mx.nd.array(value, dtype=dtype)
        for key, value in inputs.items()
        if labels or key not in ('lm_labels', 'mc_labels')
    }
    return block(**arrays, **more)


def losses_and_gradients(block, inputs, **more):
    """The losses, and the gradients of their weighted sum by the originals' names."""
    for parameter in block.collect_params().values():
        parameter.zero_grad()
    with mx.autograd.record(train_mode=False):
        losses = run(block, inputs, labels=True, **more)
        losses = losses if isinstance(losses, list) else [losses]
        total = weighted(losses)
    total.backward()
    return [loss.asscalar() for loss in losses], gradients(block)


def weighted(losses):
    """One loss of one or two."""
    return losses[0] if len(losses) == 1 else LM_COEF * losses[0] + losses[1]
