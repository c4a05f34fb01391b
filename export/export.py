"""Export a model's folder to symbol.json and parameters, or to ONNX.

As a command::

    python export/export.py output_dir/best_model --output_dir exported --format onnx
    python export/export.py --task classification --model_parameters model.params \
        --output_dir exported --seq_length 128

The flags are the same as in GluonNLP's scripts/bert/export.py.
"""

import json
import logging
import math
import os
import shlex
import sys

if __name__ == '__main__':
    # Python put this folder first on the path, where `export` names this file
    _here = os.path.dirname(os.path.abspath(__file__))
    _paths = [path for path in sys.path if os.path.abspath(path) != _here]
    sys.path[:] = [os.path.dirname(_here), *_paths, _here]

from model_zoo.app import cli
from model_zoo.app.arguments import check_at_least_one
from model_zoo.errors import InputError, MissingExtraError
from model_zoo.util.choices import ONNX_LIBRARIES, ONNX_PRECISIONS, POOLINGS, PRECISIONS

logger = logging.getLogger('export')


def _parser():
    parser = cli.parser(__doc__.splitlines()[0])
    add = parser.add_argument
    add('model', nargs='?', help='the same as --model_name')
    add('--task', help='such as classification; model: no head; default: what the folder says')
    add('--model_parameters', help='file of trained parameters; default: pretrained or random ones')
    add('--model_name', default='bert_12_768_12', help='model of the zoo, or folder of a model')
    add('--dataset_name', help="data set of the pretrained weights; default: the model's usual one")
    help = 'folder for the files; with MODEL, the default is MODEL_exported'
    add('--output_dir', default='./output_dir', help=help)
    help = "'symbol' is for MXNet, onnx for other runtimes"
    add('--format', default='symbol', choices=('symbol', 'onnx', 'both'), help=help)
    add('--seq_length', type=int, help='length of a text to check the export with')
    add('--dropout', type=float, default=0.1, help='dropout before a classification head')
    add('--dtype', default='float32', choices=PRECISIONS, help='precision of the exported symbol')
    help = 'precision of model.onnx; int8 applies to its matrix products'
    add('--precision', default='float32', choices=ONNX_PRECISIONS, help=help)
    help = "fuse model.onnx's operators; the file then needs ONNX Runtime"
    add('--optimize', action='store_true', help=help)
    help = 'question_answering: one output (batch, length, 2), instead of starts and ends'
    add('--one_output', action='store_true', help=help)
    help = "sentence_embedding: how to combine the tokens' vectors; default: the model's way"
    add('--pooling', default='mean', choices=POOLINGS, help=help)
    help = 'sentence_embedding: scale the vectors to length 1'
    add('--normalize', action='store_true', help=help)
    add = parser.add_argument_group('--precision int8').add_argument
    help = 'texts for fixed ranges of activations: one per line, or two with a tab; or a table'
    add('--calib_data', metavar='FILE', help=help)
    add('--text_columns', nargs='+', help='of a table: the names or numbers of one column or two')
    add('--num_calib_batches', type=int, default=8, help='batches of --calib_data')
    add('--calib_batch_size', type=int, default=32, help='texts per batch')
    add('--max_length', type=int, default=128, help='maximum tokens per text')
    parser.add_aliases('max_length', 'max_len')
    return parser


def _check(args):
    """Raise InputError for flags that don't go together."""
    check_at_least_one(args, 'num_calib_batches', 'calib_batch_size', 'max_length')
    is_onnx, task = args.format != 'symbol', args.task
    is_int8 = is_onnx and args.precision == 'int8'
    for field, may_be, where in (
        ('optimize', is_onnx, '`format` onnx or both'),
        ('precision', is_onnx, '`format` onnx or both'),
        ('dtype', not is_onnx, '`format` symbol'),
        ('one_output', not is_onnx and task == 'question_answering', '`task` question_answering'),
        ('normalize', task == 'sentence_embedding', '`task` sentence_embedding'),
        ('pooling', task == 'sentence_embedding', '`task` sentence_embedding'),
        ('calib_data', is_int8, '`format` onnx and `precision` int8'),
        ('text_columns', args.calib_data, '`calib_data`'),
    ):
        if field in args.given and not may_be:
            raise InputError(f'is for {where} only', field=field)


def main(argv=None):
    """Run the command; returns its exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    if args.model and 'output_dir' not in args.given:
        args.output_dir = f'{os.path.basename(os.path.normpath(args.model))}_exported'
    args.model_name = args.model or args.model_name
    from export import command, export_block, export_onnx_folder
    from export.onnx_file import graph_files
    from export.symbol_file import make_examples
    from model_zoo.app.report import with_path
    from model_zoo.util.files import make_writable_dir, written_together

    cli.setup_logging()
    located = command.locate_model(args)
    args.task = args.task or command.task_of(located)
    if args.task is None:
        parser.error(f'--task is required: {args.model_name!r} does not say its task')
    _check(args)
    if args.format != 'symbol':
        MissingExtraError.check('onnx', *ONNX_LIBRARIES)
    make_writable_dir(args.output_dir)  # before the work, not after
    block = command.build_block(args, located)
    limit = block.context_length or math.inf
    length = min(64, limit) if args.seq_length is None else args.seq_length
    if not 1 <= length <= limit:
        raise InputError(f'{length}: the model takes 1 to {limit}', field='seq_length')
    paths, usage = [], f'zoo serve {shlex.quote(args.output_dir)}'
    if args.format != 'onnx':
        examples = make_examples(block, length)
        paths += export_block(block, args.output_dir, args.task, examples, args.one_output)
        names = [f'data{i}' for i in range(sum(each is not None for each in examples))]
        given = ', '.join(map(json.dumps, (paths[0], names, paths[1])))
        code = f'mxnet.gluon.SymbolBlock.imports({given})'
        usage = f'python -c {shlex.quote(f"import model_zoo, mxnet; print({code})")}'
    if args.format != 'symbol':
        tokenizer = command.find_tokenizer(args, block, located)
        measures = command.read_measures(args, tokenizer)
        options = {'optimize': args.optimize, 'precision': args.precision, 'measures': measures}
        with written_together(args.output_dir, 'export-', graph_files('model')) as folder:
            written = export_onnx_folder(block, folder, tokenizer, **options)
            written += command.copy_modules(args, located, folder)
        for path in written:
            paths.append(os.path.join(args.output_dir, os.path.relpath(path, folder)))
    print('\n'.join(paths))
    logger.info('written to %s; next: %s', args.output_dir, with_path(usage))


if __name__ == '__main__':
    cli.run_script(main)
