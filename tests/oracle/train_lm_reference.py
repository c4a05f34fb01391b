"""The recipe of scripts/train_lm.py in pytorch-pretrained-bert: what ours is measured against.

    python tests/oracle/train_lm_reference.py ARGUMENTS_OF_TRAIN_LM

With the same seed it begins from the same weights (they go through a folder with Hugging Face's
names), and takes the same batches, optimizer, schedule and clipping; so it wants
``--hparams dropout=0``. Writes ``reference.json`` beside ``results.json``.
"""

import contextlib
import json
import logging
import math
import os
import pathlib
import sys
import time

import pytorch_pretrained_bert as original
import torch
from pytorch_pretrained_bert.optimization_openai import OpenAIAdam
from safetensors.torch import load_file

ROOT = pathlib.Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / 'scripts'), str(ROOT / 'tests' / 'oracle')]

import train_lm  # noqa: E402
from make_transfo_xl_fixtures import boolean_masks  # noqa: E402

from model_zoo.app import Run  # noqa: E402

logger = logging.getLogger('reference')

MODELS = {
    'gpt': (original.OpenAIGPTLMHeadModel, original.OpenAIGPTConfig),
    'gpt2': (original.GPT2LMHeadModel, original.GPT2Config),
    'transfo_xl': (original.TransfoXLLMHeadModel, original.TransfoXLConfig),
}
NO_DECAY = ('bias', 'layer_norm.weight', 'ln_1.weight', 'ln_2.weight', 'ln_f.weight')


def make_model(family, folder):
    """The original's model with the weights and the configuration of a folder."""
    model_class, config_class = MODELS[family]
    model = model_class(config_class.from_json_file(os.path.join(folder, 'config.json')))
    weights = load_file(os.path.join(folder, 'model.safetensors'))
    lacking, left = model.load_state_dict(weights, strict=False)
    tied = ('lm_head.decoder.weight', 'attn.bias', 'inv_freq', 'out_layers', 'out_projs')
    lacking = [name for name in lacking if not any(part in name for part in tied)]
    assert not lacking and not left, (lacking, left)
    return model


class Stepper:
    """Sum of the losses of a batch, with the memories of the batches before."""

    def __init__(self, model, is_streamed):
        self._model, self._is_streamed, self._memories = model, is_streamed, None

    def loss_sum(self, batch):
        words = torch.tensor(batch.words.asnumpy(), dtype=torch.long)
        if self._is_streamed:
            labels = torch.tensor(batch.labels.asnumpy(), dtype=torch.long)
            memories = None if batch.is_first else self._memories
            losses, self._memories = self._model(words, labels, mems=memories)
            return losses.sum()
        labels = words.clone()
        for row, length in zip(labels, batch.valid_length.asnumpy().astype(int)):
            row[length:] = -1
        return self._model(words, lm_labels=labels) * batch.count


def evaluate(model, loader, num_words, is_streamed):
    model.eval()
    stepper, total, tokens = Stepper(model, is_streamed), 0.0, 0
    with torch.no_grad():
        for batch in loader:
            total += float(stepper.loss_sum(batch))
            tokens += batch.count
    model.train()
    return {
        'loss': total / tokens,
        'perplexity': math.exp(total / tokens),
        'word_perplexity': math.exp(total / num_words),
    }


def main(argv=None):
    torch.set_num_threads(int(os.environ.get('OMP_NUM_THREADS', 1)))
    args = train_lm.parse_arguments(argv)
    run = Run(args, 'reference')
    task, tokenizer = train_lm.build(run)
    folder = os.path.join(args.output_dir, 'initial')
    task.model.save_pretrained(folder, tokenizer, format='huggingface')
    model, is_streamed = make_model(args.family, folder), args.family == 'transfo_xl'
    if args.family == 'transfo_xl':
        model.reset_length(args.tgt_len, args.ext_len, args.mem_len)
    loader, _, _ = task.load(args.train_file, args.batch_size, train=True)
    dev_loader, num_words, _ = task.load(args.eval_file, args.dev_batch_size)
    named = list(model.named_parameters())
    optimizer = OpenAIAdam(
        [
            {'params': [p for name, p in named if not name.endswith(NO_DECAY)]},
            {'params': [p for name, p in named if name.endswith(NO_DECAY)], 'weight_decay': 0.0},
        ],
        lr=args.lr,
        e=args.epsilon,
        weight_decay=args.wd,
        schedule=args.lr_schedule,
        warmup=args.warmup_ratio,
        t_total=args.epochs * len(loader),
    )
    masks = boolean_masks() if is_streamed else contextlib.nullcontext()
    results, started = [], time.time()
    with masks:
        for epoch in range(args.epochs):
            stepper, total, tokens = Stepper(model, is_streamed), 0.0, 0
            for batch in loader.epoch(epoch):
                loss = stepper.loss_sum(batch)
                (loss / batch.count).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
                optimizer.step()
                optimizer.zero_grad()
                total, tokens = total + float(loss), tokens + batch.count
            measured = evaluate(model, dev_loader, num_words, is_streamed)
            results.append(
                {'train_loss': total / tokens, **measured, 'seconds': time.time() - started}
            )
            logger.info('epoch %d: %s', epoch + 1, json.dumps(results[-1]))
            with open(os.path.join(args.output_dir, 'reference.json'), 'w') as file:
                json.dump({'epochs': results}, file, indent=2)


if __name__ == '__main__':
    main()
