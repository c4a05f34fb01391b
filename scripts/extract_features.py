"""Write the vectors that BERT's layers give to the tokens of texts.

    python extract_features.py --input_file input.txt --output_file output.jsonl \\
        --bert_model all-MiniLM-L6-v2 --layers -1,-2,-3,-4
    python extract_features.py --input_file input.txt --output_file output.jsonl \\
        --init_checkpoint bert_model.ckpt --bert_config_file bert_config.json --vocab_file vocab.txt

Each line of the input is a text, or a pair with `` ||| `` between its texts. The flags are those of
Google's extract_features.py and of pytorch-pretrained-bert's, and the output is theirs: a line of
JSON for each of the input,

    {"linex_index": 0, "features": [{"token": "[CLS]", "layers": [{"index": -1, "values": [...]},
     ...]}, ...]}

(pytorch-pretrained-bert's script leaves out the token types of pairs; here they are as in
Google's.) With ``--output_file output.npz`` the same becomes arrays, which take half of the space
and don't round: ``values`` (tokens, layers, units), ``tokens`` (tokens,), ``layers`` (layers,), and
``bounds`` (lines + 1,): the tokens of line i are numbers ``bounds[i]`` to ``bounds[i + 1]``. Inputs
may be larger than the memory. ``OUTPUT.results.json`` tells what was done. Until the output is
complete, the lines that are done wait in the folder ``OUTPUT.part``; after any end of the run, the
same command with ``--resume`` goes on behind them, and one without it is refused while they are
there.
"""

import argparse
import array
import itertools
import json
import logging
import os
import sys
import time
import zipfile
import zlib

import model_zoo  # noqa: F401  isort: skip  before MXNet: Ctrl-C while it loads ends quietly
import mxnet as mx
import numpy as np

from bert import BertModel
from model_zoo.app import (
    ModelChoice,
    PartialOutput,
    check_at_least_one,
    check_files,
    check_length,
    cli,
    describe_model,
    describe_vocab,
    job_of,
    write_results,
)
from model_zoo.errors import InputError
from model_zoo.opening import open_model
from model_zoo.tokenization.encoding import pad_rows
from model_zoo.training.interrupt import InterruptGuard
from model_zoo.util.files import atomic_write
from model_zoo.util.lines import read_lines
from model_zoo.util.progress import progress

logger = logging.getLogger('extract_features')

SEPARATOR = ' ||| '
POOL = 4  # batches whose lines are sorted by length together: their vectors are in memory at once
CHUNK = 65536  # tokens written at once
OTHER_MODEL = (
    'bert_model', 'bert_dataset', 'pretrained_bert_parameters', 'model_parameters', 'from_scratch',
    'hparams',
)  # fmt: skip
# What may differ when a run is resumed: where things are; what they hold is compared.
FREE = ('output_file', 'init_checkpoint', 'bert_config_file', *OTHER_MODEL)


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_argument('--input_file', required=True, help='a text, or a pair, on each line')
    parser.add_argument('--output_file', required=True, help='JSON lines; arrays if it is an .npz')
    parser.add_argument(
        '--layers', type=layer_numbers, default='-1,-2,-3,-4',
        help='from 0, that above the embedding; negative ones are counted from the last',
    )  # fmt: skip
    parser.add_argument(
        '--max_seq_length', type=int, default=128,
        help='of the tokens, the special ones counted; longer texts are cut',
    )  # fmt: skip
    parser.add_argument('--batch_size', type=int, default=32)
    parser.add_argument('--init_checkpoint', help="TensorFlow's, or any other file of parameters")
    parser.add_argument('--bert_config_file', help='of --init_checkpoint')
    parser.add_argument(
        '--do_lower_case', type=cli.boolean, nargs='?', const=True,
        help='whether to lower-case the texts; default: what the vocabulary is for',
    )  # fmt: skip
    parser.add_argument('--gpu', type=int, nargs='?', const=0, help='default: the CPU')
    parser.add_argument('--dtype', default='float32', choices=['float32', 'float16', 'bfloat16'])
    parser.add_argument(
        '--resume', action='store_true', help='go on with what an interrupted run has left'
    )
    ModelChoice.add_arguments(parser, 'bert_12_768_12', family='bert')
    argv = sys.argv[1:] if argv is None else list(argv)
    for place in reversed(range(len(argv) - 1)):
        if argv[place] == '--layers':  # argparse takes -1,-2 for a flag
            argv[place : place + 2] = [f'--layers={argv[place + 1]}']
    args = parser.parse_args(argv)
    check_at_least_one(args, 'batch_size')
    if args.max_seq_length < 3:
        raise InputError(f'--max_seq_length {args.max_seq_length}: give 3 or more')
    if bool(args.init_checkpoint) != bool(args.bert_config_file) or (
        args.init_checkpoint and not args.vocab_file
    ):
        raise InputError(
            '--init_checkpoint, --bert_config_file and --vocab_file go together; a folder with all '
            'three can be given as --bert_model'
        )
    if args.init_checkpoint:
        for name in OTHER_MODEL:
            if getattr(args, name) != parser.get_default(name):
                raise InputError(f'--init_checkpoint and --{name} both name a model: give one')
    return args


