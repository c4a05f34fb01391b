"""Find the entities in texts.

    python tag.py best_model 'Angela Merkel lives in Berlin.'
    python tag.py best_model --file articles.txt --format tsv

The model is a folder that finetune_tagging.py wrote, or any other model that labels tokens and that
the zoo reads. Each line of the output is an entity with its kind, its score, and its place in the
text. ``--strategy none`` shows the label of each token.
"""

import logging
import sys

import model_zoo  # noqa: F401  isort: skip  before MXNet: Ctrl-C while it loads ends quietly

from model_zoo.app import cli
from model_zoo.app.engines import add_use_arguments
from model_zoo.app.records import add_record_arguments, read_texts, write_records
from model_zoo.inference import pipeline

logger = logging.getLogger('tag')


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_argument('model', help='folder or name of the model')
    parser.add_argument('texts', nargs='*', metavar='text', help='the texts, each in quotes')
    parser.add_argument('--file', help='one text per line, empty ones left out; -: standard input')
    parser.add_argument(
        '--strategy', default='first', choices=['none', 'simple', 'first', 'average', 'max'],
        help='how labels of tokens become entities',
    )  # fmt: skip
    add_use_arguments(parser)
    add_record_arguments(parser)
    return parser.parse_intermixed_args(argv)


def main(argv=None):
    args = parse_arguments(argv)
    cli.setup_logging()
    texts = read_texts(args.texts, args.file)
    tagger = pipeline(
        'token-classification', args.model,
        engine=args.engine, precision=args.precision,
    )  # fmt: skip

    def records():
        is_empty = True
        for number, found in enumerate(tagger(texts, aggregation_strategy=args.strategy)):
            for each in found:
                is_empty = False
                yield {'text': number, **each}
        if is_empty:
            logger.info('no entities were found')

    write_records(records(), args.format, args.output)


if __name__ == '__main__':
    sys.exit(cli.run(main))
