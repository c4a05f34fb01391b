"""Rewrite the tables of pretrained weights in docs/model_zoo.rst from the catalogue.

    python docs/zoo_table.py

A test fails when they are out of date.
"""

import pathlib
import sys

from model_zoo.app import cli
from model_zoo.pretrained import list_pretrained
from model_zoo.pretrained.find import in_repository
from model_zoo.util.files import atomic_write

PAGE = pathlib.Path(__file__).resolve().parent / 'model_zoo.rst'
BEGIN = '.. the tables are written by docs/zoo_table.py\n\n'
END = '\n.. end of the tables\n'
HEADER = ('data set', 'other names', 'lacks', 'found in')


def row(entry):
    """The cells of one set of pretrained weights."""
    places = []
    if entry.package:
        places.append(f'package ``{entry.package.requirement}``')
    if in_repository(entry):
        places.append("GluonNLP's repository")
    if entry.hub:
        places.append('the hub')
    name = f'``{entry.dataset}``' + (' (default)' if entry.default else '')
    others = [f'``{name}``' for name in (*entry.dataset_aliases, *entry.names) if '/' not in name]
    return (
        name,
        ', '.join(others) or 'none',
        ', '.join(entry.lacks) or 'nothing',
        ', '.join(places) or 'files that you supply',
    )


def table():
    """The tables in reStructuredText, one for each model."""
    entries = list_pretrained()
    parts = []
    for model in sorted({entry.model for entry in entries}):
        rows = [HEADER, *(row(entry) for entry in entries if entry.model == model)]
        widths = [max(map(len, column)) for column in zip(*rows)]
        line = '  '.join('=' * width for width in widths)
        cells = ['  '.join(map(str.ljust, cells, widths)).rstrip() for cells in rows]
        parts.append('\n'.join([f'``{model}``:\n', line, cells[0], line, *cells[1:], line]) + '\n')
    return '\n'.join(parts)


def updated(text):
    """The page's `text` with the current tables."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + table() + END + after


def main(argv=None):
    """Rewrite the page."""
    cli.parser(__doc__.split('\n')[0]).parse_args(argv)
    text = updated(PAGE.read_text(encoding='utf-8'))
    with atomic_write(PAGE) as file:
        file.write(text)


if __name__ == '__main__':
    sys.exit(cli.run(main))
