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
may be larger than the memory.
"""

import array
import contextlib
import itertools
import json
import logging
import os
import sys
import tempfile
import time
import zipfile

import mxnet as mx
import numpy as np
from tqdm import tqdm

from bert import BertConfig, BertModel
from bert.tokenizer import open_tokenizer
from model_zoo import cli
from model_zoo.data.lines import read_lines
from model_zoo.errors import InputError
from model_zoo.files import atomic_write
from model_zoo.pretrained import find_vocab_file
from model_zoo.training import ModelChoice, check_at_least_one, check_files, check_length

logger = logging.getLogger('extract_features')

SEPARATOR = ' ||| '
POOL = 4  # batches whose lines are sorted by length together: their vectors are in memory at once
CHUNK = 65536  # tokens written at once


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
    return args


def layer_numbers(text):
    """``'-1,-2'`` -> [-1, -2]"""
    return [int(number) for number in text.split(',')]


def make_model(args, ctx):
    """BERT with the outputs of all layers, and its tokenizer."""

    def open_as_asked(file, vocab=None):
        if args.do_lower_case is not None:
            file = file._replace(do_lower_case=args.do_lower_case)
        return open_tokenizer(file, vocab)

    options = {'use_pooler': False, 'output_all_encodings': True}
    if not args.init_checkpoint:
        return ModelChoice(args, family='bert').build(
            BertModel,
            open_as_asked,
            ctx,
            {'use_decoder': False, 'use_classifier': False, **options},
            **options,
        )
    model = BertModel(BertConfig.from_json_file(args.bert_config_file), **options)
    model.load_pretrained(args.init_checkpoint, ctx, BertModel.optional_parts)
    if args.dtype != 'float32':
        model.cast(args.dtype)
    model.hybridize(static_alloc=True)
    tokenizer = open_as_asked(find_vocab_file(None, path=args.vocab_file))
    if len(tokenizer.vocab) > model.config.vocab_size:
        raise InputError(
            f'the vocabulary does not fit: it has {len(tokenizer.vocab)} tokens, and the model '
            f'{model.config.vocab_size}'
        )
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


def extract(args, model, tokenizer, lines, ctx):
    """Yield, for each line, its encoding and its vectors, (tokens, layers, units) float32."""
    lines = iter(lines)
    for pool in iter(lambda: list(itertools.islice(lines, POOL * args.batch_size)), []):
        texts, pairs = zip(*map(split, pool))
        encoded = tokenizer.encode_batch(
            list(texts), list(pairs), max_length=args.max_seq_length, pad=False
        )
        vectors = [None] * len(pool)
        order = np.argsort(-encoded.valid_length, kind='stable')
        for start in range(0, len(pool), args.batch_size):
            rows = order[start : start + args.batch_size]
            words = np.full((len(rows), encoded.valid_length[rows].max()), tokenizer.pad_token_id)
            types = np.zeros_like(words)
            for place, row in enumerate(rows):
                words[place, : encoded.valid_length[row]] = encoded.input_ids[row]
                types[place, : encoded.valid_length[row]] = encoded.token_types[row]
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
        yield from zip(encoded.rows, vectors)


@contextlib.contextmanager
def json_writer(path, layers, vocab):
    """A function that writes the next line's encoding and vectors."""
    with atomic_write(path) as file:
        number = itertools.count()

        def write(encoding, vectors):
            values = np.round(vectors.astype(np.float64), 6).tolist()
            features = [
                {
                    'token': token,
                    'layers': [
                        {'index': index, 'values': each} for index, each in zip(layers, row)
                    ],
                }
                for token, row in zip(encoding.tokens, values)
            ]
            json.dump({'linex_index': next(number), 'features': features}, file)
            file.write('\n')

        yield write


@contextlib.contextmanager
def npz_writer(path, layers, vocab):
    """Likewise. What grows with the input waits in a file, as an array begins with its length."""
    ids, bounds = array.array('i'), array.array('q', [0])
    shape = []
    with atomic_write(path, 'wb') as file, tempfile.TemporaryFile(
        dir=os.path.dirname(os.path.abspath(path))
    ) as values:

        def write(encoding, vectors):
            ids.extend(encoding.input_ids.tolist())
            bounds.append(len(ids))
            shape[:] = vectors.shape[1:]
            values.write(np.ascontiguousarray(vectors, '<f4').tobytes())

        yield write
        values.seek(0)
        tokens = vocab.idx_to_token
        width = max(len(tokens[number]) for number in set(ids))
        parts = (ids[start : start + CHUNK] for start in range(0, len(ids), CHUNK))
        with zipfile.ZipFile(file, 'w') as archive:
            write_array(archive, 'layers', '<i4', (len(layers),), [np.array(layers, '<i4')])
            write_array(archive, 'bounds', '<i8', (len(bounds),), [np.array(bounds, '<i8')])
            write_array(
                archive, 'tokens', f'<U{width}', (len(ids),),
                (np.array([tokens[number] for number in part], f'<U{width}') for part in parts),
            )  # fmt: skip
            write_array(
                archive, 'values', '<f4', (len(ids), *shape), iter(lambda: values.read(2**24), b'')
            )


def write_array(archive, name, dtype, shape, parts):
    """Add an array to an .npz from the bytes of its parts."""
    header = {'descr': dtype, 'fortran_order': False, 'shape': shape}
    with archive.open(f'{name}.npy', 'w', force_zip64=True) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(bytes(part))


def main(argv=None):
    args = parse_arguments(argv)
    check_files(args, 'input_file', 'bert_config_file', 'vocab_file')
    if os.path.realpath(args.input_file) == os.path.realpath(args.output_file):
        raise InputError(f'--output_file {args.output_file!r} is the input: give another name')
    cli.setup_logging()
    # that a line can't be read is to be known of before the work
    count = sum(1 for _ in read_lines(args.input_file))
    if not count:
        raise InputError(f'--input_file {args.input_file!r} is empty')
    ctx = cli.get_ctx(args.gpu)
    writer = npz_writer if args.output_file.endswith('.npz') else json_writer
    model, tokenizer = make_model(args, ctx)
    check_model(args, model)
    lines = (line for _, line in read_lines(args.input_file))
    started, tokens, cut = time.perf_counter(), 0, 0
    with writer(args.output_file, args.layers, tokenizer.vocab) as write, tqdm(
        total=count, unit=' lines', disable=None
    ) as bar:
        for encoding, vectors in extract(args, model, tokenizer, lines, ctx):
            write(encoding, vectors)
            tokens += len(encoding)
            cut += encoding.truncated > 0
            bar.update()
    if cut:
        logger.warning(
            '%d of %d lines have more than %d tokens and were cut', cut, count, args.max_seq_length
        )
    seconds = time.perf_counter() - started
    logger.info('%s: %d lines, %d tokens, %.1f s', args.output_file, count, tokens, seconds)


if __name__ == '__main__':
    sys.exit(cli.run(main))
