"""Generate text with GPT-2, or with any other language model of the zoo.

    python generate_gpt2.py gpt2                                           # asks for prompts
    python generate_gpt2.py DIR 'Once upon a time' --top_k 40
    python generate_gpt2.py DIR --file prompts.txt --output texts.json
    python generate_gpt2.py DIR --unconditional --nsamples 4 --batch_size 2

``DIR`` is a folder that ``save_pretrained`` wrote, with the tokenizer's files, or a checkpoint in
another format that ``from_pretrained`` reads. The flags of pytorch-pretrained-bert's run_gpt2.py
and their defaults are kept, except ``--batch_size``, which only says how many samples run at once.
"""

import sys

from tqdm import tqdm

from model_zoo.app import cli
from model_zoo.app.arguments import add_encoding, add_use_arguments, engine_of, take_model
from model_zoo.errors import InputError, ZooError
from model_zoo.util.files import write_json

#: new tokens where neither --length nor the model's context limits them
DEFAULT_LENGTH = 128


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument
    add(
        'words',
        nargs='*',
        metavar='MODEL TEXT',
        help='name or folder of the model, and the texts to continue, each in quotes',
    )
    add('--model_name_or_path', default='gpt2', help='the same as MODEL')
    add('--prompt', nargs='+', metavar='TEXT', help='texts to continue')
    add(
        '--input_file',
        '--file',
        help='file of texts to continue: one per line; or .csv, .tsv, .jsonl or .parquet with a '
        'column of texts',
    )
    add('--text_column', metavar='COLUMN', help='with --file: name of the column with the texts')
    add_encoding(parser)
    add('--unconditional', action='store_true', help='generate texts from nothing')
    add('--nsamples', type=int, default=1, help='number of continuations of each text')
    add('--batch_size', type=int, default=-1, help='samples per batch; -1: all samples of a text')
    add('--length', type=int, default=-1, help='number of new tokens; -1: half of the context')
    add('--temperature', type=float, default=1.0, help='below 1: prefer likely tokens')
    add('--top_k', type=int, default=0, help='sample from this many likeliest tokens; 0: from all')
    add('--top_p', type=float, default=1.0, help='sample from the likeliest with this probability')
    add('--greedy', action='store_true', help='take the most likely token every time')
    add('--num_beams', type=int, default=1, help='beam search for the most likely texts')
    add('--length_penalty', type=float, default=1.0, help='of beam search; high favours long texts')
    add('--seed', type=int, default=0, help='seed of the sampling')
    add(
        '--stop',
        nargs='+',
        metavar='TOKEN',
        help="tokens that end a text, instead of the model's own; '': none",
    )
    add(
        '--stream',
        action='store_true',
        help='print tokens as they are generated, sample after sample',
    )
    add(
        '--output',
        help='write texts, tokens and log-probabilities to this JSON file, or one line '
        'per sample to a .csv, .tsv or .jsonl',
    )
    add('--gpu', type=int, nargs='?', const=0, help='number of the GPU to use; default: the CPU')
    add('--verbose', action='store_true', help='log more')
    add_use_arguments(parser)
    args = parser.parse_intermixed_args(argv)
    texts = take_model(args, 'model_name_or_path', args.words)
    args.prompt = [*texts, *(args.prompt or [])] or None
    check_arguments(args)
    return args


def check_arguments(args):
    """Check what `model_zoo.generation.generate` doesn't."""
    sources = ('prompt', 'input_file', 'unconditional')
    given = [name for name in sources if getattr(args, name)]
    if len(given) > 1:
        raise InputError(f'and `{given[1]}`: choose one', field=given[0])
    if args.output and not given:
        raise InputError('goes with `prompt`, `input_file` or `unconditional`', field='output')
    for name in ('nsamples', 'batch_size', 'length'):
        value = getattr(args, name)
        if value < 1 and (value != -1 or name == 'nsamples'):
            raise InputError(f'must be at least 1, not {value}', field=name)
    draws = (args.temperature, args.top_k, args.top_p) != (1.0, 0, 1.0)
    for field, is_given in (('greedy', args.greedy), ('num_beams', args.num_beams > 1)):
        if is_given and draws:
            raise InputError(
                "doesn't sample: leave out `temperature`, `top_k` and `top_p`", field=field
            )
    if args.num_beams > 1 and (args.greedy or args.stream):
        raise InputError("doesn't go with `greedy` and `stream`", field='num_beams')


