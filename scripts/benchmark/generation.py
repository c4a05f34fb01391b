"""Greedy generation by GPT-2 with its cache: ours beside transformers', in one run, as ratios.

Both have the same random weights, and are checked to write the same tokens.
"""

import sys

import model_zoo  # isort: skip  sets MXNet's threads before it loads
import numpy as np
from side_by_side import installed, report, time_in_turn

from gpt2 import GPT2Config, GPT2LMHeadModel
from model_zoo.app import cli
from model_zoo.errors import InputError
from model_zoo.util.threads import available_processors


def our_block(config):
    """Our GPT2LMHeadModel with random weights, hybridized."""
    block = GPT2LMHeadModel(config)
    block.initialize()
    block.hybridize(static_alloc=True, static_shape=True)
    return block


def torch_model(block):
    """The model of transformers with the block's weights."""
    import torch
    import transformers

    torch.set_num_threads(available_processors())
    fields = {**block.config.to_dict(), 'bos_token_id': None, 'eos_token_id': None}
    del fields['pruned_heads']
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**fields))
    tensors = block.tensors_in('huggingface')
    model.load_state_dict({key: torch.from_numpy(each) for key, each in tensors.items()}, False)
    model.tie_weights()
    return model.eval()


def make_contenders(config, new_tokens):
    """Name -> function(prompts) that returns the new tokens."""
    block = our_block(config)

    def run_ours(prompts):
        return [found.tokens for (found,) in block.generate(prompts, new_tokens)]

    contenders = {'ours': run_ours}
    if installed('torch', 'transformers'):
        import torch

        model = torch_model(block)

        def run_torch(prompts):
            words = torch.from_numpy(prompts)
            with torch.inference_mode():
                result = model.generate(
                    words,
                    attention_mask=torch.ones_like(words),
                    max_new_tokens=new_tokens,
                    do_sample=False,
                    pad_token_id=0,
                )
            return result[:, prompts.shape[1] :].tolist()

        contenders['torch+transformers'] = run_torch
    return contenders


def main(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_argument('--batches', type=int, nargs='+', default=[1, 8], help='prompts at once')
    parser.add_argument('--prompt', type=int, default=32, help='length of the prompts')
    parser.add_argument('--new_tokens', type=int, default=128)
    parser.add_argument('--layers', type=int, default=12, help='of 768 units')
    parser.add_argument('--rounds', type=int, default=5, help='calls of each contender')
    parser.add_argument('--seconds', type=float, default=120, help='limit for one batch size')
    parser.add_argument('--json', help='file for the figures')
    args = parser.parse_args(argv)
    config = GPT2Config(n_layer=args.layers)
    contenders = make_contenders(config, args.new_tokens)
    rng = np.random.RandomState(0)
    rows = []
    for batch in args.batches:
        prompts = rng.randint(0, config.vocab_size, (batch, args.prompt))
        written = {name: call(prompts) for name, call in contenders.items()}
        for name, tokens in written.items():
            if tokens != written['ours']:
                raise InputError(f'{name} wrote other tokens than ours')
        calls = {
            name: lambda call=call, prompts=prompts: call(prompts)
            for name, call in contenders.items()
        }
        times = time_in_turn(calls, args.rounds, args.seconds)
        rows.append((f'{batch}x{args.prompt}', batch * args.new_tokens, times))
    report(
        f'GPT-2, {args.layers} layers, {args.new_tokens} new tokens, greedy, float32 '
        f'(model_zoo {model_zoo.__version__})',
        rows,
        args.json,
        unit='tokens/s',
    )


if __name__ == '__main__':
    sys.exit(cli.run(main))
