"""Evaluation of a text by Transformer-XL, with its memory: ours beside pytorch-pretrained-bert's.

Both have the same random weights, and are checked to measure the same loss. The text is drawn with
the falling frequencies of words (Zipf), which decides how much the adaptive softmax has to do.
"""

import contextlib
import inspect
import os

from side_by_side import Case, Contender, add_flags, measure, report, run, threads

SEGMENTS = 4  # of a call; the memory goes from one to the next


def draw_text(vocab_size, batch, length):
    """SEGMENTS pairs of words and labels, (batch, length) each."""
    import numpy as np

    frequencies = 1 / np.arange(1, vocab_size + 1)
    words = np.random.RandomState(0).choice(
        vocab_size, (batch, SEGMENTS * length + 1), p=frequencies / frequencies.sum()
    )
    starts = range(0, SEGMENTS * length, length)
    return [
        (words[:, i : i + length].copy(), words[:, i + 1 : i + length + 1].copy()) for i in starts
    ]


def sizes(options):
    """Of the model, by the names of its configuration's fields."""
    return {
        'vocab_size': options.vocab_size, 'n_layer': options.layers, 'tgt_len': options.tgt_len,
        'mem_len': options.mem_len, 'clamp_len': options.mem_len + options.tgt_len,
    }  # fmt: skip


def original_config(values):
    """The configuration of pytorch-pretrained-bert: of the values those that it has."""
    import pytorch_pretrained_bert as original

    known = inspect.signature(original.TransfoXLConfig).parameters
    fields = {name: value for name, value in values.items() if name in known}
    return original.TransfoXLConfig(values['vocab_size'], **fields)


def ours(options):
    import mxnet as mx

    from transfo_xl import TransfoXLConfig, TransfoXLLMHeadModel

    if not os.path.isfile(os.path.join(options.folder, 'config.json')):  # the first contender
        block = TransfoXLLMHeadModel(TransfoXLConfig(**sizes(options)))
        block.initialize()
        block.save_pretrained(options.folder, format='pytorch')
    block = TransfoXLLMHeadModel.from_pretrained(options.folder)
    block.hybridize(static_alloc=True, static_shape=True)

    def prepare(batch):
        text = draw_text(options.vocab_size, batch, options.tgt_len)

        def call():
            state, total = None, 0
            for words, labels in text:
                words, labels = (mx.nd.array(each, dtype='int32') for each in (words, labels))
                losses, state = block.read(words, labels, state)
                total += losses.mean()
            return total.asscalar() / SEGMENTS

        return call

    return prepare


@contextlib.contextmanager
def _boolean_masks(torch):
    """Let the original make masks of the type that today's torch wants."""
    byte = torch.Tensor.byte
    torch.Tensor.byte = torch.Tensor.bool
    try:
        yield
    finally:
        torch.Tensor.byte = byte


def pytorch_pretrained_bert(options):
    import json

    import pytorch_pretrained_bert as original
    import torch

    torch.set_num_threads(threads())
    with open(os.path.join(options.folder, 'config.json'), encoding='utf-8') as file:
        model = original.TransfoXLLMHeadModel(original_config(json.load(file))).eval()
    weights = torch.load(os.path.join(options.folder, 'pytorch_model.bin'))
    model.load_state_dict(weights, False)
    model.tie_weights()

    def prepare(batch):
        text = draw_text(options.vocab_size, batch, options.tgt_len)

        def call():
            mems, total = None, 0
            with _boolean_masks(torch), torch.inference_mode():
                for words, labels in text:
                    losses, mems = model(torch.from_numpy(words), torch.from_numpy(labels), mems)
                    total += losses.mean()
            return total.item() / SEGMENTS

        return call

    return prepare


def _same_loss(name, loss, expected):
    from model_zoo.errors import InputError

    if abs(loss - expected) > 1e-3:
        raise InputError(f'{name} has the loss {loss}, and ours is {expected}')


def main(argv=None):
    parser = add_flags(__doc__.split('\n')[0], rounds=5, seconds=120)
    parser.add_argument('--batches', type=int, nargs='+', default=[1, 8], help='streams of text')
    parser.add_argument('--tgt_len', type=int, default=128, help='tokens of a segment')
    parser.add_argument('--mem_len', type=int, default=160, help='positions that are remembered')
    parser.add_argument('--layers', type=int, default=6, help='of 1024 units; the large one has 18')
    parser.add_argument('--vocab_size', type=int, default=267735, help="wikitext-103's")
    args = parser.parse_args(argv)
    cases = [
        Case(f'{batch}x{args.tgt_len}', batch, batch * args.tgt_len * SEGMENTS)
        for batch in args.batches
    ]
    needs = ('torch', 'pytorch_pretrained_bert')
    peers = [Contender('pytorch-pretrained-bert', pytorch_pretrained_bert, needs)]
    measured = measure([Contender('ours', ours)], peers, cases, args, same=_same_loss)
    report(
        f'Transformer-XL, {args.layers} layers, memory {args.mem_len}, evaluation, float32',
        measured,
        args.json,
        'tokens/s',
    )


if __name__ == '__main__':
    run(main)