def layer_numbers(text):
    """``'-1,-2'`` -> [-1, -2]"""
    try:
        return [int(number) for number in text.split(',')]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'{text!r} is not a list of numbers such as -1,-2,-3,-4'
        ) from None


def make_model(args, ctx):
    """BERT with the outputs of all layers, and its tokenizer."""
    options = {
        'do_lower_case': args.do_lower_case,
        'use_pooler': False,
        'output_all_encodings': True,
    }
    if not args.init_checkpoint:
        return ModelChoice(args, family='bert').build(BertModel, ctx, **options)
    model, tokenizer, _ = open_model(
        args.init_checkpoint,
        BertModel,
        config=args.bert_config_file,
        vocab_file=args.vocab_file,
        ctx=ctx,
        dtype=args.dtype,
        **options,
    )
    model.hybridize(static_alloc=True)
    return model, tokenizer


def check_model(args, model):
    """Raise InputError if the model lacks a layer, or takes no texts of the length."""
    count = model.config.num_hidden_layers
    for layer in args.layers:
        if not -count <= layer < count:
            raise InputError(
                f'--layers {layer}: the model has {count} layers: give numbers from {-count} to '
                f'{count - 1}'
            )
    check_length(args, 'max_seq_length', model)


def split(line):
    """The texts of a line, the second of which may be empty."""
    text, separator, pair = line.strip().rpartition(SEPARATOR)
    return (text, pair) if separator else (pair, '')


def describe_input(path):
    """Number of lines, all of which can be read, and a checksum of them.

    Warns of lines that look like pairs and aren't.
    """
    count, checksum, single = 0, 0, 0
    for _, line in read_lines(path):
        count, checksum = count + 1, zlib.crc32(line.encode(), checksum)
        single += SEPARATOR.strip() in line and SEPARATOR not in line.strip()
    if not count:
        raise InputError(f'--input_file {path!r} is empty')
    if single:
        logger.warning(
            '%d of %d lines have ||| without a space and a text on both sides: each is one text, '
            "as in Google's script",
            single,
            count,
        )
    return count, f'{count} lines with checksum {checksum:08x}'


def describe_job(args, lines, model, tokenizer):
    """What must be the same for a run to be resumed."""
    return job_of(
        args,
        FREE,
        input_file=lines,
        bert_model=describe_model(model),
        vocab_file=describe_vocab(tokenizer.vocab),
        do_lower_case=tokenizer.do_lower_case,
    )


def extract(args, model, tokenizer, lines, ctx, done=0, guard=None):
    """Yield, for each line, its encoding and its vectors, (tokens, layers, units) float32.

    The first lines, those that are `done`, have None for vectors. All are batched as if nothing was
    done, since the rounding of the vectors depends on the batch.
    """
    lines, first = iter(lines), 0
    for pool in iter(lambda: list(itertools.islice(lines, POOL * args.batch_size)), []):
        texts, pairs = zip(*map(split, pool))
        encoded = tokenizer.encode_batch(
            list(texts), list(pairs), max_length=args.max_seq_length, pad=False
        )
        vectors = [None] * len(pool)
        if done < first + len(pool):
            fill(args, model, tokenizer, pool, encoded, vectors, ctx, guard)
        for place in range(min(done - first, len(pool))):
            vectors[place] = None
        yield from zip(encoded.rows, vectors)
        first += len(pool)


def fill(args, model, tokenizer, pool, encoded, vectors, ctx, guard):
    """Set the vectors of a pool of lines."""
    order = np.argsort(-encoded.valid_length, kind='stable')
    for start in range(0, len(pool), args.batch_size):
        if guard is not None:
            guard.check()
        rows = order[start : start + args.batch_size]
        words = pad_rows([encoded.input_ids[row] for row in rows], tokenizer.pad_token_id)
        types = pad_rows([encoded.token_types[row] for row in rows])
        states = model(
            mx.nd.array(words, ctx, 'int32'),
            mx.nd.array(types, ctx, 'int32'),
            mx.nd.array(encoded.valid_length[rows], ctx, 'float32'),
        )
        chosen = mx.nd.stack(*(states[layer] for layer in args.layers), axis=2)
        for row, vector in zip(rows, chosen.astype('float32').asnumpy()):
            vectors[row] = vector[: encoded.valid_length[row]]
            if not np.isfinite(vectors[row]).all():
                raise InputError(f"the model's outputs are not finite for {pool[row]!r:.80}")


