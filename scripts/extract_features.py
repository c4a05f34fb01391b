"""Write the vectors that BERT's layers compute for the tokens of texts.

    python extract_features.py --input_file input.txt --output_file output.jsonl \\
        --bert_model all-MiniLM-L6-v2 --layers -1,-2,-3,-4
    python extract_features.py --input_file input.txt --output_file output.jsonl \\
        --init_checkpoint bert_model.ckpt --bert_config_file bert_config.json --vocab_file vocab.txt

Each line of the input is a text, or a pair with `` ||| `` between its texts. The flags and the
output are the same as in Google's and pytorch-pretrained-bert's extract_features.py: for each line
of the input a line of JSON,

    {"linex_index": 0, "features": [{"token": "[CLS]", "layers": [{"index": -1, "values": [...]},
     ...]}, ...]}

(pytorch-pretrained-bert's script leaves out the token types of pairs; here they are as in
Google's.)

With ``--output_file output.npz`` the output is arrays, which take half the space and aren't
rounded: ``values`` (tokens, layers, units), ``tokens`` (tokens,), ``layers`` (layers,), and
``bounds`` (lines + 1,): the tokens of line i have the numbers ``bounds[i]`` to ``bounds[i + 1]``.

Inputs may be larger than the memory. ``OUTPUT.results.json`` describes the run.
"""

import argparse
import itertools
import json
import logging
import os
import shutil
import sys
import tempfile
import time
import zipfile
from typing import List, Optional

import model_zoo  # noqa: F401  isort: skip  before MXNet
import mxnet as mx
import numpy as np

from bert_embedding.writers import array_entry
from model_zoo.app import cli
from model_zoo.app.model_choice import ModelChoice
from model_zoo.app.originals import parse_settings
from model_zoo.app.report import write_results
from model_zoo.batches import make_batch
from model_zoo.batches.sampling import longest_first
from model_zoo.errors import InputError
from model_zoo.tasks.tables import check_files
from model_zoo.training.settings import (
    BertSettings,
    CheckpointSettings,
    lower_case,
    setting,
    settings,
)
from model_zoo.util.display import progress
from model_zoo.util.files import atomic_write
from model_zoo.util.reading import read_lines

logger = logging.getLogger('extract_features')


def layer_numbers(text):
    """``'-1,-2'`` -> [-1, -2]"""
    try:
        return [int(number) for number in text.split(',')]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'{text!r} is not a list of numbers such as -1,-2,-3,-4'
        ) from None


@settings()
class FeatureSettings(CheckpointSettings, BertSettings):
    """The flags of the originals' scripts."""

    title = 'features'
    exclusive = (('init_checkpoint', 'model_parameters'),)

    input_file: str = setting(None, 'one text or pair per line', flag={'required': True})
    output_file: str = setting(
        None, 'JSON lines, or arrays if it ends in .npz', flag={'required': True}
    )
    layers: List[int] = setting(
        [-1, -2, -3, -4], '0 is the first layer; negative numbers count from the last one',
        flag={'type': layer_numbers, 'nargs': None},
    )  # fmt: skip
    max_seq_length: int = setting(
        128, 'in tokens, including special tokens; longer texts are truncated', at_least=3
    )
    batch_size: int = setting(32, at_least=1)
    do_lower_case: Optional[bool] = lower_case()
    gpu: Optional[int] = setting(None, 'default: the CPU', flag={'nargs': '?', 'const': 0})
    dtype: str = setting('float32', choices=['float32', 'float16', 'bfloat16'])

    def check(self):
        super().check()
        if bool(self.init_checkpoint) != bool(self.bert_config_file) or (
            self.init_checkpoint and not self.vocab_file
        ):
            raise InputError(
                '`init_checkpoint`, `bert_config_file` and `vocab_file` go together; a folder with '
                'all three can be given as `bert_model`'
            )


#: between the texts of a pair
SEPARATOR = ' ||| '
POOL = 4  # batches whose lines are sorted by length together: their vectors are in memory at once


def _split(line):
    """Return the two texts of a line; the second one may be empty."""
    text, separator, pair = line.strip().rpartition(SEPARATOR)
    return (text, pair) if separator else (pair, '')


def extract(args, model, tokenizer, lines, ctx):
    """Yield, for each line, its encoding and its vectors, (tokens, layers, units) float32."""
    lines = iter(lines)
    for pool in iter(lambda: list(itertools.islice(lines, POOL * args.batch_size)), []):
        encoded = list(tokenizer.encode_pairs(list(map(_split, pool)), args.max_seq_length))
        vectors = [None] * len(pool)
        for rows in longest_first(list(map(len, encoded)), args.batch_size):
            batch = make_batch([encoded[row] for row in rows], tokenizer.pad_token_id, ctx=ctx)
            states = model(
                batch.words, token_types=batch.token_types, valid_length=batch.valid_length
            )
            chosen = mx.nd.stack(*(states[layer] for layer in args.layers), axis=2)
            for row, vector in zip(rows, chosen.astype('float32').asnumpy()):
                vectors[row] = vector[: len(encoded[row])]
                if not np.isfinite(vectors[row]).all():
                    raise InputError(f"the model's outputs are not finite for {pool[row]!r:.80}")
        yield from zip(encoded, vectors)


