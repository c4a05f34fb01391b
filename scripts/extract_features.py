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

Inputs may be larger than the memory. ``OUTPUT.results.json`` describes the run. An interrupted run
leaves its finished lines in the folder ``OUTPUT.part``. The same command with ``--resume``
continues from there; without it, it is refused. For an output at a URL, that folder is in the
system's folder for temporary files.
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
from typing import List, Optional

import model_zoo  # noqa: F401  isort: skip  before MXNet
import mxnet as mx
import numpy as np

from bert_embedding.writers import array_entry
from model_zoo.app import cli
from model_zoo.app.job import PartialOutput, describe_model, describe_vocab, job_of
from model_zoo.app.model_choice import ModelChoice
from model_zoo.app.originals import parse_settings
from model_zoo.app.report import write_results
from model_zoo.app.run_folder import upload_files, working_file
from model_zoo.batches import make_batch
from model_zoo.batches.sampling import longest_first
from model_zoo.errors import InputError
from model_zoo.tasks.tables import check_files
from model_zoo.training.loop import InterruptGuard
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
from model_zoo.util.remote import is_url

logger = logging.getLogger('extract_features')

OTHER_MODEL = (
    'bert_model', 'bert_dataset', 'pretrained_bert_parameters', 'model_parameters', 'from_scratch',
    'hparams',
)  # fmt: skip
# What may differ when a run is resumed: where things are; what they hold is compared.
FREE = ('output_file', 'init_checkpoint', 'bert_config_file', *OTHER_MODEL)


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
    resume: bool = setting(False, 'continue an interrupted run')

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
    """The two texts of a line; the second one may be empty."""
    text, separator, pair = line.strip().rpartition(SEPARATOR)
    return (text, pair) if separator else (pair, '')


class FeatureExtractor:
    """Vectors of the tokens of texts, batch by batch."""

    def __init__(self, model, tokenizer, layers, max_length, batch_size, ctx):
        self._model, self._tokenizer, self._layers = model, tokenizer, layers
        self._max_length, self._batch_size, self._ctx = max_length, batch_size, ctx

    def extract(self, lines, done=0, guard=None):
        """Yield, for each line, its encoding and its vectors, (tokens, layers, units) float32.

        The first `done` lines have None instead of vectors. Batches are the same as without `done`,
        since the rounding of the vectors depends on the batch.
        """
        lines, first = iter(lines), 0
        for pool in iter(lambda: list(itertools.islice(lines, POOL * self._batch_size)), []):
            encoded = list(
                self._tokenizer.encode_pairs(list(map(_split, pool)), self._max_length)
            )
            vectors = [None] * len(pool)
            if done < first + len(pool):
                self._fill(pool, encoded, vectors, guard)
            for index in range(min(done - first, len(pool))):
                vectors[index] = None
            yield from zip(encoded, vectors)
            first += len(pool)

    def _fill(self, pool, encoded, vectors, guard):
        """Set the vectors of a pool of lines."""
        for rows in longest_first(list(map(len, encoded)), self._batch_size):
            if guard is not None:
                guard.check()
            encodings = [encoded[row] for row in rows]
            batch = make_batch(encodings, self._tokenizer.pad_token_id, ctx=self._ctx)
            states = self._model(
                batch.words, token_types=batch.token_types, valid_length=batch.valid_length
            )
            chosen = mx.nd.stack(*(states[layer] for layer in self._layers), axis=2)
            for row, vector in zip(rows, chosen.astype('float32').asnumpy()):
                vectors[row] = vector[: len(encoded[row])]
                if not np.isfinite(vectors[row]).all():
                    raise InputError(f"the model's outputs are not finite for {pool[row]!r:.80}")


CHUNK = 65536  # tokens written at once


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
                    {'index': index, 'values': value} for index, value in zip(self._layers, row)
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
            for name, dtype, shape, parts in (
                ('layers', '<i4', layers.shape, [layers]),
                ('bounds', '<i8', bounds.shape, [bounds]),
                ('tokens', f'<U{width}', (len(ids),), names),
                ('values', '<f4', (len(ids), *self._shape), values),
            ):
                with array_entry(archive, name, dtype, shape) as entry:
                    entry.writelines(map(bytes, parts))


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


def describe_input(path):
    """Check that all lines can be read; return their number and checksum."""
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
    """The job, which must be the same for a run to be resumed."""
    return job_of(
        args,
        FREE,
        input_file=lines,
        bert_model=describe_model(model),
        vocab_file=describe_vocab(tokenizer.vocab),
        do_lower_case=tokenizer.do_lower_case,
    )


def keep(results, output, partial, guard):
    """Add the lines that aren't done yet; returns the numbers of tokens and cut lines of all."""
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
    check_files(args, 'input_file')
    if os.path.realpath(args.input_file) == os.path.realpath(args.output_file):
        raise InputError(f'--output_file {args.output_file!r} is the input: give another name')
    target = args.output_file
    if is_url(target):
        args.output_file = working_file(target)
    args.output_file = PartialOutput.target(args.output_file)
    cli.setup_logging()
    # fail on bad lines before the work
    count, described = describe_input(args.input_file)
    ctx = cli.get_ctx(args.gpu)
    model, tokenizer = make_model(args, ctx)
    check_model(args, model)
    extractor = FeatureExtractor(
        model, tokenizer, args.layers, args.max_seq_length, args.batch_size, ctx
    )
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
        results = extractor.extract(lines, done, guard)
        results = progress(results, 'lines', total=count, leave=True)
        tokens, cut = keep(results, output, partial, guard)
        output.finish(partial)
        seconds = time.perf_counter() - started
        write_results(
            about,
            {**vars(args), 'output_file': target if is_url(target) else args.output_file},
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
    if is_url(target):
        upload_files([about, args.output_file], target)
    if cut:
        logger.warning(
            '%d of %d lines have more than %d tokens and were cut', cut, count, args.max_seq_length
        )
    logger.info('%s: %d lines, %d tokens, %.1f s', target, count, tokens, seconds)


if __name__ == '__main__':
    cli.run_script(main)
