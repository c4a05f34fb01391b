"""Write the vectors that BERT's layers compute for the tokens of texts.

    python extract_features.py --input_file input.txt --output_file output.jsonl \\
        --model all-MiniLM-L6-v2 --layers -1,-2,-3,-4
    python extract_features.py --input_file input.txt --output_file output.jsonl \\
        --init_checkpoint bert_model.ckpt --bert_config_file bert_config.json --vocab_file vocab.txt

Each line of the input is a text, or a pair with `` ||| `` between its texts. The flags and the
output are the same as in Google's and pytorch-pretrained-bert's extract_features.py. Each line of
the input has a line of JSON in the output:

    {"linex_index": 0, "features": [{"token": "[CLS]", "layers": [{"index": -1, "values": [...]},
     ...]}, ...]}

(pytorch-pretrained-bert's script leaves out the token types of pairs; here they are as in
Google's.)

With ``--output_file output.npz`` the output is arrays, which take half the space and aren't
rounded: ``values`` (tokens, layers, units), ``tokens`` (tokens,), ``layers`` (layers,), and
``bounds`` (lines + 1,): the tokens of line i have the numbers ``bounds[i]`` to ``bounds[i + 1]``.

Inputs may be larger than the memory. ``OUTPUT.results.json`` describes the run. The output appears
when it is complete: an interrupted run starts anew.
"""

import argparse
import array
import itertools
import json
import logging
import os
import sys
import tempfile
import time
import zipfile

import numpy as np

from model_zoo.app import cli
from model_zoo.app.originals import parse_settings
from model_zoo.errors import InputError, reporting
from model_zoo.training.settings import (
    BertSettings,
    lower_case,
    setting,
    settings,
    text_encoding,
    token_limit,
)
from model_zoo.util.display import progress
from model_zoo.util.files import atomic_write
from model_zoo.util.reading import read_lines
from model_zoo.util.remote import is_url

logger = logging.getLogger('extract_features')


def layer_numbers(text):
    """``'-1,-2'`` -> [-1, -2]."""
    try:
        return [int(number) for number in text.split(',')]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'{text!r} is not a list of numbers such as -1,-2,-3,-4'
        ) from None


@settings()
class FeatureSettings(BertSettings):
    """The flags of the originals' scripts."""

    title = 'features'

    input_file: str = setting(None, 'one text or pair per line', flag={'required': True})
    output_file: str = setting(
        None, 'JSON lines, or arrays if it ends in .npz', flag={'required': True}
    )
    layers: list[int] = setting(
        [-1, -2, -3, -4],
        '0 is the first layer; negative numbers count from the last one',
        flag={'type': layer_numbers, 'nargs': None},
    )
    max_length: int = token_limit(
        128, 'in tokens, including special tokens; longer texts are truncated', at_least=3
    )
    encoding: str | None = text_encoding()
    batch_size: int = setting(32, at_least=1)
    do_lower_case: bool | None = lower_case()
    gpu: int | None = setting(None, 'default: the CPU', flag={'nargs': '?', 'const': 0})
    dtype: str = setting('float32', choices=['float32', 'float16', 'bfloat16'])

    def check(self):
        super().check()
        if self.init_checkpoint and self.model_parameters:
            raise InputError('and `model_parameters` are both weights', field='init_checkpoint')
        if bool(self.init_checkpoint) != bool(self.bert_config_file) or (
            self.init_checkpoint and not self.vocab_file
        ):
            raise InputError(
                '`init_checkpoint`, `bert_config_file` and `vocab_file` go together; a folder with '
                'all three can be given as `model`'
            )


#: between the texts of a pair
SEPARATOR = ' ||| '
POOL = 4  # batches whose lines are sorted by length together: their vectors are in memory at once


def _split(line):
    """Return the two texts of a line; the second one may be empty."""
    text, separator, pair = line.strip().rpartition(SEPARATOR)
    return (text, pair) if separator else (pair, '')


class FeatureExtractor:
    """Vectors of the tokens of texts, batch by batch."""

    def __init__(self, model, tokenizer, layers, max_length, batch_size, ctx):
        self._model, self._tokenizer, self._layers = model, tokenizer, layers
        self._max_length, self._batch_size, self._ctx = max_length, batch_size, ctx

    def extract(self, lines):
        """Yield, for each line, its encoding and its vectors, (tokens, layers, units) float32."""
        lines = iter(lines)
        for pool in iter(lambda: list(itertools.islice(lines, POOL * self._batch_size)), []):
            encoded = list(self._tokenizer.encode_pairs(list(map(_split, pool)), self._max_length))
            yield from zip(encoded, self._vectors(pool, encoded))

    def _vectors(self, pool, encoded):
        """Return the vectors of a pool of lines."""
        import mxnet as mx

        from model_zoo.batches import make_batch
        from model_zoo.batches.sampling import longest_first

        vectors = [None] * len(pool)
        for rows in longest_first(list(map(len, encoded)), self._batch_size):
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
        return vectors


CHUNK = 65536  # tokens written at once


