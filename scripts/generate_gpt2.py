"""Generate text with GPT-2, or with any other language model of the zoo.

    python generate_gpt2.py gpt2                                           # asks for prompts
    python generate_gpt2.py DIR 'Once upon a time' --top_k 40
    python generate_gpt2.py DIR --file prompts.txt --output texts.json
    python generate_gpt2.py DIR --unconditional --nsamples 4 --batch_size 2

``DIR`` is a folder that ``save_pretrained`` wrote, with the tokenizer's files, or a checkpoint in
another format that ``from_pretrained`` reads. The flags of pytorch-pretrained-bert's run_gpt2.py
and their defaults are kept, except ``--batch_size``, which only says how many samples run at once.
"""

import itertools
import sys

from model_zoo.app import arguments, cli
from model_zoo.app.devices import get_ctx
from model_zoo.errors import InputError, ZooError
from model_zoo.util.files import write_json

#: the context of a model without a limit
DEFAULT_CONTEXT = 256
SAMPLING = 'temperature', 'top_k', 'top_p'


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    add = parser.add_argument
    add('words', nargs='*', metavar='MODEL TEXT', help='the model, and texts in quotes')
    add('--model_name_or_path', default='gpt2', help='the same as MODEL')
    add('--prompt', nargs='+', metavar='TEXT', help='texts to continue')
    texts = 'file of texts to continue: one per line, or a table with a column of texts'
    add('--input_file', '--file', help=texts)
    add('--text_column', metavar='COLUMN', help='with --file: name of the column with the texts')
    arguments.add_encoding(parser)
    add('--unconditional', action='store_true', help='generate texts from nothing')
    samples = 'number of continuations of each text'
    add('--nsamples', dest='num_return_sequences', type=int, default=1, help=samples)
    add('--batch_size', type=int, default=-1, help='samples per batch; -1: all samples of a text')
    length = 'number of new tokens; -1: half of the context'
    add('--length', dest='max_new_tokens', type=int, default=-1, help=length)
    add('--temperature', type=float, default=1.0, help='below 1: prefer likely tokens')
    add('--top_k', type=int, default=0, help='sample from this many likeliest tokens; 0: from all')
    add('--top_p', type=float, default=1.0, help='sample from the likeliest with this probability')
    add('--greedy', action='store_true', help='take the most likely token every time')
    add('--num_beams', type=int, default=1, help='beam search for the most likely texts')
    add('--length_penalty', type=float, default=1.0, help='of beam search; high favours long texts')
    add('--seed', type=int, default=0, help='seed of the sampling')
    ends = "tokens that end a text, instead of the model's own; '': none"
    add('--stop', nargs='+', metavar='TOKEN', help=ends)
    add('--stream', action='store_true', help='print tokens as they come, sample after sample')
    add('--output', help='.json, .csv, .tsv or .jsonl for texts, tokens and log-probabilities')
    add('--gpu', type=int, nargs='?', const=0, help='number of the GPU to use; default: the CPU')
    add('--verbose', action='store_true', help='log more')
    arguments.add_use_arguments(parser)
    args = parser.parse_intermixed_args(argv)
    texts = arguments.take_model(args, 'model_name_or_path', args.words)
    args.prompt = [*texts, *(args.prompt or [])] or None
    given = [name for name in ('prompt', 'input_file', 'unconditional') if vars(args)[name]]
    if len(given) > 1:
        raise InputError(f'and `{given[1]}`: choose one', field=given[0])
    if args.output and not given:
        raise InputError('goes with `prompt`, `input_file` or `unconditional`', field='output')
    for name in ('batch_size', 'max_new_tokens'):
        if vars(args)[name] == -1:
            vars(args)[name] = None
            args.given.discard(name)
    arguments.check_at_least_one(args, 'num_return_sequences', 'batch_size', 'max_new_tokens')
    field = 'num_beams' if args.num_beams > 1 else 'greedy' if args.greedy else None
    if field and not args.given.isdisjoint(SAMPLING):
        problem = "doesn't sample: leave out `temperature`, `top_k` and `top_p`"
        raise InputError(problem, field=field)
    return args


