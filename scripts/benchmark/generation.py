"""Greedy generation by GPT-2 with its cache: ours beside transformers', in turn, as ratios.

Both have the same random weights, and are checked to write the same tokens.
"""

import os

from side_by_side import Case, Contender, add_flags, measure, report, run, threads


def _prompts(shape, vocab_size):
    import numpy as np

    return np.random.RandomState(0).randint(0, vocab_size, shape)


def ours(options):
    from gpt2 import GPT2Config, GPT2LMHeadModel

    if not os.path.isfile(os.path.join(options.folder, 'config.json')):  # the first contender
        block = GPT2LMHeadModel(GPT2Config(n_layer=options.layers))
        block.initialize()
        block.save_pretrained(options.folder, format='huggingface')
    block = GPT2LMHeadModel.from_pretrained(options.folder)
    block.hybridize(static_alloc=True, static_shape=True)

    def prepare(shape):
        prompts = _prompts(shape, block.config.vocab_size)
        return lambda: [
            found.tokens for (found,) in block.generate(prompts, options.new_tokens)
        ]

    return prepare


def transformers(options):
    import torch
    import transformers

    torch.set_num_threads(threads())
    model = transformers.GPT2LMHeadModel.from_pretrained(options.folder).eval()
    model.generation_config.eos_token_id = None  # ours too writes on behind an end of text

    def prepare(shape):
        words = torch.from_numpy(_prompts(shape, model.config.vocab_size))

        def call():
            with torch.inference_mode():
                result = model.generate(
                    words,
                    attention_mask=torch.ones_like(words),
                    max_new_tokens=options.new_tokens,
                    do_sample=False,
                    pad_token_id=0,
                )
            return result[:, words.shape[1] :].tolist()

        return call

    return prepare


def _same_tokens(name, tokens, expected):
    from model_zoo.errors import InputError

    if tokens != expected:
        raise InputError(f'{name} wrote other tokens than ours')


def main(argv=None):
    parser = add_flags(__doc__.split('\n')[0], rounds=5, seconds=120)
    parser.add_argument('--batches', type=int, nargs='+', default=[1, 8], help='prompts at once')
    parser.add_argument('--prompt', type=int, default=32, help='length of the prompts')
    parser.add_argument('--new_tokens', type=int, default=128)
    parser.add_argument('--layers', type=int, default=12, help='of 768 units')
    args = parser.parse_args(argv)
    cases = [
        Case(f'{batch}x{args.prompt}', (batch, args.prompt), batch * args.new_tokens)
        for batch in args.batches
    ]
    peers = [Contender('torch+transformers', transformers, ('torch', 'transformers'))]
    measured = measure([Contender('ours', ours)], peers, cases, args, same=_same_tokens)
    report(
        f'GPT-2, {args.layers} layers, {args.new_tokens} new tokens, greedy, float32',
        measured,
        args.json,
        'tokens/s',
    )


if __name__ == '__main__':
    run(main)