class JsonLines:
    """Google's form: a line of JSON for each line."""

    mode = 'w'

    def __init__(self, file, layers, units):
        self._file, self._layers, self._count = file, layers, 0

    def add(self, encoding, vectors):
        values = np.round(vectors.astype(np.float64), 6).tolist()
        features = [
            {
                'token': token,
                'layers': [
                    {'index': index, 'values': value} for index, value in zip(self._layers, row)
                ],
            }
            for token, row in zip(encoding.tokens, values)
        ]
        self._file.write(json.dumps({'linex_index': self._count, 'features': features}) + '\n')
        self._count += 1

    def finish(self):
        """All has been written."""


class Arrays:
    """An .npz. Vectors wait in a temporary file: an array's header has its size."""

    mode = 'wb'

    def __init__(self, file, layers, units):
        self._file, self._layers, self._shape = file, layers, (len(layers), units)
        self._values = tempfile.TemporaryFile()  # noqa: SIM115  open until `finish`
        self._tokens, self._bounds = [], [0]

    def add(self, encoding, vectors):
        self._tokens += encoding.tokens
        self._bounds.append(len(self._tokens))
        self._values.write(vectors.astype('<f4').tobytes())

    def finish(self):
        self._values.seek(0)
        with zipfile.ZipFile(self._file, 'w') as archive:
            for name, values in (
                ('layers', np.array(self._layers, '<i4')),
                ('bounds', np.array(self._bounds, '<i8')),
                ('tokens', np.array(self._tokens)),
            ):
                with array_entry(archive, name, values.dtype.str, values.shape) as entry:
                    entry.write(values.tobytes())
            shape = (len(self._tokens), *self._shape)
            with array_entry(archive, 'values', '<f4', shape) as entry, self._values:
                shutil.copyfileobj(self._values, entry, 1 << 20)


def parse_arguments(argv=None):
    argv = sys.argv[1:] if argv is None else list(argv)
    for index in reversed(range(len(argv) - 1)):
        if argv[index] == '--layers':  # argparse takes -1,-2 for a flag
            argv[index : index + 2] = [f'--layers={argv[index + 1]}']
    return parse_settings(FeatureSettings, __doc__, argv, 'extract_features')


def make_model(args, ctx):
    """BERT with the outputs of all layers, and its tokenizer."""
    options = {
        'do_lower_case': args.do_lower_case,
        'use_pooler': False,
        'output_all_encodings': True,
    }
    return ModelChoice(args, family='bert').build(None, ctx, **options)


def check_model(args, model):
    """Raise InputError if the model lacks a layer, or can't take texts of that length."""
    count = model.config.num_layers
    for layer in args.layers:
        if not -count <= layer < count:
            raise InputError(
                f'--layers {layer}: the model has {count} layers: give numbers from {-count} to '
                f'{count - 1}'
            )
    args.fit_length('max_seq_length', model.context_length)


def check_input(path):
    """Check that all lines can be read; return their number."""
    count = single = 0
    for _, line in read_lines(path):
        count += 1
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
    return count


def main(argv=None):
    args = parse_arguments(argv)
    check_files(args, 'input_file')
    if os.path.realpath(args.input_file) == os.path.realpath(args.output_file):
        raise InputError(f'--output_file {args.output_file!r} is the input: give another name')
    cli.setup_logging()
    # fail on bad lines before the work
    count = check_input(args.input_file)
    form = Arrays if args.output_file.endswith('.npz') else JsonLines
    tokens = cut = 0
    with atomic_write(args.output_file, form.mode) as file:
        ctx = cli.get_ctx(args.gpu)
        model, tokenizer = make_model(args, ctx)
        check_model(args, model)
        started = time.perf_counter()
        output = form(file, args.layers, model.config.hidden_size)
        lines = (line for _, line in read_lines(args.input_file))
        results = extract(args, model, tokenizer, lines, ctx)
        for encoding, vectors in progress(results, 'lines', total=count, leave=True):
            output.add(encoding, vectors)
            tokens += len(encoding)
            cut += encoding.truncated > 0
        output.finish()
    seconds = time.perf_counter() - started
    write_results(
        f'{args.output_file}.results.json',
        vars(args),
        lines=count,
        tokens=tokens,
        cut_lines=cut,
        seconds=seconds,
        lines_per_second=count / seconds,
        model=model.config.to_dict(),
    )
    if cut:
        logger.warning(
            '%d of %d lines have more than %d tokens and were cut', cut, count, args.max_seq_length
        )
    logger.info('%s: %d lines, %d tokens, %.1f s', args.output_file, count, tokens, seconds)


if __name__ == '__main__':
    cli.run_script(main)
