"""Fill the [MASK] of texts with likely words.

    python fill.py bert-base-uncased 'Paris is the [MASK] of France.'

The model is a BERT with a masked language model's head. Each line of the output is a word with its
probability, and the text with the word in it.
"""

import sys

import model_zoo  # noqa: F401  isort: skip  before MXNet: Ctrl-C while it loads ends quietly

from model_zoo.app import cli
from model_zoo.app.engines import add_use_arguments
from model_zoo.app.records import add_record_arguments, read_texts, write_records
from model_zoo.inference import pipeline


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_argument('model', help='folder or name of the model')
    parser.add_argument(
        'texts', nargs='*', metavar='text', help='the texts, each in quotes, with [MASK]'
    )
    parser.add_argument('--file', help='one text per line, empty ones left out; -: standard input')
    parser.add_argument('--top_k', type=int, default=5, help='words for each mask')
    add_use_arguments(parser)
    add_record_arguments(parser)
    return parser.parse_intermixed_args(argv)


def main(argv=None):
    args = parse_arguments(argv)
    cli.setup_logging()
    texts = read_texts(args.texts, args.file)
    unmasker = pipeline(
        'fill-mask', args.model,
        engine=args.engine, precision=args.precision,
    )  # fmt: skip

    def records():
        for found in unmasker(texts, top_k=args.top_k):
            groups = found if isinstance(found[0], list) else [found]
            for mask, group in enumerate(groups):
                for each in group:
                    yield {
                        'word': each['token_str'],
                        'score': each['score'],
                        'mask': mask,
                        'text': each['sequence'],
                    }

    write_records(records(), args.format, args.output)


if __name__ == '__main__':
    sys.exit(cli.run(main))