def write_json_lines(path, results, layers, vocab):
    """Write Google's form: a line of JSON for each line of the input."""
    with atomic_write(path) as file:
        for number, (encoding, vectors) in enumerate(results):
            values = np.round(vectors.astype(np.float64), 6).tolist()
            features = [
                {
                    'token': token,
                    'layers': [
                        {'index': index, 'values': value} for index, value in zip(layers, row)
                    ],
                }
                for token, row in zip(encoding.tokens, values)
            ]
            file.write(json.dumps({'linex_index': number, 'features': features}) + '\n')


def write_arrays(path, results, layers, vocab):
    """Write an .npz. An array in a file begins with its size, so the vectors wait in another."""
    from bert_embedding.writers import array_entry

    ids, bounds, shape = array.array('i'), [0], ()
    folder = None if is_url(path) else os.path.dirname(os.path.realpath(path))
    with reporting(f'cannot write {path!r}'), tempfile.TemporaryFile(dir=folder) as kept:
        for encoding, vectors in results:
            ids.extend(encoding.input_ids.tolist())
            bounds.append(len(ids))
            shape = vectors.shape[1:]
            kept.write(vectors.astype('<f4').tobytes())
        kept.seek(0)
        tokens = vocab.idx_to_token
        width = max(len(tokens[number]) for number in set(ids))
        names = (
            np.array([tokens[number] for number in ids[start : start + CHUNK]], f'<U{width}')
            for start in range(0, len(ids), CHUNK)
        )
        with atomic_write(path, 'wb') as file, zipfile.ZipFile(file, 'w') as archive:
            for name, dtype, count, parts in (
                ('layers', '<i4', (len(layers),), [np.array(layers, '<i4')]),
                ('bounds', '<i8', (len(bounds),), [np.array(bounds, '<i8')]),
                ('tokens', f'<U{width}', (len(ids),), names),
                ('values', '<f4', (len(ids), *shape), iter(lambda: kept.read(1 << 20), b'')),
            ):
                with array_entry(archive, name, dtype, count) as entry:
                    entry.writelines(map(bytes, parts))


def parse_arguments(argv=None):
    argv = sys.argv[1:] if argv is None else list(argv)
    for index in reversed(range(len(argv) - 1)):
        if argv[index] == '--layers':  # argparse takes -1,-2 for a flag
            argv[index : index + 2] = [f'--layers={argv[index + 1]}']
    return parse_settings(FeatureSettings, __doc__, argv, 'extract_features')


def make_model(args, ctx):
    """Return BERT with the outputs of all layers, and its tokenizer."""
    from model_zoo.app.model_choice import ModelChoice

    options = {
        'do_lower_case': args.do_lower_case,
        'use_pooler': False,
        'output_all_encodings': True,
    }
    return ModelChoice(args, family='bert').build(None, ctx, **options)


def check_model(args, model):
    """Return the settings with a length that the model takes; InputError if it lacks a layer."""
    count = model.config.num_layers
    for layer in args.layers:
        if not -count <= layer < count:
            raise InputError(
                f'{layer}: the model has {count} layers: give numbers from {-count} to {count - 1}',
                field='layers',
            )
    return args.fit_length('max_length', model.context_length)


def count_lines(path, encoding=None):
    """Check that all lines can be read; return their number."""
    count, single = 0, 0
    for _, line in read_lines(path, encoding):
        count += 1
        single += SEPARATOR.strip() in line and SEPARATOR not in line.strip()
    if not count:
        raise InputError(f'{path!r} is empty', field='input_file')
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
    from model_zoo.app.report import write_results
    from model_zoo.tasks.tables import check_files

    check_files(args, 'input_file')
    output = args.output_file
    if os.path.realpath(args.input_file) == os.path.realpath(output):
        raise InputError(f'{output!r} is the input: give another name', field='output_file')
    if os.path.exists(output) and not os.path.isfile(output):
        raise InputError(f'{output!r} is not a regular file', field='output_file')
    cli.setup_logging()
    count = count_lines(args.input_file, args.encoding)  # fail on bad lines before the work
    ctx = cli.get_ctx(args.gpu)
    model, tokenizer = make_model(args, ctx)
    args = check_model(args, model)
    extractor = FeatureExtractor(
        model, tokenizer, args.layers, args.max_length, args.batch_size, ctx
    )
    started, totals = time.perf_counter(), {'tokens': 0, 'cut_lines': 0}

    def counted():
        lines = (line for _, line in read_lines(args.input_file, args.encoding))
        for encoding, vectors in progress(
            extractor.extract(lines), 'lines', total=count, leave=True
        ):
            totals['tokens'] += len(encoding)
            totals['cut_lines'] += encoding.truncated > 0
            yield encoding, vectors

    write = write_arrays if output.endswith('.npz') else write_json_lines
    write(output, counted(), args.layers, tokenizer.vocab)
    seconds = time.perf_counter() - started
    write_results(
        f'{output}.results.json',
        vars(args),
        lines=count,
        **totals,
        seconds=seconds,
        lines_per_second=count / seconds,
        model=model.config.to_dict(),
    )
    if totals['cut_lines']:
        logger.warning(
            '%d of %d lines have more than %d tokens and were cut',
            totals['cut_lines'],
            count,
            args.max_length,
        )
    logger.info('%s: %d lines, %d tokens, %.1f s', output, count, totals['tokens'], seconds)


if __name__ == '__main__':
    cli.run_script(main)
