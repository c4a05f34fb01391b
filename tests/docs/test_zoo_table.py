"""docs/model_zoo.rst: its tables are those of the catalogue."""

import pathlib
import runpy

DOCS = pathlib.Path(__file__).resolve().parents[2] / 'docs'


def test_table_is_up_to_date():
    updated = runpy.run_path(str(DOCS / 'zoo_table.py'))['updated']
    text = (DOCS / 'model_zoo.rst').read_text(encoding='utf-8')
    assert updated(text) == text, 'run: python docs/zoo_table.py'
