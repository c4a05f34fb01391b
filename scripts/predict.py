"""Label texts with a trained classifier.

    python predict.py best_model 'What a fine day.' 'What a pity.'
    python predict.py best_model --file reviews.txt --format tsv --output labels.tsv
    cat reviews.txt | python predict.py best_model --file -
    python predict.py best_model --files 'reviews/*.txt' --output_dir labels

The model is a folder that finetune_classifier.py wrote, or any other classifier that the zoo reads.
Each line of the output is a text with its label and score; a regression's score is its number. With
``--pairs``, a text is two texts with a tab between them.
"""

import sys

import model_zoo  # noqa: F401  isort: skip  before MXNet: Ctrl-C while it loads ends quietly

from model_zoo.app import cli
from model_zoo.app.engines import add_use_arguments
from model_zoo.app.labeller import Labeller
from model_zoo.app.records import add_many_files_arguments, add_record_arguments, write_results


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_argument('model', help='folder or name of the model')
    parser.add_argument('texts', nargs='*', metavar='text', help='the texts, each in quotes')
    parser.add_argument('--file', help='one text per line, empty ones left out; -: standard input')
    parser.add_argument('--pairs', action='store_true', help='a tab separates the texts of a pair')
    parser.add_argument('--all_scores', action='store_true', help='the scores of all labels')
    parser.add_argument('--max_len', type=int, help='cut texts to this many tokens')
    add_use_arguments(parser)
    add_record_arguments(parser)
    add_many_files_arguments(parser, parser, ('jsonl', 'tsv'))
    return parser.parse_intermixed_args(argv)


def main(argv=None):
    args = parse_arguments(argv)
    cli.setup_logging()
    labeller = Labeller(
        {
            'model': args.model, 'max_length': args.max_len, 'engine': args.engine,
            'precision': args.precision,
        },
        args.pairs,
        args.all_scores,
    )  # fmt: skip
    write_results(labeller, args)


if __name__ == '__main__':
    sys.exit(cli.run(main))
