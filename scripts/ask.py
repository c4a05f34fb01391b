"""Answer questions about a text.

    python ask.py best_model --context article.txt 'Who wrote it?' 'When?'
    python ask.py best_model --text 'The cat sleeps in Paris.' 'Where does the cat sleep?'

The model is a folder that finetune_squad.py wrote, or any other model for question answering that
the zoo reads. A text may be of any length. ``--may_be_empty`` lets a model that was trained on
SQuAD 2.0 answer that the text has no answer.
"""

import sys

import model_zoo  # noqa: F401  isort: skip  before MXNet: Ctrl-C while it loads ends quietly

from model_zoo.app import cli
from model_zoo.app.engines import add_use_arguments
from model_zoo.app.records import add_record_arguments, read_texts, write_records
from model_zoo.errors import InputError
from model_zoo.inference import pipeline
from model_zoo.util.lines import read_lines


def parse_arguments(argv=None):
    parser = cli.parser(__doc__.split('\n')[0])
    parser.add_argument('model', help='folder or name of the model')
    parser.add_argument(
        'questions', nargs='*', metavar='question', help='the questions, each in quotes'
    )
    parser.add_argument('--file', help='a question a line, empty ones left out; -: standard input')
    parser.add_argument('--context', metavar='FILE', help='the text')
    parser.add_argument('--text', help='the text itself')
    parser.add_argument('--top_k', type=int, default=1, help='answers to each question')
    parser.add_argument(
        '--may_be_empty', action='store_true', help='a text may have no answer: say so'
    )
    parser.add_argument('--max_answer_len', type=int, default=15, help='in tokens')
    add_use_arguments(parser)
    add_record_arguments(parser)
    args = parser.parse_intermixed_args(argv)
    if (args.context is None) == (args.text is None):
        raise InputError('give the text: --context FILE, or --text TEXT')
    return args


def main(argv=None):
    args = parse_arguments(argv)
    cli.setup_logging()
    text = args.text
    if text is None:
        text = '\n'.join(line.rstrip('\r\n') for _, line in read_lines(args.context))
    questions = read_texts(args.questions, args.file)
    answer = pipeline(
        'question-answering', args.model,
        engine=args.engine, precision=args.precision,
    )  # fmt: skip
    options = {
        'top_k': args.top_k,
        'handle_impossible_answer': args.may_be_empty,
        'max_answer_len': args.max_answer_len,
    }

    def records():
        for question in questions:
            found = answer(question, text, **options)
            for each in found if isinstance(found, list) else [found]:
                yield {**each, 'question': question}

    write_records(records(), args.format, args.output)


if __name__ == '__main__':
    sys.exit(cli.run(main))