class Generator:
    """Model, tokenizer and flags: from prompts to texts."""

    def __init__(self, args):
        from model_zoo.generation.request import TextOptions
        from model_zoo.inference import make_engine
        from model_zoo.inference.text import end_tokens
        from model_zoo.opening import locate, open_model

        self._args, self._runs = args, 0
        self._options = {}
        if args.num_beams > 1:
            self._options = {'num_beams': args.num_beams, 'length_penalty': args.length_penalty}
        elif not args.greedy:
            self._options = {'temperature': args.temperature, 'top_k': args.top_k or None}
            self._options['top_p'] = None if args.top_p == 1 else args.top_p
        TextOptions.read({**self._options, 'seed': args.seed})  # before the model is opened
        name = args.model_name_or_path
        if 'language_model' not in locate(name, weights=None, vocab=False).family.tasks:
            raise InputError(f'{name}: this is not a language model', field='model_name_or_path')
        ctx = cli.get_ctx(args.gpu)
        block, self._tokenizer, _ = open_model(name, 'language_model', ctx=ctx)
        engine = engine_of(args.engine, args.precision, args.input_file)
        self._engine = make_engine(block, engine, args.precision, ctx)
        if self._engine.name == 'mxnet':
            block.hybridize(static_alloc=True, static_shape=True)
        self._model = self._engine.language_model
        if args.stop is None:
            stop_tokens = end_tokens(block, self._tokenizer)
        else:
            stop_tokens = [self._stop_token(text) for text in args.stop if text]
        # the model forgets the beginning of a text that is longer than its context
        self._options.update(stop_tokens=stop_tokens, overflow='slide')

    def _stop_token(self, text):
        known = self._tokenizer.vocab.token_to_idx
        ids = [known[text]] if text in known else self._tokenizer.encode(text)
        if len(ids) != 1:
            raise InputError(
                f'{text!r} is {len(ids)} tokens of this model, and must be a single one',
                field='stop',
            )
        return ids[0]

    def start_of_text(self):
        """Return the ids that an unconditional text follows."""
        end = self._tokenizer.eos_token_id
        if end is None:
            raise InputError(
                'this model has no token between texts, which a new text would follow; give a '
                '`prompt`',
                field='unconditional',
            )
        return [end]

    def encode(self, prompt):
        ids = self._tokenizer.encode(prompt)
        if not ids:
            raise InputError(f'the prompt {prompt!r} is empty: it has no tokens')
        return ids

    def _length(self):
        if self._args.length != -1:
            return self._args.length
        context = self._model.context_length
        return DEFAULT_LENGTH if context is None else max(1, context // 2)

    def _seed(self):
        """Return a new seed for each run, so that a repeated prompt gets two continuations."""
        import numpy as np

        self._runs += 1
        return int(np.random.SeedSequence([self._args.seed, self._runs]).generate_state(1)[0])

    def batches(self, count):
        """Yield groups of prompts that run together: slices of `count`, and each one's samples."""
        samples = self._args.nsamples
        size = samples if self._args.batch_size == -1 else self._args.batch_size
        if self._args.num_beams > 1 or samples <= size:
            step = max(1, size // samples)
            for first in range(0, count, step):
                yield slice(first, first + step), samples
        else:
            for prompt in range(count):
                for first in range(0, samples, size):
                    yield slice(prompt, prompt + 1), min(size, samples - first)

    def run(self, prompts, samples):
        """Return `samples` continuations of each of `prompts`, a list of lists of ids."""
        from model_zoo import generation

        continuations = generation.generate(
            self._model,
            prompts,
            self._length(),
            num_return_sequences=samples,
            seed=self._seed(),
            **self._options,
        )
        return [
            [self._result(prompt, *text) for text in of_prompt]
            for prompt, of_prompt in zip(prompts, continuations)
        ]

    def stream(self, prompt):
        """Continue the ids `prompt`, and print the text as it is generated."""
        from model_zoo import generation

        streamed, log_prob = generation.StreamedText(self._tokenizer, prompt), 0.0
        for new in generation.stream(
            self._model, [prompt], self._length(), seed=self._seed(), **self._options
        ):
            log_prob += new.log_prob
            print(streamed.add(new), end='', flush=True)
        print()
        return self._result(prompt, streamed.tokens, log_prob, new.finish)

    def _result(self, prompt, tokens, log_prob, finish):
        from model_zoo.generation import text_of

        return {
            'text': text_of(self._tokenizer, prompt, tokens, finish),
            'tokens': tokens,
            'log_prob': log_prob,
            'finish': finish,
        }


def continue_all(generator, args, texts, prompts):
    """Print and return the continuations of `prompts`, ids; `texts` are None for new texts."""
    results = [{'prompt': text, 'samples': []} for text in texts]
    numbers = iter(range(1, len(prompts) * args.nsamples + 1))

    def begin(number):
        if len(prompts) > 1 and not results[number]['samples']:
            print(f'Prompt: {texts[number]}')
        print('=' * 40 + f' SAMPLE {next(numbers)} ' + '=' * 40)

    if args.stream:
        for number, prompt in enumerate(prompts):
            for _ in range(args.nsamples):
                begin(number)
                results[number]['samples'].append(generator.stream(prompt))
    else:
        total = len(prompts) * args.nsamples
        # disable=None: no bar where standard error isn't a terminal
        with tqdm(total=total, unit=' samples', disable=None if total > 1 else True) as bar:
            for chosen, samples in generator.batches(len(prompts)):
                continuations = generator.run(prompts[chosen], samples)
                bar.update(sum(map(len, continuations)))
                bar.clear()
                for number, of_prompt in enumerate(continuations, chosen.start):
                    for sample in of_prompt:
                        begin(number)
                        print(sample['text'], flush=True)
                        results[number]['samples'].append(sample)
    print('=' * 80, flush=True)
    return results


def interact(generator, args):
    """Ask for prompts until the input ends; a bad one doesn't end the conversation."""
    while True:
        try:
            text = input('Model prompt >>> ')
        except EOFError:
            print()
            return
        if not text:
            print('Prompt should not be empty!')
            continue
        try:
            continue_all(generator, args, [text], [generator.encode(text)])
        except ZooError as error:
            print(f'error: {cli.message_of(error)}', file=sys.stderr)


def read_prompts(path, column=None, encoding=None):
    """Return the texts of a file that aren't empty."""
    from model_zoo.app.use import read_file, texts_of

    texts = list(texts_of(read_file(path, column, encoding=encoding)))
    if not texts:
        raise InputError(f'{path!r} has no prompts: give a file with one per line')
    return texts


def write_texts(path, results):
    """Write all samples: a JSON file, or a line for each."""
    if not path.lower().endswith(('.csv', '.tsv', '.jsonl')):
        write_json(path, results)
        return
    from model_zoo.app.use import write_records

    records = (
        {'prompt': result['prompt'], **sample} for result in results for sample in result['samples']
    )
    write_records(records, output=path)


def main(argv=None):
    args = parse_arguments(argv)
    cli.setup_logging(verbose=args.verbose)
    sys.stdout.reconfigure(errors='replace')  # texts may have characters that a terminal can't show
    texts = args.prompt
    if args.input_file:  # before the model
        texts = read_prompts(args.input_file, args.text_column, args.encoding)
    generator = Generator(args)
    if args.unconditional:
        texts, prompts = [None], [generator.start_of_text()]
    elif texts:
        prompts = [generator.encode(text) for text in texts]
    else:
        interact(generator, args)
        return
    results = continue_all(generator, args, texts, prompts)
    if args.output:
        write_texts(args.output, results)


if __name__ == '__main__':
    cli.run_script(main)
