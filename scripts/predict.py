"""Label texts with a trained classifier.

    python predict.py best_model 'What a fine day.' 'What a pity.'
    python predict.py best_model --file reviews.txt --format tsv --output labels.tsv
    cat reviews.txt | python predict.py best_model --file -

The model is a folder that finetune_classifier.py wrote, or any other classifier that the zoo reads.
Each line of the output is a text with its label and score; a regression's score is its number. With
``--pairs``, a text is two texts with a tab between them.
"""

import sys

import model_zoo  # noqa: F401  isort: skip  before MXNet: Ctrl-C while it loads ends quietly

from model_zoo.app import cli
from model_zoo.app.engines import add_use_arguments
from model_zoo.app.records import add_record_arguments, read_texts, write_records
from model_zoo.errors import InputError
from model_zoo.inference import pipeline


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_argument('model', help='folder or name of the model')
    parser.add_argument('texts', nargs='*', metavar='text')
    parser.add_argument('--file', help='one text per line; - is standard input')
    parser.add_argument('--pairs', action='store_true', help='a tab separates the texts of a pair')
    parser.add_argument('--all_scores', action='store_true', help='the scores of all labels')
    parser.add_argument('--max_len', type=int, help='cut texts to this many tokens')
    add_use_arguments(parser)
    add_record_arguments(parser)
    return parser.parse_intermixed_args(argv)


def split_pair(line):
    """The two texts of a line."""
    texts = tuple(line.split('\t'))
    if len(texts) != 2:
        raise InputError(f'--pairs: a line has {len(texts)} texts with tabs between: {line!r:.80}')
    return texts


def records(classifier, texts, args):
    """A dict for each text."""
    shown = []  # texts that wait for their results

    def items():
        for text in texts:
            shown.append(text)
            yield split_pair(text) if args.pairs else text

    for result in classifier(items(), top_k=None if args.all_scores else 1):
        best = {'label': result[0]['label'], 'score': result[0]['score']}
        if args.all_scores:
            best = {'scores': {each['label']: each['score'] for each in result}}
        yield {**best, 'text': shown.pop(0)}


def main(argv=None):
    args = parse_arguments(argv)
    cli.setup_logging()
    texts = read_texts(args.texts, args.file)
    classifier = pipeline(
        'text-classification', args.model, max_length=args.max_len,
        engine=args.engine, precision=args.precision,
    )  # fmt: skip
    write_records(records(classifier, texts, args), args.format, args.output)


if __name__ == '__main__':
    sys.exit(cli.run(main))
