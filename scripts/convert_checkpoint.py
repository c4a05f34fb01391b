"""Convert a checkpoint between the formats of TensorFlow, PyTorch, NumPy and this project.

    python convert_checkpoint.py IN OUT
    python convert_checkpoint.py --family bert --from tensorflow --to pytorch IN OUT

Formats:

- native: this project's, config.json and model.params;
- huggingface: config.json and model.safetensors, in one or several files;
- pytorch: config.json and pytorch_model.bin, in one or several files;
- pytorch_pretrained_bert: the same with that library's names and buffers, for writing only;
- tensorflow: a checkpoint (.index and .data-* files) with bert_config.json, hparams.json (GPT-2) or
  config.json (Transformer-XL); needs TensorFlow to write;
- numpy: params_shapes.json and params_0.npy to params_9.npy of OpenAI GPT, for reading only;
- gluonnlp: a .params file with GluonNLP's names, of BERT and GPT-2.

IN is a folder, a file of weights beside its configuration, an archive, an address, or owner/name of
the Hugging Face hub. A vocabulary beside the weights is converted, too. OUT is a folder, or a file
that ends in .bin (pytorch), .safetensors (huggingface) or .params (native), with a configuration
beside it. The output is read again and compared with the input.

``--corpus FILE``, in addition to IN or instead of it, is the pickled data set of a Transformer-XL.
Its ids and its vocabulary are written to OUT, as vocab.bin and corpus.bin (pytorch), or as
vocab.json and corpus.npz (native).
"""

import logging
import os

from model_zoo.app import cli
from model_zoo.errors import CheckpointError, InputError
from model_zoo.util.choices import WEIGHTS_FORMATS
from model_zoo.util.files import make_writable_dir, replace_files, temporary_folder

log = logging.getLogger('convert_checkpoint')

#: end of a file's name -> its format
_CORPUS = {'native': 'native', 'pytorch': 'pytorch', 'pytorch_pretrained_bert': 'pytorch'}
EXTENSIONS = {'.bin': 'pytorch', '.safetensors': 'huggingface', '.params': 'native'}


def parse(argv):
    parser = cli.parser(__doc__.split('\n')[0])
    add, formats = parser.add_argument, [*WEIGHTS_FORMATS, 'gluonnlp']
    add('input', metavar='IN', nargs='?', help='folder, or file of weights')
    add('output', metavar='OUT', help='folder, or file of weights, to write')
    source = {'dest': 'source', 'choices': ['auto', *formats], 'default': 'auto'}
    add('--from', **source, help='format of IN; default: recognised from its files')
    target = {'dest': 'target', 'choices': [*formats, 'pytorch_pretrained_bert']}
    add('--to', **target, help='format of OUT; default: by the name of a file, or huggingface')
    add('--family', help='such as bert or gpt2; default: as the files show')
    add('--model', metavar='CLASS', help='such as BertForQuestionAnswering; default: as IN says')
    add('--config', help="configuration, if it isn't beside the weights")
    add('--num_labels', type=int, help="number of outputs of a task's classifier")
    add('--corpus', metavar='FILE', help="Transformer-XL's pickled data set")
    args = parser.parse_args(argv)
    if args.input is None and args.corpus is None:
        raise InputError('name IN, the weights, or `corpus`, a data set')
    named = EXTENSIONS.get(os.path.splitext(args.output)[1])
    is_like = named == 'pytorch' and args.target == 'pytorch_pretrained_bert'
    if named and args.target not in (None, named) and not is_like:
        problem = f'{args.target}: {args.output!r} is a file of the format {named}'
        raise InputError(problem, field='to')
    args.target = args.target or named or ('pytorch' if args.corpus else 'huggingface')
    is_file = named or args.target not in _CORPUS
    if args.corpus is not None and (is_file or args.family not in (None, 'transfo_xl')):
        problem = 'is of `family` transfo_xl, and OUT a directory, `to` native or pytorch'
        raise InputError(problem, field='corpus')
    return args


