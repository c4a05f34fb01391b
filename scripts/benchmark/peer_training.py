"""A training of one of the scripts in another implementation: what ours is measured against.

    python scripts/benchmark/peer_training.py finetune_classifier --task_name MRPC ...

The script runs as it does alone: it reads the data, makes the batches, and initializes the model.
Then the model of transformers (of pytorch-pretrained-bert for Transformer-XL) gets the same
weights, those of the new head included, and trains on the same batches in the same order, with
pytorch-pretrained-bert's optimizers, the same learning rates and clipping. Only the random numbers
of dropout differ. After each epoch the script evaluates these weights. It writes the same files.
``--resume`` continues from the newest checkpoint.
"""

import argparse
import dataclasses
import importlib
import os
import pathlib
import re
import shutil
import tempfile

import model_zoo  # noqa: F401  isort: skip  before MXNet
import mxnet as mx

from model_zoo.app import cli, task_run
from model_zoo.app.originals import load_script
from model_zoo.app.run import Run
from model_zoo.errors import CheckpointError, InputError, MissingExtraError
from model_zoo.training.checkpoint import CheckpointStore
from model_zoo.training.objective import Objective
from model_zoo.training.updater import Updater
from model_zoo.util.files import atomic_write

SCRIPTS = pathlib.Path(__file__).resolve().parents[1]
#: endings of the names of parameters without weight decay
NO_DECAY = ('bias', 'gamma', 'beta', 'LayerNorm.weight', 'layer_norm.weight', 'ln_1.weight',
            'ln_2.weight', 'ln_f.weight')  # fmt: skip
STATE = 'peer.pt'


class Peer:
    """The peer's model."""

    def __init__(self, block, args):
        self.block = getattr(block, 'model', block)  # without Transformer-XL's memory
        self.is_streamed = self.block is not block
        self.memories = None
        with tempfile.TemporaryDirectory() as folder:
            self.block.save_pretrained(folder, format='huggingface')
            self.model = _open_streamed(folder) if self.is_streamed else self._open(folder)
        if self.is_streamed:
            self.model.reset_length(args.tgt_len, args.ext_len, args.mem_len)
        self.model.train()
        self.optimizer = _make_optimizer(self.model, args)

    def _open(self, folder):
        import transformers

        name = self.block.huggingface_name or type(self.block).__name__
        return getattr(transformers, name).from_pretrained(folder, **self._size())

    def _size(self):
        size = getattr(self.block, 'num_labels', None)
        return {} if size is None else {'num_labels': size}

    def loss(self, batch):
        """The mean over the things that the script counts."""
        import torch

        words = torch.tensor(batch.words.asnumpy(), dtype=torch.long)
        if self.is_streamed:
            labels = torch.tensor(batch.labels.asnumpy(), dtype=torch.long)
            memories = None if batch.is_first else self.memories
            losses, self.memories = self.model(words, labels, mems=memories)
            return losses.sum() / batch.count
        positions = torch.arange(words.shape[-1])
        lengths = torch.tensor(batch.valid_length.asnumpy(), dtype=torch.long)
        mask = (positions < lengths[..., None]).long()
        if batch.labels is None:  # a language model
            labels = words.masked_fill(mask == 0, -100)
            return self.model(input_ids=words, attention_mask=mask, labels=labels).loss
        labels = torch.tensor(batch.labels.asnumpy())
        if type(self.block).__name__.endswith('QuestionAnswering'):
            labels = {'start_positions': labels[:, 0].long(), 'end_positions': labels[:, 1].long()}
        elif labels.dtype.is_floating_point:
            labels = {'labels': labels}
        else:
            labels = {'labels': labels.long().masked_fill(labels < 0, -100)}
        types = torch.tensor(batch.token_types.asnumpy(), dtype=torch.long)
        return self.model(
            input_ids=words, token_type_ids=types, attention_mask=mask, **labels
        ).loss

    def give_back(self):
        """Set the block's parameters to those of the model."""
        from safetensors.torch import save_model

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'model.safetensors')
            save_model(self.model, path, {'format': 'pt'})
            self.block.load_parameters(path, ignore_extra=self.is_streamed)


def _open_streamed(folder):
    """pytorch-pretrained-bert's Transformer-XL, which transformers no longer has."""
    import pytorch_pretrained_bert as original
    import torch
    from safetensors.torch import load_file

    torch.Tensor.byte = torch.Tensor.bool  # the type of masks that today's torch wants
    config = original.TransfoXLConfig.from_json_file(os.path.join(folder, 'config.json'))
    model = original.TransfoXLLMHeadModel(config)
    weights = load_file(os.path.join(folder, 'model.safetensors'))
    lacking, left = model.load_state_dict(weights, strict=False)
    tied = ('inv_freq', 'out_layers', 'out_projs')
    lacking = [name for name in lacking if not any(part in name for part in tied)]
    if lacking or left:
        raise CheckpointError(f'Transformer-XL lacks {lacking} and has no {left}')
    return model


def _make_optimizer(model, args):
    """The optimizer, whose learning rate is set before each update; it doesn't clip."""
    from pytorch_pretrained_bert.optimization import BertAdam
    from pytorch_pretrained_bert.optimization_openai import OpenAIAdam

    classes = {'bertadam': BertAdam, 'openaiadam': OpenAIAdam}
    optimizer_class = classes.get(args.optimizer.lower())
    if optimizer_class is None or args.as_bertadam or args.accumulate or args.dtype != 'float32':
        raise InputError(
            'a peer trains in float32 with the optimizer bertadam or openaiadam, without '
            '--as_bertadam and --accumulate'
        )
    named = list(model.named_parameters())
    groups = [
        {'params': [p for name, p in named if name.endswith(NO_DECAY)], 'weight_decay': 0.0},
        {'params': [p for name, p in named if not name.endswith(NO_DECAY)]},
    ]
    return optimizer_class(
        groups, lr=args.lr, e=args.epsilon, weight_decay=args.wd, schedule='none',
        max_grad_norm=-1,
    )  # fmt: skip


