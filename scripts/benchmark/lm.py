"""Evaluation of a text by Transformer-XL, with its memory: ours beside pytorch-pretrained-bert's.

Both have the same random weights, and are checked to measure the same loss. The text is drawn with
the falling frequencies of words (Zipf), which decides how much the adaptive softmax has to do.
"""

import contextlib
import inspect
import sys

import model_zoo  # isort: skip  sets MXNet's threads before it loads
import mxnet as mx
import numpy as np
from side_by_side import installed, report, time_in_turn

from model_zoo.app import cli
from model_zoo.errors import InputError
from model_zoo.util.threads import available_processors
from transfo_xl import TransfoXLConfig, TransfoXLLMHeadModel

SEGMENTS = 4  # of a call; the memory goes from one to the next


def our_call(block):
    """Function(segments) -> mean loss, with our block."""

    def call(segments):
        mems, total = None, 0
        for words, labels in segments:
            words, labels = (mx.nd.array(each, dtype='int32') for each in (words, labels))
            losses, mems = block(words, mems, labels=labels)
            total += losses.mean()
        return total.asscalar() / len(segments)

    return call


@contextlib.contextmanager
def boolean_masks(torch):
    """Let the original make masks of the type that today's torch wants."""
    byte = torch.Tensor.byte
    torch.Tensor.byte = torch.Tensor.bool
    try:
        yield
    finally:
        torch.Tensor.byte = byte


def torch_call(block):
    """Function(segments) -> mean loss, with pytorch-pretrained-bert's model of the same weights."""
    import pytorch_pretrained_bert as original
    import torch

    torch.set_num_threads(available_processors())
    known = inspect.signature(original.TransfoXLConfig).parameters
    fields = {name: value for name, value in block.config.to_dict().items() if name in known}
    config = original.TransfoXLConfig(block.config.vocab_size, **fields)
    model = original.TransfoXLLMHeadModel(config).eval()
    tensors = block.tensors_in('huggingface')
    model.load_state_dict({key: torch.from_numpy(each) for key, each in tensors.items()}, False)
    model.tie_weights()

    def call(segments):
        mems, total = None, 0
        with boolean_masks(torch), torch.inference_mode():
            for words, labels in segments:
                losses, mems = model(torch.from_numpy(words), torch.from_numpy(labels), mems)
                total += losses.mean()
        return total.item() / len(segments)

    return call


def draw_text(config, batch, length):
    """SEGMENTS pairs of words and labels, (batch, length) each."""
    frequencies = 1 / np.arange(1, config.vocab_size + 1)
    rng = np.random.RandomState(0)
    words = rng.choice(
        config.vocab_size, (batch, SEGMENTS * length + 1), p=frequencies / frequencies.sum()
    )
    starts = range(0, SEGMENTS * length, length)
    return [
        (words[:, i : i + length].copy(), words[:, i + 1 : i + length + 1].copy()) for i in starts
    ]


def main(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_argument('--batches', type=int, nargs='+', default=[1, 8], help='streams of text')
    parser.add_argument('--tgt_len', type=int, default=128, help='tokens of a segment')
    parser.add_argument('--mem_len', type=int, default=160, help='positions that are remembered')
    parser.add_argument('--layers', type=int, default=6, help='of 1024 units; the large one has 18')
    parser.add_argument('--vocab_size', type=int, default=267735, help="wikitext-103's")
    parser.add_argument('--rounds', type=int, default=5, help='calls of each contender')
    parser.add_argument('--seconds', type=float, default=120, help='limit for one batch size')
    parser.add_argument('--json', help='file for the figures')
    args = parser.parse_args(argv)
    config = TransfoXLConfig(
        vocab_size=args.vocab_size,
        n_layer=args.layers,
        tgt_len=args.tgt_len,
        mem_len=args.mem_len,
        clamp_len=args.mem_len + args.tgt_len,
    )
    block = TransfoXLLMHeadModel(config)
    block.initialize()
    block.hybridize(static_alloc=True, static_shape=True)
    contenders = {'ours': our_call(block)}
    if installed('torch', 'pytorch_pretrained_bert'):
        contenders['pytorch-pretrained-bert'] = torch_call(block)
    rows = []
    for batch in args.batches:
        text = draw_text(config, batch, args.tgt_len)
        losses = {name: call(text) for name, call in contenders.items()}
        for name, loss in losses.items():
            if abs(loss - losses['ours']) > 1e-3:
                raise InputError(f'{name} has the loss {loss}, and ours is {losses["ours"]}')
        calls = {
            name: lambda call=call, text=text: call(text) for name, call in contenders.items()
        }
        times = time_in_turn(calls, args.rounds, args.seconds)
        rows.append((f'{batch}x{args.tgt_len}', batch * args.tgt_len * SEGMENTS, times))
    report(
        f'Transformer-XL, {args.layers} layers, memory {args.mem_len}, evaluation, float32 '
        f'(model_zoo {model_zoo.__version__})',
        rows,
        args.json,
        unit='tokens/s',
    )


if __name__ == '__main__':
    sys.exit(cli.run(main))
