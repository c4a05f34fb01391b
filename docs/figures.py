"""Rewrite the tables of results, times and weights in README.rst and docs/.

    python docs/figures.py

Scores are in docs/recipe_results.json, by recipe and metric, one for each seed; times are in
docs/figures.json, and pretrained weights in the catalogue. A table stands between
``.. figures: NAME ARGUMENTS`` and ``.. end of figures``. A test fails when one is out of date.
"""

import itertools
import json
import pathlib
import re
import statistics
import sys

from model_zoo.app import cli
from model_zoo.pretrained import list_pretrained
from model_zoo.pretrained.find import in_repository
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
    """Return the table of the scores of recipes, by default of all."""
    rows = [
        [f'``{name}``', METRICS.get(metric, metric), *map(_score, scores.values())]
        for name in names or SCORES
        for metric, scores in SCORES[name].items()
    ]
    return rst_table(['recipe', 'score', 'this project', 'transformers'], rows)


def _score(values):
    """Return the mean of several seeds, their standard deviation, and their number."""
    mean = statistics.mean(values)
    digits = 3 if abs(mean) <= 1 else 1
    if len(values) == 1:
        return f'{mean:.{digits}f}'
    text = f'{mean:.{digits}f} ± {statistics.stdev(values):.{digits}f} ({len(values)})'
    return text.replace(' ', '\N{NO-BREAK SPACE}')


def times(name):
    """Return a table of times."""
    content = TIMES[name]
    rows = [[row, *numbers] for row, numbers in content['rows'].items()]
    return rst_table([content['title'], *content['columns']], rows)


def weights():
    """Return the tables of pretrained weights, one for each model."""
    head = ['data set', 'other names', 'lacks', 'found in']
    rows = {}
    for entry in list_pretrained():
        rows.setdefault(entry.model, []).append(_weights_row(entry))
    return '\n\n'.join(f'``{model}``:\n\n{rst_table(head, rows[model])}' for model in sorted(rows))


def _weights_row(entry):
    others = [f'``{name}``' for name in (*entry.dataset_aliases, *entry.names) if '/' not in name]
    places = {
        entry.package and f'package ``{entry.package.requirement}``': entry.package,
        "GluonNLP's repository": in_repository(entry),
        'the hub': entry.hub,
    }
    return [
        f'``{entry.dataset}``' + (' (default)' if entry.default else ''),
        ', '.join(others) or 'none',
        ', '.join(entry.lacks) or 'nothing',
        ', '.join(filter(places.get, places)) or 'files that you supply',
    ]


def rst_table(head, rows):
    """Return a simple table of reStructuredText; None and missing cells are empty."""
    rows = [['' if cell is None else str(cell) for cell in row] for row in (head, *rows)]
    columns = list(itertools.zip_longest(*rows, fillvalue=''))
    widths = [max(map(len, column)) for column in columns]
    rule = '  '.join('=' * width for width in widths)
    lines = ['  '.join(map(str.ljust, row, widths)).rstrip() for row in zip(*columns)]
    return '\n'.join([rule, lines[0], rule, *lines[1:], rule])


TABLES = {'recipes': recipes, 'times': times, 'weights': weights}


def updated(text):
    """Return a page's `text` with the current tables."""

    def with_table(match):
        name, *arguments = match.group(2).split()
        return f'{match.group(1)}{TABLES[name](*arguments)}\n\n.. end of figures\n'

    return _BLOCK.sub(with_table, text)


def main(argv=None):
    cli.parser(__doc__.split('\n')[0]).parse_args(argv)
    for page in PAGES:
        text = page.read_text('utf-8')
        if updated(text) != text:
            with atomic_write(page) as file:
                file.write(updated(text))


if __name__ == '__main__':
    sys.exit(cli.run(main))