class JsonLines:
    """Google's form: the records are lines of JSON, and the output is the records."""

    def __init__(self, layers, units, vocab):
        self._layers = layers

    def record(self, number, encoding, vectors):
        values = np.round(vectors.astype(np.float64), 6).tolist()
        features = [
            {
                'token': token,
                'layers': [
                    {'index': index, 'values': each} for index, each in zip(self._layers, row)
                ],
            }
            for token, row in zip(encoding.tokens, values)
        ]
        return (json.dumps({'linex_index': number, 'features': features}) + '\n').encode()

    def finish(self, partial):
        partial.publish()


class Arrays:
    """An .npz. A record has the tokens' numbers, int32, and their vectors, float32."""

    def __init__(self, layers, units, vocab):
        self._layers, self._tokens = layers, vocab.idx_to_token
        self._shape = len(layers), units

    def record(self, number, encoding, vectors):
        return encoding.input_ids.astype('<i4').tobytes() + vectors.astype('<f4').tobytes()

    def finish(self, partial):
        # an array in a file begins with its size
        counts = partial.sizes // (4 + 4 * int(np.prod(self._shape)))
        bounds = np.array([0, *np.cumsum(counts)], '<i8')
        ids = array.array('i')
        for count, record in zip(counts, partial):
            ids.extend(np.frombuffer(record, '<i4', count).tolist())
        width = max(len(self._tokens[number]) for number in set(ids))
        names = (
            np.array([self._tokens[number] for number in ids[start : start + CHUNK]], f'<U{width}')
            for start in range(0, len(ids), CHUNK)
        )
        values = (record[4 * count :] for count, record in zip(counts, partial))
        layers = np.array(self._layers, '<i4')
        with atomic_write(partial.path, 'wb') as file, zipfile.ZipFile(file, 'w') as archive:
            write_array(archive, 'layers', '<i4', layers.shape, [layers])
            write_array(archive, 'bounds', '<i8', bounds.shape, [bounds])
            write_array(archive, 'tokens', f'<U{width}', (len(ids),), names)
            write_array(archive, 'values', '<f4', (len(ids), *self._shape), values)


def write_array(archive, name, dtype, shape, parts):
    """Add an array to an .npz from the bytes of its parts."""
    header = {'descr': dtype, 'fortran_order': False, 'shape': shape}
    entry = zipfile.ZipInfo(f'{name}.npy')  # with a date of its own: the same at any time
    with archive.open(entry, 'w', force_zip64=True) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(bytes(part))


def keep(results, output, partial, guard):
    """Add the lines that aren't done yet; returns how many tokens, and cut lines, all have."""
    tokens, cut = 0, 0
    for number, (encoding, vectors) in enumerate(results):
        if vectors is not None:
            partial.append(output.record(number, encoding, vectors))
            guard.check()
        tokens += len(encoding)
        cut += encoding.truncated > 0
    return tokens, cut


def main(argv=None):
    args = parse_arguments(argv)
    check_files(args, 'input_file', 'bert_config_file', 'vocab_file')
    if os.path.realpath(args.input_file) == os.path.realpath(args.output_file):
        raise InputError(f'--output_file {args.output_file!r} is the input: give another name')
    args.output_file = PartialOutput.target(args.output_file)
    cli.setup_logging()
    # that a line can't be read is to be known of before the work
    count, described = describe_input(args.input_file)
    ctx = cli.get_ctx(args.gpu)
    model, tokenizer = make_model(args, ctx)
    check_model(args, model)
    form = Arrays if args.output_file.endswith('.npz') else JsonLines
    output = form(args.layers, model.config.hidden_size, tokenizer.vocab)
    job = describe_job(args, described, model, tokenizer)
    lines = (line for _, line in read_lines(args.input_file))
    about = f'{args.output_file}.results.json'
    partial = PartialOutput(args.output_file, job, args.resume, about)
    if partial.is_complete():
        return
    started = time.perf_counter()
    with partial, InterruptGuard() as guard:
        done = partial.count
        results = extract(args, model, tokenizer, lines, ctx, done, guard)
        results = progress(results, 'lines', total=count, leave=True)
        tokens, cut = keep(results, output, partial, guard)
        output.finish(partial)
        seconds = time.perf_counter() - started
        write_results(
            about,
            vars(args),
            lines=count,
            tokens=tokens,
            cut_lines=cut,
            resumed_after=done,
            seconds=seconds,
            lines_per_second=(count - done) / seconds,
            model=model.config.to_dict(),
            job=job,
        )
        partial.remove()
    if cut:
        logger.warning(
            '%d of %d lines have more than %d tokens and were cut', cut, count, args.max_seq_length
        )
    logger.info('%s: %d lines, %d tokens, %.1f s', args.output_file, count, tokens, seconds)


if __name__ == '__main__':
    sys.exit(cli.run(main))
