"""One pre-training step of BERT base (forward, both losses, backward, clipping, Adam with decoupled
weight decay): ours beside each installed peer's; and Horovod's throughput by 1 and 2 processes."""

import json
import os
import statistics
import subprocess
import sys
import tempfile

import model_zoo  # isort: skip  # noqa: F401  sets MXNet's threads before it loads
import mxnet as mx
import numpy as np
from side_by_side import installed, report, time_in_turn

from bert import BertConfig, BertForPreTraining
from model_zoo.optimizer import clip_grad_global_norm
from model_zoo.tasks.pretraining import PretrainingBatch
from model_zoo.tasks.pretraining.objective import pretraining_objective

OPTIONS = {'learning_rate': 1e-4, 'wd': 0.01}
SCRIPTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCRIPT = os.path.join(SCRIPTS, 'run_pretraining_hvd.py')


def make_inputs(config, batch, length, masks, seed=0):
    """Full sequences with `masks` masked words each, as NumPy arrays in the order of a batch."""
    rng = np.random.RandomState(seed)
    positions = np.sort(np.argsort(rng.rand(batch, length))[:, :masks])
    return (
        rng.randint(0, config.vocab_size, (batch, length)),
        rng.randint(0, 2, (batch, length)),
        np.full((batch,), length),
        positions,
        rng.randint(0, config.vocab_size, (batch, masks)),
        rng.randint(0, 2, (batch,)),
    )


def our_step(config):
    """Our model, as scripts/run_pretraining.py trains it."""
    model = BertForPreTraining(config)
    model.initialize()
    model.hybridize(static_alloc=True)
    objective = pretraining_objective(model, accuracies=False)
    trainer = mx.gluon.Trainer(
        model.collect_params(), 'bertadam', dict(OPTIONS), update_on_kvstore=False
    )
    parameters = [p for p in model.collect_params().values() if p.grad_req != 'null']

    def step(words, types, length, positions, ids, labels):
        weights = np.ones(ids.shape)
        arrays = words, types, length, positions, ids, weights, labels
        arrays = [mx.nd.array(array, dtype='float32') for array in arrays]
        batch = PretrainingBatch(*arrays, np.arange(len(words)), ids.size, words.size)
        with mx.autograd.record():
            loss = mx.nd.add_n(*objective.terms(batch))
        loss.backward()
        trainer.allreduce_grads()
        clip_grad_global_norm(parameters, 1)
        trainer.update(1)
        mx.nd.waitall()

    return step


def torch_step(config):
    """The model of transformers with torch's AdamW; it too predicts the masked words only."""
    import torch
    import transformers

    from model_zoo.util.threads import available_processors

    torch.set_num_threads(available_processors())
    fields = {name: value for name, value in config.to_dict().items() if name != 'pruned_heads'}
    model = transformers.BertForPreTraining(transformers.BertConfig(**fields)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)

    def step(words, types, length, positions, ids, labels):
        mask = (np.arange(words.shape[1]) < length[:, None]).astype(np.int64)
        words, mask, types, positions, ids, labels = (
            torch.from_numpy(array) for array in (words, mask, types, positions, ids, labels)
        )
        outputs = model.bert(words, attention_mask=mask, token_type_ids=types)
        masked = outputs.last_hidden_state[torch.arange(len(words))[:, None], positions]
        scores, pairs = model.cls(masked, outputs.pooler_output)
        cross_entropy = torch.nn.functional.cross_entropy
        loss = cross_entropy(scores.flatten(0, 1), ids.flatten()) + cross_entropy(pairs, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        optimizer.zero_grad()

    return step


def compare_steps(shapes, rounds, seconds):
    """Print tokens a second at each of the shapes, (batch, length).

    Returns
    -------
    dict
        See `side_by_side.report`.
    """
    config = BertConfig()
    contenders = {'ours': our_step(config)}
    if installed('torch', 'transformers'):
        contenders['torch+transformers'] = torch_step(config)
    rows = []
    for batch, length in shapes:
        inputs = make_inputs(config, batch, length, max(1, round(0.15 * length)))
        calls = {
            name: lambda call=call, inputs=inputs: call(*inputs)
            for name, call in contenders.items()
        }
        times = time_in_turn(calls, rounds, seconds)
        rows.append((f'{batch}x{length}', batch * length, times))
    return report('BERT base pre-training step, float32', rows, unit='tokens/s')


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
