"""Greedy generation by GPT-2 with its cache: ours beside transformers', in turn, as ratios.

All have the same random weights. In float32 they are checked to write the same tokens. Ours is
there as MXNet runs it, and as ONNX Runtime does, in float32 and with INT8 weights.
"""

import os

from side_by_side import Case, Contender, add_flags, measure, report, run, threads


def _prompts(shape, vocab_size):
    import numpy as np

    return np.random.RandomState(0).randint(0, vocab_size, shape)


def _our_block(options):
    from gpt2 import GPT2Config, GPT2LMHeadModel

    if not os.path.isfile(os.path.join(options.folder, 'config.json')):  # the first contender
        block = GPT2LMHeadModel(GPT2Config(n_layer=options.layers))
        block.initialize()
        block.save_pretrained(options.folder, format='huggingface')
    return GPT2LMHeadModel.from_pretrained(options.folder)


def _greedy(model, vocab_size, new_tokens):
    from model_zoo.generation import generate

    def prepare(shape):
        prompts = _prompts(shape, vocab_size)
        return lambda: [found.tokens for (found,) in generate(model, prompts, new_tokens)]

    return prepare


def ours(options):
    block = _our_block(options)
    block.hybridize(static_alloc=True, static_shape=True)
    return _greedy(block, block.config.vocab_size, options.new_tokens)


def ours_by_engine(options, precision):
    os.environ['MXNET_HOME'] = options.folder  # where the engine keeps its file
    from model_zoo.inference import make_engine

    block = _our_block(options)
    engine = make_engine(block, 'onnxruntime', precision)
    return _greedy(engine.language_model, block.config.vocab_size, options.new_tokens)


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

    if 'int8' not in name and tokens != expected:
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
    own = [Contender('ours', ours)]
    for precision in ('float32', 'int8'):
        name, needs = f'ours, onnxruntime {precision}', ('onnx', 'onnxruntime')
        own.append(Contender(name, ours_by_engine, needs, {'precision': precision}))
    # a call takes seconds: the one that gave the tokens has warmed it up
    measured = measure(own, peers, cases, args, warm=False, same=_same_tokens)
    report(
        f'GPT-2, {args.layers} layers, {args.new_tokens} new tokens, greedy',
        measured,
        args.json,
        'tokens/s',
    )


if __name__ == '__main__':
    run(main)
