"""One pre-training step of BERT base (forward, both losses, backward, clipping, Adam with decoupled
weight decay): ours beside each installed peer's; and Horovod's throughput by 1 and 2 processes."""

import json
import os
import statistics
import subprocess
import sys
import tempfile

from inference import VOCAB_SIZE
from side_by_side import Case, Contender, measure, report, threads
from steps import gluon_step, our_update, torch_step

SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCRIPT = os.path.join(SCRIPTS, 'run_pretraining_hvd.py')


def make_batch(shape):
    """Full sequences with 15 % of their words masked, as NumPy arrays.

    Words, token types, lengths, masked positions, the words there, and labels of the pairs.
    """
    import numpy as np

    batch, length = shape
    rng = np.random.RandomState(0)
    positions = np.sort(np.argsort(rng.rand(batch, length))[:, : max(1, round(0.15 * length))])
    return (
        rng.randint(0, VOCAB_SIZE, (batch, length)),
        rng.randint(0, 2, (batch, length)),
        np.full((batch,), length),
        positions,
        rng.randint(0, VOCAB_SIZE, positions.shape),
        rng.randint(0, 2, (batch,)),
    )


def ours(options):
    import mxnet as mx

    from bert import BertConfig, BertForPreTraining

    model = BertForPreTraining(BertConfig(num_hidden_layers=options.layers))
    model.initialize()
    model.hybridize(static_alloc=True)
    update = our_update(model, 'bertadam', {'learning_rate': 1e-4, 'wd': 0.01})

    def prepare(shape):
        batch = make_batch(shape)

        def compute():
            return model(*(mx.nd.array(array, dtype='float32') for array in batch))

        return gluon_step(compute, update)

    return prepare


def transformers(options):
    """The model of transformers with torch's AdamW; it too predicts the masked words only."""
    import numpy as np
    import torch
    import transformers

    torch.set_num_threads(threads())
    config = transformers.BertConfig(num_hidden_layers=options.layers)
    model = transformers.BertForPreTraining(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)
    cross_entropy = torch.nn.functional.cross_entropy

    def prepare(shape):
        batch = make_batch(shape)

        def compute():
            mask = np.ones(shape, np.int64)
            words, types, _, positions, ids, labels = map(torch.from_numpy, batch)
            outputs = model.bert(
                words, attention_mask=torch.from_numpy(mask), token_type_ids=types
            )
            masked = outputs.last_hidden_state[torch.arange(len(words))[:, None], positions]
            scores, pairs = model.cls(masked, outputs.pooler_output)
            loss = cross_entropy(scores.flatten(0, 1), ids.flatten())
            return loss + cross_entropy(pairs, labels)

        return torch_step(model, optimizer, compute)

    return prepare


def compare_steps(shapes, options):
    """Print tokens a second at each of the shapes, (batch, length).

    Returns
    -------
    dict
        See `side_by_side.report`.
    """
    cases = [Case(f'{batch}x{length}', (batch, length), batch * length) for batch, length in shapes]
    peers = [Contender('torch+transformers', transformers, ('torch', 'transformers'))]
    measured = measure([Contender('ours', ours)], peers, cases, options)
    return report(
        f'BERT base pre-training step, {options.layers} layers, float32', measured, unit='tokens/s'
    )


def compare_processes(vocab_file, processes=(1, 2), steps=20, batch_size=16, length=128):
    """Print tokens a second of run_pretraining_hvd.py by 1 and 2 processes on one machine.

    The batch of all processes together is the same, as are the processors that they share: what is
    lost is what Horovod costs.

    Parameters
    ----------
    vocab_file : str
    processes : sequence of int
    steps, batch_size, length : int

    Returns
    -------
    dict of int to float
        None without Horovod.
    """
    launcher = os.path.join(os.path.dirname(sys.executable), 'horovodrun')
    if not os.path.exists(launcher):
        print('Horovod is not installed (make horovod): its throughput is left out')
        return None
    rates = {}
    for count in processes:
        with tempfile.TemporaryDirectory() as folder:
            command = [launcher, '--gloo', '-np', count, '-H', f'localhost:{count}']
            command += [sys.executable, SCRIPT, '--synthetic_data', '--vocab_file', vocab_file]
            command += ['--max_seq_length', length, '--max_predictions_per_seq', 20]
            command += ['--batch_size', batch_size // count, '--num_steps', steps]
            command += ['--hparams', 'num_layers=4,units=256,hidden_size=1024,num_heads=4']
            command += ['--log_interval', 5, '--ckpt_dir', folder]
            subprocess.run(list(map(str, command)), check=True, stderr=subprocess.DEVNULL)
            with open(os.path.join(folder, 'results.json'), encoding='utf-8') as file:
                log = json.load(file)['training']['log']
        rates[count] = statistics.median(record['tokens_per_second'] for record in log[1:])
        print(
            f'Horovod, {count} processes: {rates[count]:.0f} tokens/s, '
            f'{rates[count] / rates[processes[0]]:.2f} of {processes[0]}'
        )
    return rates