class PeerObjective(Objective):
    """The objective of a script, which the peer's model computes."""

    def backward(self, batches, counts, totals, scale=1.0):
        (batch,) = batches
        loss = self.terms(batch)
        loss.backward()
        return mx.nd.array([loss.item() * counts[0, 0]])


class PeerUpdater(Updater):
    """Updates the peer's model."""

    def __init__(self, updater, peer, seed):
        super().__init__(
            updater.block, updater.trainer, updater._schedule, updater._max_grad_norm
        )
        self._peer, self._seed = peer, seed

    def update(self, number, workers):
        import torch

        lr, optimizer = self._schedule(number), self._peer.optimizer
        largest = float('inf') if self._max_grad_norm is None else self._max_grad_norm
        norm = torch.nn.utils.clip_grad_norm_(self._peer.model.parameters(), largest)
        for group in optimizer.param_groups:
            group['lr'] = lr
        optimizer.step()
        optimizer.zero_grad()
        torch.manual_seed(self._seed * 1000003 + number)  # also of a resumed training
        return lr, mx.nd.array([norm.item()]), False


class PeerStore(CheckpointStore):
    """Checkpoints that have the peer's model and optimizer, too."""

    def __init__(self, folder, keep, peer):
        super().__init__(folder, keep)
        self._peer = peer

    def save(self, block, trainer, state, config, weights=None):
        import torch

        if weights is None:  # else the block had the peer's parameters when that was written
            self._peer.give_back()
        path = super().save(block, trainer, state, config, weights)
        content = {
            'model': self._peer.model.state_dict(),
            'optimizer': self._peer.optimizer.state_dict(),
            'memories': self._peer.memories,
        }
        for group in content['optimizer']['param_groups']:
            group.pop('schedule')  # an object
        with atomic_write(os.path.join(path, STATE), mode='wb') as file:
            torch.save(content, file)
        return path

    def newest(self):
        for path in self.paths():
            if not os.path.exists(os.path.join(path, STATE)):  # killed between the two files
                shutil.rmtree(path)
        checkpoint = super().newest()
        return PeerCheckpoint(checkpoint, self._peer)


class PeerCheckpoint:
    """A checkpoint, restored to the peer, too."""

    def __init__(self, checkpoint, peer):
        self._checkpoint, self._peer = checkpoint, peer
        self.path, self.state, self.config = checkpoint.path, checkpoint.state, checkpoint.config

    def restore(self, block, trainer):
        import torch

        self._checkpoint.restore(block, trainer)
        content = torch.load(os.path.join(self.path, STATE), weights_only=True)
        self._peer.model.load_state_dict(content['model'])
        groups = self._peer.optimizer.state_dict()['param_groups']
        for group, kept in zip(content['optimizer']['param_groups'], groups):
            group['schedule'] = kept['schedule']
        self._peer.optimizer.load_state_dict(content['optimizer'])
        self._peer.memories = content['memories']
        torch.manual_seed(self.state['step'])


class PeerRun(Run):
    """A run whose training is the peer's."""

    def train(self, training, outcome, job):
        import torch

        torch.set_num_threads(int(os.environ.get('OMP_NUM_THREADS', 1)))
        torch.manual_seed(self.args.seed)
        self._peer = peer = Peer(training.model, self.args)
        keep = self.args.keep_checkpoints
        self.folder.checkpoints = lambda: PeerStore(self.folder.file('checkpoints'), keep, peer)
        fields = training.objective._asdict()
        if len(fields['names']) > 1:
            raise InputError('a peer trains tasks with one loss')
        fields['terms'] = peer.loss

        def evaluate(*args):
            peer.give_back()
            return training.evaluate(*args)

        return super().train(
            dataclasses.replace(
                training, objective=PeerObjective(**fields), evaluate=evaluate
            ),
            outcome,
            {**job, 'peer': type(peer.model).__module__.partition('.')[0]},
        )

    def _updater(self, training, plan):
        return PeerUpdater(super()._updater(training, plan), self._peer, self.args.seed)


def main(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_argument('script', help='name of a training script, as finetune_squad')
    parser.add_argument('arguments', nargs=argparse.REMAINDER, help='its arguments')
    args = parser.parse_args(argv)
    path = SCRIPTS / f'{args.script}.py'
    text = path.read_text(encoding='utf-8') if path.is_file() else ''
    if not re.search(r'Run\(|run_task\(|task_command\(', text):
        raise InputError(f'{args.script!r} is not a training script such as finetune_squad')
    for library in ('torch', 'transformers', 'pytorch_pretrained_bert', 'safetensors'):
        try:
            importlib.import_module(library)
        except ImportError as error:
            raise MissingExtraError(
                f'{library} is missing: `make peers` makes an environment that has it'
            ) from error
    script = load_script(path)
    module = script if hasattr(script, 'Run') else task_run
    usual, module.Run = module.Run, PeerRun
    try:
        script.main(args.arguments)
    finally:
        module.Run = usual


if __name__ == '__main__':
    cli.run_script(main)
