"""Convert a checkpoint between the formats of TensorFlow, PyTorch, NumPy and this project.

    python convert_checkpoint.py --family bert --from tensorflow --to huggingface IN OUT

Formats:

- native: this project's, config.json and model.params;
- huggingface: config.json and model.safetensors, in one or several files;
- pytorch: config.json and pytorch_model.bin, in one or several files; needs torch;
- tensorflow: a checkpoint (.index and .data-* files) with bert_config.json, hparams.json (GPT-2) or
  config.json (Transformer-XL); needs TensorFlow;
- numpy: params_shapes.json and params_0.npy to params_9.npy, of OpenAI GPT;
- gluonnlp: a .params file with GluonNLP's names, of BERT.

IN is a directory, or a file of weights beside its configuration. A vocabulary beside the weights
goes along. What has been written is read again and compared with what was read.
"""

import importlib
import logging
import os
import sys

import numpy as np

from model_zoo.app import cli
from model_zoo.checkpoint.fit import fit_block
from model_zoo.checkpoint.layouts import FORMATS, LAYOUTS, weights_in_folder
from model_zoo.errors import CheckpointError, InputError
from model_zoo.families import FAMILIES
from model_zoo.pretrained import files_in_folder
from model_zoo.tokenization.vocab_file import find_vocab_file

log = logging.getLogger('convert_checkpoint')


def parse(argv):
    parser = cli.parser(__doc__.split('\n')[0])
    formats = [*FORMATS, 'gluonnlp']
    parser.add_argument('input', metavar='IN', help='directory, or file of weights')
    parser.add_argument('output', metavar='OUT', help='directory to write')
    parser.add_argument('--from', dest='source', choices=['auto', *formats], default='auto',
                        help='format of IN; by default recognised by its files')  # fmt: skip
    parser.add_argument('--to', dest='target', choices=formats, required=True,
                        help='format of OUT')  # fmt: skip
    parser.add_argument('--family', choices=FAMILIES, required=True)
    parser.add_argument('--model', metavar='CLASS',
                        help='such as BertForQuestionAnswering; by default what the files name, '
                        'or what fits')  # fmt: skip
    parser.add_argument('--config', help='configuration, if there is none beside the weights')
    parser.add_argument('--num_labels', type=int, help="outputs of a task's classifier")
    return parser.parse_args(argv)


def find_input(path, source):
    """Paths of the weights and of the configuration or None, and the folder of both."""
    if not os.path.exists(path) and os.path.isfile(path + '.index'):
        path += '.index'
    folder = path if os.path.isdir(path) else os.path.dirname(path) or '.'
    if not os.path.exists(path):
        raise InputError(f'no such file or directory: {path!r}')
    format = {'auto': None, 'gluonnlp': 'native'}.get(source, source)
    files = files_in_folder(folder, format)
    weights = files.weights if path == folder else path
    if weights is None:
        raise InputError(f'no weights in {path!r}' + (f' in the format {format}' * bool(format)))
    return weights, files.config, folder


def read(args, family):
    """The block with the weights of IN, and the arguments that it was made with."""
    weights, config_path, folder = find_input(args.input, args.source)
    config_path = args.config or config_path
    config_class = next(
        each.config_class for each in vars(family).values() if hasattr(each, 'config_class')
    )
    if config_path is not None:
        config = config_class.from_json_file(config_path)
    elif os.path.basename(weights) == 'params_shapes.json':
        config = config_class()  # OpenAI published one size, without a file for it
    else:
        raise InputError(f'{folder!r} has no configuration: name it with --config')
    if args.num_labels is not None:
        config = config_class.from_dict({**config.to_dict(), 'num_labels': args.num_labels})
    block, options, unused = fit_block(family, weights, config, args.model)
    if unused:
        log.warning('left out: %s', ', '.join(name.lstrip('^') for name in unused))
    if files_in_folder(folder).vocab:
        base = block.base
        base.vocab_file = find_vocab_file(None, path=folder)
    count = sum(array.size for array in block._own_tensors().values())
    log.info('%s: %s, %.1f million parameters', weights, type(block).__name__, count / 1e6)
    return block, options


def write(block, output, target):
    """Write the block; returns the path of the weights."""
    if target == 'gluonnlp' and target not in block.mappings():
        raise InputError(f"--to gluonnlp: there is no such format for {type(block).__name__}")
    name = LAYOUTS[target].weights if target in LAYOUTS else 'model.params'
    path = os.path.join(output, name)
    there = weights_in_folder(output) if os.path.isdir(output) else None
    if there not in (None, path):
        raise InputError(
            f'{output!r} already has weights, {os.path.basename(there)!r}, which could be taken '
            f'for those of {name!r}: choose another directory'
        )
    if target == 'gluonnlp':
        block.save_pretrained(output)
        block.save_parameters(path, format='gluonnlp')
    else:
        block.save_pretrained(output, format=target)
    return path


def verify(block, options, path):
    """Raise CheckpointError unless the weights at `path` are those of the block."""
    again = type(block)(block.config, **options)
    again.load_parameters(path)
    ours, theirs = block._own_tensors(), again._own_tensors()
    wrong = [name for name in ours if not np.array_equal(ours[name], theirs[name])]
    if wrong:
        raise CheckpointError(f'{path} does not give back what was written: {", ".join(wrong)}')


def main(argv=None):
    args = parse(argv)
    cli.setup_logging()
    family = importlib.import_module(args.family)
    block, options = read(args, family)
    path = write(block, args.output, args.target)
    verify(block, options, path)
    log.info('%s: written as %s, read again, equal', path, args.target)


if __name__ == '__main__':
    sys.exit(cli.run(main))
