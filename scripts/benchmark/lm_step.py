"""One step of training a language model (forward, backward, clipping, Adam): ours beside each
installed peer's, in turn, as ratios.

GPT-2 is that of 12 layers of 768 units, beside transformers' and pytorch-pretrained-bert's.
Transformer-XL, beside the latter's, carries its memory from step to step; its words have the
falling frequencies of a text's (Zipf), which decides how much the adaptive softmax has to do.
"""

import itertools

from lm import draw_text, original_config, sizes
from side_by_side import (
    Case,
    Contender,
    add_flags,
    gluon_step,
    measure,
    our_update,
    parse_shapes,
    report,
    run,
    threads,
    torch_step,
)

RATE = 1e-4


def _our_step(block, loss_of):
    """`prepare` of ours; `loss_of` gives of a shape the function that computes the loss."""
    block.initialize()
    block.hybridize(static_alloc=True, static_shape=True)
    update = our_update(block, 'openaiadam', {'learning_rate': RATE, 'wd': 0.01})
    return lambda shape: gluon_step(loss_of(shape), update)


def _segments(options, shape):
    """Words and labels, one pair after the other, without end."""
    return itertools.cycle(draw_text(options.vocab_size, *shape))


def our_gpt2(options):
    import mxnet as mx

    from gpt2 import GPT2Config, GPT2LMHeadModel

    block = GPT2LMHeadModel(GPT2Config(options.vocab_size, n_layer=options.layers))

    def loss_of(shape):
        words, _ = next(_segments(options, shape))
        return lambda: block(
            mx.nd.array(words, dtype='int32'), lm_labels=mx.nd.array(words, dtype='int32')
        )

    return _our_step(block, loss_of)


def our_transfo_xl(options):
    import mxnet as mx

    from transfo_xl import TransfoXLConfig, TransfoXLLMHeadModel

    block = TransfoXLLMHeadModel(TransfoXLConfig(**sizes(options)))

    def loss_of(shape):
        segments, memory = _segments(options, shape), [None]

        def compute():
            words, labels = (mx.nd.array(each, dtype='int32') for each in next(segments))
            losses, memory[0] = block(words, memory[0], labels=labels)
            return losses.mean()

        return compute

    return _our_step(block, loss_of)


def _torch_step(model, loss_of):
    import torch

    torch.set_num_threads(threads())
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    return lambda shape: torch_step(model, optimizer, loss_of(shape))


def transformers_gpt2(options):
    import torch
    import transformers

    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(options.vocab_size, n_layer=options.layers)
    )

    def loss_of(shape):
        words = torch.from_numpy(next(_segments(options, shape))[0])
        return lambda: model(input_ids=words, labels=words).loss

    return _torch_step(model, loss_of)


def original_gpt2(options):
    import pytorch_pretrained_bert as original
    import torch

    model = original.GPT2LMHeadModel(
        original.GPT2Config(options.vocab_size, n_layer=options.layers)
    )

    def loss_of(shape):
        words = torch.from_numpy(next(_segments(options, shape))[0])
        return lambda: model(words, lm_labels=words)

    return _torch_step(model, loss_of)


def original_transfo_xl(options):
    import pytorch_pretrained_bert as original
    import torch

    torch.Tensor.byte = torch.Tensor.bool  # the type of masks that today's torch wants
    model = original.TransfoXLLMHeadModel(original_config(sizes(options)))

    def loss_of(shape):
        segments, memory = _segments(options, shape), [None]

        def compute():
            words, labels = map(torch.from_numpy, next(segments))
            losses, memory[0] = model(words, labels, memory[0])
            return losses.mean()

        return compute

    return _torch_step(model, loss_of)


ORIGINAL = ('torch', 'pytorch_pretrained_bert')
OURS = {'gpt2': our_gpt2, 'transfo_xl': our_transfo_xl}
PEERS = {
    'gpt2': [
        Contender('transformers', transformers_gpt2, ('torch', 'transformers')),
        Contender('pytorch-pretrained-bert', original_gpt2, ORIGINAL),
    ],
    'transfo_xl': [Contender('pytorch-pretrained-bert', original_transfo_xl, ORIGINAL)],
}
#: layers and words of each family
SIZES = {'gpt2': (12, 50257), 'transfo_xl': (6, 267735)}


def main(argv=None):
    parser = add_flags(' '.join(__doc__.split('\n\n')[0].split()), rounds=5, seconds=90)
    add = parser.add_argument
    add('--family', choices=list(OURS), default='gpt2')
    add('--shapes', default='1x128,4x128', help='batch x length')
    add('--layers', type=int, help='default: 12 of GPT-2, 6 of Transformer-XL')
    add('--vocab_size', type=int, help="default: GPT-2's, and wikitext-103's")
    add('--mem_len', type=int, default=160, help='positions that Transformer-XL remembers')
    args = parser.parse_args(argv)
    layers, vocab_size = SIZES[args.family]
    args.layers, args.vocab_size = args.layers or layers, args.vocab_size or vocab_size
    shapes = parse_shapes(args.shapes)
    args.tgt_len = max(length for _, length in shapes)
    cases = [Case(f'{batch}x{length}', (batch, length), batch * length) for batch, length in shapes]
    measured = measure(
        [Contender('ours', OURS[args.family])], PEERS[args.family], cases, args
    )
    title = f'{args.family} training step, {args.layers} layers, float32'
    report(title, measured, args.json, 'tokens/s')


if __name__ == '__main__':
    run(main)