class Generator:
    """Pipeline and flags: from prompts to texts."""

    def __init__(self, args):
        from model_zoo.inference import pipeline
        from model_zoo.inference.text import TextGeneration
        from model_zoo.opening import locate

        self._args, self._count, name = args, 0, args.model_name_or_path
        # the flags are called like the pipeline's options
        fields = {*TextGeneration.Options.model_fields} & {*vars(args)}
        usual = {'do_sample': True, **{field: vars(args)[field] for field in fields}}
        TextGeneration.Options.read(usual)  # before the model is opened
        given = {field: usual[field] for field in fields & args.given}
        if args.greedy:
            given = {'do_sample': False, 'num_beams': 1, **given}
        if 'language_model' not in locate(name, weights=None, vocab=False).family.tasks:
            raise InputError(f'{name}: this is not a language model', field='model_name_or_path')
        engine = arguments.engine_of(args.engine, args.precision, args.input_file)
        options = {'precision': args.precision, 'ctx': get_ctx(args.gpu)}
        self._pipeline = pipeline('text-generation', name, engine=engine, **options)
        self._tokenizer = self._pipeline.tokenizer
        if args.stop is not None:
            given['eos_token_id'] = [self._stop_token(text) for text in args.stop if text]
        usual['max_new_tokens'] = (self._pipeline.block.context_length or DEFAULT_CONTEXT) // 2
        self._options = self._pipeline.checked(given, usual)

    def _stop_token(self, text):
        known = self._tokenizer.vocab.token_to_idx
        ids = [known[text]] if text in known else self._tokenizer.encode(text)
        if len(ids) != 1:
            problem = f'{text!r} is {len(ids)} tokens of this model, and must be a single one'
            raise InputError(problem, field='stop')
        return ids[0]

    def _stream(self, prompt, *numbers):
        """Yield each piece of a text as it is generated, and the text's `Continuation` so far."""
        from model_zoo import generation

        streamed, log_prob = generation.StreamedText(self._tokenizer, prompt, (), True), 0.0
        for new in self._pipeline.steps(prompt, self._options, *numbers):
            log_prob += new.log_prob
            piece = streamed.add(new)
            yield piece, generation.Continuation(streamed.tokens, log_prob, new.finish)

    def _samples(self, prompts):
        """Yield the number of a prompt and an iterator as of `_stream`, for each sample."""
        from model_zoo.generation import text_of

        options, before = self._options, self._count
        samples = options['generate']['num_return_sequences']
        # a beam search has all of its texts at once
        searches = options['generate'].get('num_beams', 1) > 1
        if self._args.stream and not searches:
            for number, prompt in enumerate(prompts):
                for sample in range(samples):
                    yield number, self._stream(prompt, before + number, sample)
            return
        size = self._args.batch_size or samples
        together = max(1, size // samples)  # prompts of a batch
        part = samples if searches else min(size, samples)
        for first, done in itertools.product(
            range(0, len(prompts), together), range(0, samples, part)
        ):
            chosen = prompts[first : first + together]
            count = {'num_return_sequences': min(part, samples - done)}
            options = {**options, 'generate': {**options['generate'], **count}}
            groups = self._pipeline.write(chosen, options, before + first, done)
            for number, group in enumerate(groups, first):
                for new in group:
                    ids = prompts[number], new.tokens
                    yield number, [(text_of(self._tokenizer, *ids, new.finish, True), new)]

    def continue_all(self, texts):
        """Print and return the continuations of `texts`, None for new texts.

        In a conversation they are numbered on, so that a repeated prompt is continued otherwise.
        """
        prompts = [self._pipeline.encode_prompt(text or '') for text in texts]
        results = [{'prompt': text, 'samples': []} for text in texts]
        for count, (number, pieces) in enumerate(self._samples(prompts), 1):
            samples = results[number]['samples']
            if len(texts) > 1 and not samples:
                print(f'Prompt: {texts[number]}')
            print('=' * 40 + f' SAMPLE {count} ' + '=' * 40)
            text = ''
            for piece, new in pieces:  # noqa: B007  the last one is the whole
                print(piece, end='', flush=True)
                text += piece
            print()
            samples.append({'text': text, **new._asdict()})
        self._count += len(texts)
        print('=' * 80, flush=True)
        return results


def interact(generator):
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
            generator.continue_all([text])
        except ZooError as error:
            print(f'error: {cli.message_of(error)}', file=sys.stderr)


def read_prompts(args):
    """Return the texts of the file that aren't empty."""
    from model_zoo.app.texts import read_file, texts_of

    texts = list(texts_of(read_file(args.input_file, args.text_column, encoding=args.encoding)))
    if not texts:
        raise InputError(f'{args.input_file!r} has no prompts: write one per line')
    return texts


def write_texts(path, results):
    """Write all samples: a JSON file, or a line for each."""
    from model_zoo.app.writing import write_records

    if path.lower().endswith(('.csv', '.tsv', '.jsonl')):
        samples = ((each['prompt'], sample) for each in results for sample in each['samples'])
        write_records(({'prompt': text, **sample} for text, sample in samples), output=path)
    else:
        write_json(path, results)


def main(argv=None):
    args = parse_arguments(argv)
    cli.setup_logging(verbose=args.verbose)
    sys.stdout.reconfigure(errors='replace')  # texts may have characters that a terminal can't show
    texts = read_prompts(args) if args.input_file else args.prompt  # before the model
    generator = Generator(args)
    if args.unconditional:
        texts = [None]
    if not texts:
        interact(generator)
        return
    results = generator.continue_all(texts)
    if args.output:
        write_texts(args.output, results)


if __name__ == '__main__':
    cli.run_script(main)
