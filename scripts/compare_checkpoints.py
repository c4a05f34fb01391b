"""Compare a checkpoint's outputs in its own software and in this project, layer by layer.

    python compare_checkpoints.py --family bert --software tensorflow --code google-research-bert \
        uncased_L-12_H-768_A-12 --input_file sentences.txt
    python compare_checkpoints.py --family gpt2 --software transformers gpt2 --converted gpt2-zoo

Each layer and each prediction gets a line: the largest difference, the standard deviation of the
differences, and for predictions how many are the same. ``--output_dir`` receives them as
comparison.json and comparison.png. The software reads the checkpoint. This project's block reads
it, too, or with ``--converted`` the folder that convert_checkpoint.py wrote.

With BERT this compares all layers, the pooled vector, the predictions of masked words and of next
sentences, and the start, end and loss of answers (SQuAD). A checkpoint without the last layer for
answers gets a random one. With RoBERTa, XLM-R, DistilBERT and ELECTRA it compares all layers and
the outputs of the checkpoint's class; with GPT, GPT-2 and Transformer-XL all layers and the
prediction of the next words.

``--software tensorflow`` needs TensorFlow and ``--code``, a clone of google-research/bert,
openai/gpt-2 or kimiyoung/transformer-xl. (google-research/bert has approximated gelu since February
2019, for every checkpoint: with ``--hidden_act gelu_new`` this project does the same.)
"""

import logging
import os

from model_zoo.analysis.comparison import (
    differences_of,
    make_inputs,
    plot_differences,
    run_ours,
)
from model_zoo.analysis.originals import SOFTWARE, check_software, run_theirs
from model_zoo.app import cli
from model_zoo.app.arguments import check_at_least_one
from model_zoo.app.use import read_file
from model_zoo.errors import InputError
from model_zoo.opening import open_block, open_tokenizer
from model_zoo.registry import list_families
from model_zoo.util.files import make_writable_dir, write_json

logging.getLogger('pytorch_pretrained_bert').setLevel(logging.WARNING)
logging.getLogger('tensorflow').setLevel(logging.ERROR)


def parse(argv):
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_argument('checkpoint', help='folder of the checkpoint')
    parser.add_argument('--converted', help='folder that this project reads; default: CHECKPOINT')
    families = [family.name for family in list_families()]
    parser.add_argument('--family', choices=families, required=True)
    parser.add_argument('--software', choices=SOFTWARE, required=True)
    parser.add_argument('--code', help='folder with the original TensorFlow program')
    parser.add_argument('--input_file', help='file with one text per line, for BERT also "first '
                        '||| second"; default: random tokens')  # fmt: skip
    parser.add_argument('--num_examples', type=int, default=8)
    parser.add_argument('--max_seq_length', type=int, default=128, help='maximum length, in tokens')
    parser.add_argument('--hidden_act', help="activation of this project's BERT, if the software "
                        "doesn't use the configuration's")  # fmt: skip
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--output_dir', help='folder for comparison.json and comparison.png')
    args = parser.parse_args(argv)
    check_software(args.software, args.family, args.code)
    check_at_least_one(args, 'num_examples', 'max_seq_length')
    for path in filter(None, (args.checkpoint, args.converted, args.code)):
        if not os.path.isdir(path):
            raise InputError(f'no such directory: {path!r}')
    return args


def open_ours(args):
    """Our block, with everything that the checkpoint has."""
    options = {'hidden_act': args.hidden_act} if args.hidden_act else {}
    folder = args.converted or args.checkpoint
    return open_block(folder, family=args.family, exact=True, **options)[0]


def build_inputs(args, config):
    texts = tokenizer = None
    if args.input_file:
        tokenizer = open_tokenizer(args.checkpoint, family=args.family)
        texts = [text for _, text, _ in read_file(args.input_file, pairs=False)]
        if not texts:
            raise InputError(f'{args.input_file!r} has no text')
    return make_inputs(
        config, args.num_examples, args.max_seq_length, args.seed, texts, tokenizer
    )


def print_table(rows):
    print(f'{"":24}{"max difference":>16}{"its std":>12}{"std of values":>16}  same prediction')
    for row in rows:
        same = f'  {row["same"]} of {row["of"]}' if 'same' in row else ''
        print(f'{row["name"]:24}{row["max"]:16.3g}{row["std"]:12.3g}{row["std_of_values"]:16.4g}'
              + same)  # fmt: skip


def main(argv=None):
    args = parse(argv)
    cli.setup_logging()
    block = open_ours(args)
    if args.output_dir:
        make_writable_dir(args.output_dir)
    inputs = build_inputs(args, block.config)
    ours = run_ours(block, inputs)
    theirs = run_theirs(args.software, args.family, args.checkpoint, block, inputs, args.code)
    rows = differences_of(ours, theirs, inputs.mask)
    print_table(rows)
    if args.output_dir:
        title = f'{os.path.basename(os.path.normpath(args.checkpoint))}: {args.software} and ours'
        record = {**vars(args), 'shape': list(inputs.words.shape), 'differences': rows}
        write_json(os.path.join(args.output_dir, 'comparison.json'), record)
        plot_differences(os.path.join(args.output_dir, 'comparison.png'), rows, title)


if __name__ == '__main__':
    cli.run_script(main)
