"""Tables of README.rst and docs/ that tell what the code has, and the names of files in them."""

import json
import pathlib
import re

import pytest
from script_runs import load_script

from model_zoo.tasks.classification import get_task, list_tasks

RUN = load_script('run')
ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / 'README.rst').read_text('utf-8')
PAGES = [ROOT / 'README.rst', *sorted((ROOT / 'docs').rglob('*.rst'))]


def rows(text, header):
    """The cells of a simple table that has the line `header`, row by row."""
    lines = text.splitlines()
    place = next(n for n, line in enumerate(lines) if line.split() == header.split())
    columns = [match.span() for match in re.finditer('=+', lines[place - 1])]
    columns[-1] = (columns[-1][0], None)
    for line in lines[place + 2 :]:
        if line.startswith('=='):
            return
        yield [line[first:last].strip().strip('`') for first, last in columns]


def test_the_readme_is_sound():
    core = pytest.importorskip('docutils.core')  # Sphinx sees to the other pages
    settings = {'halt_level': 2, 'report_level': 2, 'warning_stream': False}
    core.publish_doctree(README, settings_overrides=settings)


def test_each_script_has_its_row_and_page():
    table = {command: page for command, _, page in rows(README, 'command what it does page')}
    paths = (ROOT / 'scripts').glob('*.py')
    scripts = {f'scripts/{path.name}' for path in paths if path.stem != '__init__'}
    assert set(table) == {*scripts, 'export/export.py', 'bert-embedding'}
    for command, page in table.items():
        target = re.search('<(.*)>', page)
        text = (ROOT / target.group(1)).read_text('utf-8') if target else README
        name = command if command == 'bert-embedding' else pathlib.Path(command).name
        assert name in text, (command, page)


def test_the_tasks_are_those_of_the_catalogue():
    page = (ROOT / 'docs' / 'tasks' / 'classification.rst').read_text('utf-8')
    table = rows(page, 'task of classes, or range metrics downloads')
    found = []
    for name in list_tasks():
        task = get_task(name)
        if task.regression:
            classes = '{:g} to {:g}'.format(*task.label_range)
        else:
            classes = ', '.join(task.labels)
        of = 'pairs' if task.is_pair else 'texts'
        downloads = 'yes' if task.gluonnlp_name else 'no'
        found.append([name, of, classes, ', '.join(task.metrics), downloads])
    assert list(table) == found


@pytest.mark.parametrize('path', PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_are_named_exist(path):
    text = path.read_text('utf-8')
    names = r'\b(?:docs|scripts|requirements|export|tests|\.ci)/[\w./-]+\.(?:py|rst|txt|tsv|json)\b'
    for name in re.findall(names, text):
        assert (ROOT / name).exists(), name
    for target in re.findall(r'`[^`]*<([\w./]+\.rst)>`_', text):
        assert (path.parent / target).exists(), target

def test_the_results_of_recipes_are_those_of_the_file():
    """Which ``zoo run`` has written."""
    summary = json.loads((ROOT / 'docs' / 'recipe_results.json').read_text('utf-8'))
    assert set(summary) <= set(RUN.list_recipes(ROOT / 'scripts' / 'recipes'))
    assert RUN.table(summary) in (ROOT / 'docs' / 'benchmarks.rst').read_text('utf-8')
