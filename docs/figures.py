"""Rewrite the tables of results and times in README.rst and docs/ from their files of figures.

    python docs/figures.py

Scores are in docs/recipe_results.json, by recipe and metric, one for each seed; times are in
docs/figures.json. A table stands between ``.. figures: NAME ARGUMENTS`` and ``.. end of figures``.
A test fails when one is out of date.
"""

import json
import pathlib
import re
import statistics
import sys

from model_zoo.app import cli
from model_zoo.util.files import atomic_write

DOCS = pathlib.Path(__file__).resolve().parent
PAGES = [DOCS.parent / 'README.rst', *sorted(DOCS.rglob('*.rst'))]
SCORES = json.loads((DOCS / 'recipe_results.json').read_text('utf-8'))
TIMES = json.loads((DOCS / 'figures.json').read_text('utf-8'))
#: metric -> its name in the table
METRICS = {
    'matthews': 'Matthews',
    'pearson': 'Pearson',
    'spearman': 'Spearman',
    'f1': 'F1',
    'exact_match': 'EM',
    'exact': 'EM',
}
_BLOCK = re.compile(r'(\.\. figures: ([\w ]+)\n\n).*?\.\. end of figures\n', re.DOTALL)


def recipes(*names):
    """The scores of recipes, by default of all."""
    rows = [
        [f'``{name}``', METRICS.get(metric, metric), *map(_score, scores.values())]
        for name in names or SCORES
        for metric, scores in SCORES[name].items()
    ]
    return rst_table(['recipe', 'score', 'ours', 'transformers'], rows)


def _score(values):
    """The mean of several seeds, their standard deviation, and their number."""
    mean = statistics.mean(values)
    digits = 3 if abs(mean) <= 1 else 1
    if len(values) == 1:
        return f'{mean:.{digits}f}'
    text = f'{mean:.{digits}f} ± {statistics.stdev(values):.{digits}f} ({len(values)})'
    return text.replace(' ', '\N{NO-BREAK SPACE}')


def times(name):
    """A table of times."""
    content = TIMES[name]
    head = [content['title'], *content['columns']]
    rows = [[row, *map(_cell, numbers)] for row, numbers in content['rows'].items()]
    return rst_table(head, rows)


def _cell(number):
    return '' if number is None else str(number)


def rst_table(head, rows):
    """A simple table of reStructuredText."""
    rows = [[*row, *[''] * (len(head) - len(row))] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    rule = '  '.join('=' * width for width in widths)
    lines = ['  '.join(map(str.ljust, row, widths)).rstrip() for row in (head, *rows)]
    return '\n'.join([rule, lines[0], rule, *lines[1:], rule])


TABLES = {'recipes': recipes, 'times': times}


def updated(text):
    """A page's `text` with the current tables."""

    def with_table(match):
        name, *arguments = match.group(2).split()
        return f'{match.group(1)}{TABLES[name](*arguments)}\n\n.. end of figures\n'

    return _BLOCK.sub(with_table, text)


def main(argv=None):
    """Rewrite the pages."""
    cli.parser(__doc__.split('\n')[0]).parse_args(argv)
    for page in PAGES:
        text = page.read_text('utf-8')
        if updated(text) != text:
            with atomic_write(page) as file:
                file.write(updated(text))


if __name__ == '__main__':
    sys.exit(cli.run(main))
