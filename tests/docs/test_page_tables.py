"""Tables of README.rst and docs/ agree with the code, and the files that they name exist."""

import re
import runpy

import pytest
from script_runs import ROOT, load_script, read_json

from model_zoo.tasks.classification_data import get_task, list_tasks

README = (ROOT / 'README.rst').read_text('utf-8')
PAGES = [ROOT / 'README.rst', *sorted((ROOT / 'docs').rglob('*.rst'))]


def rows(text, header):
    """Yield the rows of cells of the simple table with the line `header`."""
    lines = text.splitlines()
    place = next(n for n, line in enumerate(lines) if line.split() == header.split())
    columns = [match.span() for match in re.finditer('=+', lines[place - 1])]
    columns[-1] = (columns[-1][0], None)
    for line in lines[place + 2 :]:
        if line.startswith('=='):
            return
        yield [line[first:last].strip().strip('`') for first, last in columns]


def test_the_readme_is_sound():
    core = pytest.importorskip('docutils.core')  # Sphinx checks the other pages
    settings = {'halt_level': 2, 'report_level': 2, 'warning_stream': False}
    core.publish_doctree(README, settings_overrides=settings)


def test_each_command_has_its_row_and_page():
    text = (ROOT / 'docs' / 'commands.rst').read_text('utf-8')
    table = {command: page for command, _, page in rows(text, 'command what it does page')}
    commands = load_script('zoo').list_commands()
    own = {name: run for name, run in commands.items() if '/' not in name and '_' not in name}
    shown = {name.replace('zoo ', '').replace('bert-embedding', 'embed') for name in table}
    assert shown <= set(own)
    assert {own[name] for name in shown} == set(own.values())  # the others are second names
    for command, page in table.items():
        target = re.search('<(.*)>', page)
        text = (ROOT / 'docs' / target.group(1)).read_text('utf-8') if target else README
        script = f'{command[len("zoo ") :].replace("-", "_")}.py'  # which horovodrun starts
        assert command in text or script in text, (command, page)


def test_the_page_lists_all_tasks():
    page = (ROOT / 'docs' / 'tasks' / 'classification.rst').read_text('utf-8')
    table = rows(page, 'task of classes, or range metrics downloads')
    found = []
    for name in list_tasks():
        task = get_task(name)
        classes = ', '.join(task.labels or ())
        if not task.target.has_classes:
            classes = '{:g} to {:g}'.format(*task.target.bounds)
        of = 'pairs' if task.is_pair else 'texts'
        downloads = 'yes' if task.gluonnlp_name else 'no'
        found.append([name, of, classes, ', '.join(task.target.metrics), downloads])
    assert list(table) == found


def test_files_that_are_named_exist():
    names = r'\b(?:docs|scripts|requirements|export|tests|\.ci)/[\w./-]+\.(?:py|rst|txt|tsv|json)\b'
    for path in PAGES:
        text = path.read_text('utf-8')
        for name in re.findall(names, text):
            assert (ROOT / name).exists(), (path, name)
        for target in re.findall(r'`[^`]*<([\w./]+\.rst)>`_', text):
            assert (path.parent / target).exists(), (path, target)


def test_tables_have_the_figures_of_the_files():
    """Scores of recipes, times, and the models of the catalogue."""
    figures = runpy.run_path(str(ROOT / 'docs' / 'figures.py'))
    recipes = {path.stem for path in (ROOT / 'scripts' / 'recipes').glob('*.yaml')}
    assert figures['SCORES'].keys() == recipes
    texts = [path.read_text('utf-8') for path in PAGES]
    assert [figures['updated'](text) for text in texts] == texts, 'run: python docs/figures.py'
    shown = [name for text in texts for name in re.findall(r'^\.\. figures: (.*)', text, re.M)]
    assert {'recipes', 'speed amx', 'times steps', 'times training', 'weights'} <= {*shown}


def test_the_first_screen_has_the_figures_of_the_table():
    table = read_json(ROOT / 'scripts' / 'benchmark', 'speed.json')['processors']['amx']
    ours, theirs = (table[side]['forward'] for side in ('ours', 'peers'))
    for precision in ('float32', 'bfloat16'):
        ratios = [
            theirs[shape][f'torch {precision}'] / ours[shape][f'openvino {precision}']
            for shape in ours
        ]
        assert f'{min(ratios):.2f} to {max(ratios):.2f} times as fast in {precision}' in README
