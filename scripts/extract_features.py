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

Inputs may be larger than the memory. The output appears when it is complete: an interrupted run
starts anew.
"""

import itertools
import json
import logging
import os
import sys
import time

import numpy as np

from model_zoo.app import cli
from model_zoo.app.devices import get_ctx
from model_zoo.app.originals import parse_settings
from model_zoo.errors import InputError
from model_zoo.training import settings
from model_zoo.util.choices import PRECISIONS
from model_zoo.util.display import progress
from model_zoo.util.files import atomic_write
from model_zoo.util.reading import read_lines

logger = logging.getLogger('extract_features')


def layer_numbers(text):
    """Return ``[-1, -2]`` for ``'-1,-2'``."""
    return [int(number) for number in text.split(',')]


class FeatureSettings(settings.ModelSettings, model='bert_12_768_12'):
    """The flags of the originals' scripts."""

    title = 'features'

    input_file: str = settings.setting(None, 'one text or pair per line', flag={'required': True})
    output_file: str = settings.setting(None, 'JSON lines', flag={'required': True})
    layers: list[int] = settings.setting(
        (-1, -2, -3, -4),
        '0 is the first layer; negative numbers count from the last one',
        flag={'type': layer_numbers, 'nargs': None},
    )
    max_length: int = settings.token_limit(
        128, 'in tokens, including special tokens; longer texts are truncated', at_least=3
    )
    encoding: str | None = settings.text_encoding()
    batch_size: settings.Count = settings.setting(32)
    do_lower_case: bool | None = settings.lower_case()
    gpu: int | None = settings.gpu_number()
    dtype: str = settings.setting('float32', choices=PRECISIONS)

    def check(self):
        super().check()
        if self.checkpoint and self.model_parameters:
            raise InputError('and `model_parameters` are both weights', field='checkpoint')
        has_vocab = not self.checkpoint or bool(self.vocab_file)
        if bool(self.checkpoint) != bool(self.config_file) or not has_vocab:
            raise InputError(
                '`checkpoint`, `config_file` and `vocab_file` go together; a folder with all three '
                'can be given as `model`'
            )


#: between the texts of a pair
SEPARATOR = ' ||| '
POOL = 4  # batches whose lines are sorted by length together: their vectors are in memory at once


def _split(line):
    """Return the two texts of a line; the second one may be empty."""
    text, separator, pair = line.strip().rpartition(SEPARATOR)
    return (text, pair) if separator else (pair, '')


def extract(model, tokenizer, args, ctx, lines):
    """Yield, for each line, its encoding and its vectors, (tokens, layers, units) float32."""
    import mxnet as mx

    from model_zoo.batches import make_batch
    from model_zoo.batches.sampling import longest_first

    while pool := list(itertools.islice(lines, POOL * args.batch_size)):
        encoded = list(tokenizer.encode_pairs(list(map(_split, pool)), args.max_length))
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


def json_line(number, tokens, vectors, layers):
    """Return a line of Google's format for a line of the input."""
    values = np.round(vectors.astype(np.float64), 6).tolist()
    features = []
    for token, row in zip(tokens, values):
        states = [{'index': index, 'values': value} for index, value in zip(layers, row)]
        features.append({'token': token, 'layers': states})
    return json.dumps({'linex_index': number, 'features': features}) + '\n'


def main(argv=None):
    argv = sys.argv[1:] if argv is None else list(argv)
    for index in reversed(range(len(argv) - 1)):
        if argv[index] == '--layers':  # argparse takes -1,-2 for a flag
            argv[index : index + 2] = [f'--layers={argv[index + 1]}']
    args = parse_settings(FeatureSettings, __doc__, argv, 'extract_features')
    from model_zoo.app.model_choice import ModelChoice
    from model_zoo.tasks.tables import check_files

    check_files(args, 'input_file')
    output = args.output_file
    if os.path.realpath(args.input_file) == os.path.realpath(output):
        raise InputError(f'{output!r} is the input: choose another name', field='output_file')
    cli.setup_logging()
    # fail on bad lines before the work
    count = sum(1 for _ in read_lines(args.input_file, args.encoding))
    if not count:
        raise InputError(f'{args.input_file!r} is empty', field='input_file')
    ctx = get_ctx(args.gpu)
    options = {'do_lower_case': args.do_lower_case, 'use_pooler': False}
    choice = ModelChoice(args, family='bert')
    model, tokenizer = choice.build(None, ctx, output_all_encodings=True, **options)
    layers = model.config.num_layers
    for layer in args.layers:
        if not -layers <= layer < layers:
            numbers = f'use numbers from {-layers} to {layers - 1}'
            raise InputError(f'{layer}: the model has {layers} layers: {numbers}', field='layers')
    args = args.fit_length('max_length', model.context_length)
    started, tokens, cut = time.perf_counter(), 0, 0
    lines = (line for _, line in read_lines(args.input_file, args.encoding))
    found = extract(model, tokenizer, args, ctx, lines)
    with atomic_write(output) as file:
        found = progress(found, 'lines', total=count, leave=True)
        for number, (encoding, vectors) in enumerate(found):
            tokens += len(encoding)
            cut += encoding.truncated > 0
            file.write(json_line(number, encoding.tokens, vectors, args.layers))
    if cut:
        logger.warning('%d of %d lines were cut to %d tokens', cut, count, args.max_length)
    seconds = time.perf_counter() - started
    logger.info('%s: %d lines, %d tokens, %.1f s', output, count, tokens, seconds)


if __name__ == '__main__':
    cli.run_script(main)
