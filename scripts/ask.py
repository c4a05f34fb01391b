"""Answer questions about a text.

    python ask.py best_model --context article.txt 'Who wrote it?' 'When?'
    python ask.py best_model --text 'The cat sleeps in Paris.' 'Where does the cat sleep?'
    python ask.py best_model --file questions.csv --output answers.csv

The model is a folder that finetune_squad.py wrote, or any other question answering model that the
zoo reads. A text may be of any length; a table with the columns ``question`` and ``context`` has a
text for each question. A model that finetune_squad.py trained on questions without an answer may
answer that there is none; ``--may_be_empty`` lets other models, too.
"""

import logging
import sys

from model_zoo.app import cli
from model_zoo.app.arguments import use_parser
from model_zoo.errors import InputError
from model_zoo.records import is_table_file

logger = logging.getLogger(__name__)


def main(argv=None):
    parser = use_parser(__doc__, 'question', 'the questions, each in quotes')
    add = parser.add_argument
    add('--context', metavar='FILE', help='file with the text, or in the form of SQuAD')
    add('--text', help='the text itself')
    add('--top_k', type=int, default=1, help='number of answers per question')
    text = 'the answer may be "no answer"; default: as the model was trained'
    add('--may_be_empty', action='store_true', default=None, help=text)
    add('--no_may_be_empty', action='store_false', dest='may_be_empty', help='always answer')
    add('--max_answer_len', type=int, help="most tokens; default: the model's, else 15")
    args = parser.parse_intermixed_args(argv)
    in_table = args.file is not None and is_table_file(args.file) and not args.texts
    if args.context is not None and args.text is not None:
        raise InputError('and `text` both name the text: choose one', field='context')
    if args.context is None and args.text is None and not in_table:
        raise InputError('the text is missing: pass `context` FILE, or `text` TEXT')
    from model_zoo.app.use import run_pipeline
    from model_zoo.tasks.squad import read_squad
    from model_zoo.util.reading import read_lines

    text = args.text
    if args.context is not None and is_table_file(args.context):  # such as the training's
        paragraphs = read_squad(args.context, version_2=True, encoding=args.encoding).paragraphs
        text = '\n'.join(dict.fromkeys(paragraphs))
    elif args.context is not None:
        text = '\n'.join(line.rstrip('\r\n') for _, line in read_lines(args.context, args.encoding))
    pairs = text is None
    if not pairs and args.text_column is None and args.file and is_table_file(args.file):
        args.text_column = 'question'
    given = {
        'top_k': args.top_k,
        'handle_impossible_answer': args.may_be_empty,
        'max_answer_len': args.max_answer_len,
    }
    options = {name: value for name, value in given.items() if value is not None}
    is_shown = args.output is None and sys.stdout.isatty() and not args.format
    empty = 'no answer' if is_shown or args.format == 'table' else ''

    def records(answer, questions):
        if not answer.checked(options)['may_be_empty']:
            logger.info('this model always answers: a score compares the answers in the text')
        asked = [each if pairs else (each, text) for each in questions]
        items = [dict(zip(('question', 'context'), each)) for each in asked]
        for (question, _), answers in zip(asked, answer(iter(items), **options)):
            for record in answers if isinstance(answers, list) else [answers]:
                yield {**record, 'answer': record['answer'] or empty, 'question': question}

    run_pipeline('question-answering', args, records, pairs)


if __name__ == '__main__':
    cli.run_script(main)
