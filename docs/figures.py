"""Rewrite the tables of results, times and weights in README.rst and docs/.

    python docs/figures.py

Scores are in docs/recipe_results.json, by recipe and metric, one for each seed; times are in
docs/figures.json and scripts/benchmark/speed.json, and pretrained weights in the catalogue. A table
stands between ``.. figures: NAME ARGUMENTS`` and ``.. end of figures``. A test fails when one is
out of date.
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
#: what `--table` of scripts/benchmark/compare.py has written
SPEED = DOCS.parent / 'scripts' / 'benchmark' / 'speed.json'
#: works in the table of speed -> the titles of their columns
WORKS = {'forward': '{}', 'vectors': '{} vectors', 'generation': 'GPT-2 {}'}
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


def speed(processor):
    """Return the table of the engines' and the fastest peers' times on a kind of processor."""
    table = json.loads(SPEED.read_text('utf-8'))['processors'][processor]
    columns = [(work, case) for work in WORKS for case in table['ours'].get(work, {})]
    rows = []
    for precision in ('float32', 'bfloat16', 'int8'):
        for name in (f'{engine} {precision}' for engine in ('mxnet', 'onnxruntime', 'openvino')):
            cells = [table['ours'][work][case].get(name) for work, case in columns]
            rows.append([name, *('' if ms is None else f'{ms:.1f}' for ms in cells)])
        cells = []
        for work, case in columns:
            peers = table.get('peers', {}).get(work, {}).get(case, {})
            found = [(ms, key.split()[0]) for key, ms in peers.items() if key.endswith(precision)]
            cells.append('{:.1f} ({})'.format(*min(found)) if found else '')
        rows.append([f'best peer, {precision}', *cells])
    head = ['', *(WORKS[work].format(case) for work, case in columns)]
    return rst_table(head, [row for row in rows if any(row[1:])])


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


TABLES = {'recipes': recipes, 'speed': speed, 'times': times, 'weights': weights}


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