def read(args):
    from model_zoo.opening import open_model
    from model_zoo.pretrained import find_files, local_path

    format = {'auto': None, 'gluonnlp': 'native'}.get(args.source, args.source)
    options = {'config': args.config, 'format': format, 'exact': True, 'tokenizer': False}
    if args.num_labels is not None:
        options['num_labels'] = args.num_labels
    args.input, _ = local_path(args.input)
    # a folder or a file, not a model's name
    find_files(path=args.input, weights=False, vocab=False)
    block, _, files = open_model(args.input, args.model, family=args.family, **options)
    count = sum(array.size for array in block.own_tensors().values())
    log.info('%s: %s, %.1f million parameters', files.weights, type(block).__name__, count / 1e6)
    return block


def write(block, output, target):
    from model_zoo.checkpoint.readers import LAYOUTS, weights_in_folder

    if target == 'gluonnlp' and target not in block.mappings():
        problem = f'gluonnlp: there is no such format for {type(block).__name__}'
        raise InputError(problem, field='to')
    name = LAYOUTS[target].weights if target in LAYOUTS else 'model.params'
    path = os.path.join(output, name)
    there = weights_in_folder(output) if os.path.isdir(output) else None
    if there not in (None, path):
        raise InputError(
            f'{output!r} already has weights, {os.path.basename(there)!r}, which could be '
            f'confused with {name!r}: choose another folder'
        )
    if target == 'gluonnlp':
        block.save_pretrained(output)
        block.save_parameters(path, format='gluonnlp')
    else:
        block.save_pretrained(output, format=target)
    return path


def write_file(block, path, target):
    """Write the block's weights to a file, and a configuration unless one is beside it."""
    from model_zoo.checkpoint.readers import CONFIG_NAMES

    folder = make_writable_dir(os.path.dirname(path) or '.')
    with temporary_folder(folder, os.path.basename(path)) as temporary:
        moves = {write(block, temporary, target): path}
        if not any(os.path.isfile(os.path.join(folder, name)) for name in CONFIG_NAMES):
            moves[os.path.join(temporary, 'config.json')] = os.path.join(folder, 'config.json')
        replace_files(moves)
    return path


def verify(block, path):
    """Raise CheckpointError unless the weights at `path` equal the block's."""
    import numpy as np

    ours, theirs = block.own_tensors(), block.read_weights(path, block.config).tensors
    wrong = [name for name in ours if not np.array_equal(ours[name], theirs.get(name))]
    if wrong:
        raise CheckpointError(f'{path} does not give back what was written: {", ".join(wrong)}')
    log.info('%s: written, read again, equal', path)


def convert_corpus(path, output, target):
    """Write a data set's ids and vocabulary, and read them again."""
    import numpy as np

    from transfo_xl import TransfoXLCorpus

    corpus = TransfoXLCorpus.from_file(path)
    _, written = corpus.save_pretrained(output, format=target)
    again = TransfoXLCorpus.from_file(written)
    same = corpus.vocab.idx2sym == again.vocab.idx2sym
    for ours, theirs in zip(*((each.train, each.valid, each.test) for each in (corpus, again))):
        if isinstance(ours, list):  # of sentences
            same = same and list(map(list, ours)) == list(map(list, theirs))
        else:
            same = same and np.array_equal(ours, theirs)
    if not same:
        raise CheckpointError(f'{written} does not give back what was written')
    log.info('%s: written as %s, read again, equal', written, target)


def main(argv=None):
    args = parse(argv)
    cli.setup_logging()
    if args.corpus is not None:
        convert_corpus(args.corpus, args.output, _CORPUS[args.target])
    if args.input is None:
        return
    block = read(args)
    is_file = os.path.splitext(args.output)[1] in EXTENSIONS
    verify(block, (write_file if is_file else write)(block, args.output, args.target))


if __name__ == '__main__':
    cli.run_script(main)
