"""Commands that use a model, in one grammar: from their texts to records.

zoo VERB MODEL [TEXT ...] [--file FILE] [--output FILE]
"""

import itertools

from ..inference import pipeline
from ..inference.classification import LIKELY
from ..inference.pipeline_base import POOL_ITEMS
from ..records import csv_form
from ..tasks.targets import join_names
from ..util.remote import is_file, is_folder
from .arguments import engine_of
from .cli import setup_logging
from .texts import given_texts, read_texts, rows_of
from .writing import Scores, write_records


def run_pipeline(task, args, records, pairs=False):
    """Write the records of a pipeline's results for a command's texts."""
    setup_logging()
    texts = read_texts(args, pairs)  # bad ones are errors before the model is opened
    write_records(records(_open(task, args), texts), args.format, args.output)


def _open(task, args, **options):
    engine = engine_of(args.engine, args.precision, args.file)
    return pipeline(task, args.model, engine=engine, precision=args.precision, **options)


def label_texts(args, pairs=None):
    """Write a record for each text, or pair, of a command; None: as the model was trained."""
    setup_logging()
    classifier = _open('text-classification', args, max_length=args.max_length)
    extras = classifier.block.config.extras
    pairs = extras.get('text_pairs') if pairs is None else pairs
    known = ()  # the texts' columns in the file that the model was trained on, if it says so
    if args.file and not args.text_column:
        known = extras.get('text_columns', ())
    given, names, like = given_texts(args, pairs, known), {}, None
    if args.file and (is_file(args.file) or is_folder(args.file)):  # a pipe is read only once
        like = args.file
        for row in rows_of(args, pairs, known):  # rows of JSON have different columns
            names.update(row.columns)
    records = _labelled(classifier, given, args.all_scores, set(names))
    write_records(records, args.format, args.output, names, csv_form(like, args.encoding))


def _labelled(classifier, given, all_scores, taken):
    """Yield the columns of each text with its result, under names that no `taken` column has.

    A blank text's result has no values.
    """
    given, empty = iter(given), None

    def free(name):
        while name in taken or any(column.startswith(f'{name}.') for column in taken):
            name = f'predicted_{name}'
        return name

    while chunk := list(itertools.islice(given, POOL_ITEMS)):
        texts = [each.text for each in chunk if not each.is_blank]
        results = results_of(classifier, texts, all_scores)
        for each in chunk:
            if each.is_blank and empty is None:
                usual = next(results_of(classifier, ['-'], all_scores)).items()
                empty = {
                    name: Scores.fromkeys(value) if isinstance(value, dict) else None
                    for name, value in usual
                }
            result = empty if each.is_blank else next(results)
            taken.update(each.columns)
            named = {free(name): value for name, value in result.items()}
            if each.columns:
                yield {**each.columns, **named}
            else:
                line = each.text if isinstance(each.text, str) else '\t'.join(each.text)
                yield {**named, 'text': line}


def results_of(classifier, texts, all_scores=False):
    """Yield a dict for each text, or pair of texts."""
    several = classifier.is_multi_label
    for result in classifier(texts, top_k=None if all_scores or several else 1):
        scores = Scores((answer['label'], answer['score']) for answer in result)
        if all_scores:
            yield {'scores': scores}
        elif several:  # as in the files that train a model of several labels
            likely = [label for label in classifier.labels if scores[label] >= LIKELY]
            yield {'label': join_names(likely), 'scores': scores}
        else:
            yield scores if classifier.is_regression else result[0]
